"""What a sweep says of pods that wait for their owner."""

from __future__ import annotations

from datetime import UTC, datetime

from podlife.cli.commands.gc.summary import Result, tell
from podlife.client import Connection
from podlife.podgc import Summary, WaitingVictim
from tests.unit.cli.commands.gc.test_summary import victim


def test_pods_that_wait_for_their_owner_are_told_and_are_no_failure() -> None:
    until = datetime(2030, 1, 1, tzinfo=UTC)
    waiting = tuple(
        WaitingVictim(victim(name), "Job sum has not counted it yet", until) for name in ("a", "b")
    )
    told = tell(Result(Summary(waiting=waiting), has_begun=True), Connection("https://example"))
    assert told.said == [
        "Nothing to collect in any namespace.",
        "  2 pods not to go before the owner has seen the end (ns/a, ns/b): Job sum has not counted it yet",
    ]
    assert (told.problems, told.code) == ([], 0)
