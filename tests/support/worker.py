"""A queue of work that a thread does later, in order: what asynchronous devices of tests are made of."""

from __future__ import annotations

import queue
import random
import threading
import time
from collections.abc import Callable


class Worker:
    """Work is done in order, each piece after a random delay of up to `delay` seconds."""

    def __init__(self, delay: float = 0) -> None:
        self._tasks: queue.Queue[Callable[[], object] | None] = queue.Queue()
        self._delay = delay
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while (task := self._tasks.get()) is not None:
            time.sleep(random.random() * self._delay)
            task()
            self._tasks.task_done()

    def add(self, task: Callable[[], object]) -> None:
        """Work for later."""
        self._tasks.put(task)

    def wait(self) -> None:
        """Until all work is done."""
        self._tasks.join()

    def stop(self) -> None:
        """Does what is left, then ends the thread."""
        self._tasks.put(None)
        self._thread.join()
