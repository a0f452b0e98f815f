"""Runs commands with a clock that is a day ahead.

The server sets creation timestamps, and a pod cannot end before its creation. So a test creates pods now that end
within a day, and the command sees them as ended.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from podlife.clock import SystemClock

_DAY = timedelta(days=1)
# Python imports it on startup, before the program.
_SITE = """
from datetime import timedelta
from podlife.clock import SystemClock

def later(self, now=SystemClock.now):
    return now(self) + timedelta(days=1)

SystemClock.now = later
"""


def a_day_later() -> datetime:
    return SystemClock().now() + _DAY


def environment_of(folder: Path) -> dict[str, str]:
    """Environment variables that give a program this clock; `folder` must be used for nothing else."""
    (folder / "sitecustomize.py").write_text(_SITE)
    return {"PYTHONPATH": str(folder)}
