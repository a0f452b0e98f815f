"""Commands that run a day later than they do: no pod has ended before it was made, and a server says when that was.

So a test makes its pods now, with an end that is up to a day away, and what it runs sees them after it.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

from podlife.clock import SystemClock

_DAY = timedelta(days=1)
# Read by every Python that starts, before its program.
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
    """What gives a program the clock; the folder is for nothing else."""
    (folder / "sitecustomize.py").write_text(_SITE)
    return {"PYTHONPATH": str(folder)}
