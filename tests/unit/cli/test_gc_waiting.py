"""What a sweep says of pods that wait for their owner."""

from __future__ import annotations

from podlife.cli.gc_summary import Result, tell
from podlife.client import Connection


def test_pods_that_wait_for_their_owner_are_told_and_are_no_failure() -> None:
    waiting = {"Job sum has not counted it yet": ["ns/a", "ns/b"]}
    told = tell(Result(has_begun=True, waiting=waiting), Connection("https://example"))
    assert told.said == [
        "Nothing to collect.",
        "  2 pods not to go before the owner has seen the end (ns/a, ns/b): Job sum has not counted it yet",
    ]
    assert (told.problems, told.code) == ([], 0)
