"""The package's two locks.

A child that is forked while another thread has one would wait for it for ever, so a fork takes both first, in
the order in which threads do.
"""

from __future__ import annotations

import os
import threading

__all__ = ["environment_lock", "registration_lock"]

registration_lock = threading.RLock()
"""Held through registering and unregistering a provider in Python: stock onnxruntime waits for a lock of its
own with the GIL, while the thread that has that lock may want the GIL for the provider's code."""

environment_lock = threading.RLock()
"""Of what there is one of in a process (`env`)."""


def _before_fork() -> None:
    registration_lock.acquire()
    environment_lock.acquire()


def _after_fork() -> None:
    environment_lock.release()
    registration_lock.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork)
