"""`python -m ort_abi.cli`."""

from __future__ import annotations

import sys

from ort_abi.cli import run_program

sys.exit(run_program())
