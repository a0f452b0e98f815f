"""When a node is declared out of service. Names are those of the flags."""

from __future__ import annotations

import math
from dataclasses import dataclass

# Margin from the end of a check to the decision, in which other checks of the pass finish.
_SPARE_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Portion:
    """A share of all nodes in percent, or an absolute number."""

    percent: float | None = None
    number: int = 0

    def at_most(self, total: int) -> int:
        """At least one is allowed, otherwise a small cluster could never be helped."""
        most = self.number if self.percent is None else math.floor(total * self.percent / 100)
        return max(1, most)

    def at_least(self, total: int) -> int:
        return self.number if self.percent is None else math.ceil(total * self.percent / 100)

    def __str__(self) -> str:
        return str(self.number) if self.percent is None else f"{self.percent:g}%"


@dataclass(frozen=True, slots=True)
class OutOfServiceSettings:
    # How long a node must be not ready, and its kubelet silent, before fence checks run.
    after_seconds: float = 300.0
    # Maximum number of nodes out of service; if more are dead, none is tainted.
    most: Portion = Portion(percent=10)
    # Minimum number of ready nodes; with fewer, none is tainted.
    min_healthy: Portion = Portion(percent=50)
    # How long a node that has come back is left alone.
    cool_down_seconds: float = 600.0
    with_control_plane: bool = False
    is_dry_run: bool = False
    # Number of fence checks that must confirm; None means all.
    require: int | None = None
    # Minimum interval of fence checks per node.
    fence_every_seconds: float = 30.0
    fence_timeout_seconds: float = 10.0
    # Interval between passes over all nodes.
    period_seconds: float = 5.0

    @property
    def look_seconds(self) -> float:
        """Minimum interval of reading a node's contents, longer than the checks take."""
        return 2 * self.period_seconds + self.fence_timeout_seconds

    @property
    def fresh_seconds(self) -> float:
        """Validity of a confirmation: a machine that was dead a minute ago may have been switched on since."""
        return self.fence_timeout_seconds + _SPARE_SECONDS
