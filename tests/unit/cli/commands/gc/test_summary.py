"""What is said of a sweep when it ends, and its exit code."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

import pytest

from podlife.cli.commands.gc.progress import describe, report_waits
from podlife.cli.commands.gc.summary import Result, summarize
from podlife.client import Connection
from podlife.errors import ForbiddenError, PodlifeError, UnreachableError
from podlife.podgc import Reason
from podlife.podgc.plan import Action, Victim, WaitingVictim
from podlife.podgc.removal import Outcome, Removal
from podlife.podgc.summary import Failure, Progress, Summary
from tests.unit.cli.commands.gc.test_output import pod

CONNECTION = Connection("https://example")


def victim(name: str, *finalizers: str) -> Victim:
    return Victim(pod(name, finalizers=finalizers), Reason.TERMINATED, Action.DELETE, "")


def result(*removals: tuple[str, Removal], **more: Any) -> Result:
    made = Result(seconds=2.0, has_begun=True, **more)
    for name, removal in removals:
        made.record(victim(name), removal)
        made.summary.outcomes[removal.outcome] += 1
    return made


DELETED = Removal(Outcome.DELETED)


def test_all_done_is_a_count_a_time_and_success() -> None:
    report = summarize(result(("a", DELETED), ("b", DELETED)), CONNECTION)
    assert (report.lines, report.problems, report.code) == (
        ["2 pods deleted (2 terminated) in 2.0 s, 1 a second."],
        [],
        0,
    )


def test_held_pods_are_told_by_their_finalizer_and_are_no_failure() -> None:
    held = [(f"p{number}", Removal(Outcome.HELD, finalizers=("x/hold",))) for number in range(5)]
    report = summarize(result(*held, ("q", Removal(Outcome.HELD, finalizers=("y/hold",)))), CONNECTION)
    assert report.lines == [
        "Nothing was deleted.",
        "  5 pods held by x/hold (ns/p0, ns/p1, ns/p2, …): gone when that is taken off",
        "  1 pod held by y/hold (ns/q): gone when that is taken off",
    ]
    assert (report.problems, report.code) == ([], 0)


@pytest.mark.parametrize(
    ("left", "line"),
    [
        (3, "interrupted: 3 pods left; run it again to continue"),
        (0, "interrupted after all work was done"),
    ],
)
def test_interrupted_it_tells_what_is_left(left: int, line: str) -> None:
    report = summarize(result(("a", DELETED), summary=Summary(left=left), is_interrupted=True), CONNECTION)
    assert (report.problems, report.code) == ([line], 130)


def test_interrupted_before_it_began_nothing_was_deleted() -> None:
    report = summarize(Result(is_interrupted=True, is_cut=True), CONNECTION)
    assert (report.lines, report.problems, report.code) == ([], ["interrupted: nothing was deleted"], 130)


FORBIDDEN = (
    'pods "x" is forbidden: User "eve" cannot delete resource "pods" in API group "" in the namespace "ns"'
)


@pytest.mark.parametrize(
    ("error_of", "cause"),
    [
        (
            lambda name: UnreachableError(f"no answer to DELETE /api/v1/namespaces/ns/pods/{name}"),
            "no answer to DELETE /api/v1/namespaces/ns/pods/…",
        ),
        (
            lambda name: ForbiddenError(FORBIDDEN),
            (
                "user eve may not delete pods in namespace ns (403): grant the verb delete on pods by a Role; "
                "deploy/gc/rbac.yaml has all that is needed"
            ),
        ),
    ],
)
def test_what_fails_alike_is_one_line(error_of: Callable[[str], PodlifeError], cause: str) -> None:
    failures = [Failure(victim(name), error_of(name)) for name in ("a", "b")]
    report = summarize(result(summary=Summary(failures=failures)), CONNECTION)
    assert report.lines == ["Nothing was deleted."]
    assert report.problems == [f"2 pods not deleted (ns/a, ns/b): {cause}"]
    assert report.code == 1


@pytest.mark.parametrize(
    ("progress", "text"),
    [
        (Progress(total=2), "Deleting"),
        (Progress(waiting_seconds=38.2, waiting_pods=3), "Quarantine of 3 pods ends in 38 s"),
        (Progress(waiting_seconds=38.2, is_stopping=True), "Stopping after requests in flight"),
    ],
)
def test_the_bar_says_what_it_waits_for(progress: Progress, text: str) -> None:
    assert describe(progress) == text


def test_where_there_is_no_terminal_each_kind_of_long_wait_is_told_once() -> None:
    lines: list[str] = []
    show = report_waits(lines.append)
    for progress in (
        Progress(waiting_seconds=1, waiting_pods=2),
        Progress(waiting_seconds=40, waiting_pods=2),
        Progress(waiting_seconds=30, waiting_pods=2),
        Progress(waiting_seconds=60, waiting_pods=4, is_minute=True),
        Progress(3, 3),
    ):
        show(progress)
    assert lines == ["Quarantine of 2 pods ends in 40 s", "Rate limit reached: 4 pods wait 60 s"]


def test_pods_that_wait_for_their_owner_are_told_and_are_no_failure() -> None:
    until = datetime(2030, 1, 1, tzinfo=UTC)
    waiting = tuple(
        WaitingVictim(victim(name), "Job sum has not counted it yet", until) for name in ("a", "b")
    )
    report = summarize(Result(Summary(waiting=waiting), has_begun=True), CONNECTION)
    assert report.lines == [
        "Nothing to collect in any namespace.",
        "  2 pods not to go before the owner has seen the end (ns/a, ns/b): Job sum has not counted it yet",
    ]
    assert (report.problems, report.code) == ([], 0)
