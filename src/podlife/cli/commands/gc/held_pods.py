"""Pods held by finalizers. `podlife gc finalizers` shows them; `podlife gc finalizers remove` confirms, waits for the
quarantine, removes finalizers, and reports the outcome."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from podlife.api.codec import format_time
from podlife.api.durations import format_duration
from podlife.cli.archive_options import Archiving
from podlife.cli.commands.gc.once import archiving_steps, is_agreed, prepare_to_ask, recording
from podlife.cli.commands.gc.output import where_of
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.cli.output import as_json, counted, printable, table
from podlife.client import Connection
from podlife.clock import SystemClock
from podlife.daemons import event_loop as loop
from podlife.daemons.connection import explained
from podlife.errors import ApiError, PodlifeError
from podlife.podgc import Settings
from podlife.podgc.archive import Archive
from podlife.podgc.finalizers.held_pods import held_pods
from podlife.podgc.finalizers.remover import FinalizerRemover, event_of
from podlife.podgc.finalizers.round import FinalizerRound
from podlife.podgc.plan import HeldPod, NodeState
from podlife.podgc.summary import FinalizerRemoval, FinalizerSummary

RIGHTS = "deploy/gc/finalizers/rbac.yaml"
_FLUSH_SECONDS = 5.0
_INTERRUPTED = 130


def show_held(options: ConnectionOptions, namespace: str, output: str) -> None:
    """Raises PodlifeError if pods cannot be listed."""
    connection, clock = load_connection(options), SystemClock()

    async def read() -> list[HeldPod]:
        async with connected(options, connection) as client:
            return await held_pods(client, clock.now(), namespace)

    sys.stdout.write(format_held(loop.run(read()), output, clock.now(), namespace))


def format_held(held: Sequence[HeldPod], output: str, now: datetime, namespace: str = "") -> str:
    if output == "json":
        return as_json({"pods": [_as_dict(pod, now) for pod in held]})
    if not held:
        return f"No pod is held by a finalizer {where_of(namespace)}.\n"
    rows = [("NAMESPACE", "NAME", "HELD FOR", "NODE", "FINALIZER", "SET BY", "LAST WRITTEN")]
    for pod in held:
        node = "<none>" if pod.node_state is NodeState.NONE else f"{pod.node} ({pod.node_state})"
        for number, each in enumerate(pod.finalizers):
            # The pod's columns are filled in its first row only.
            own = (pod.namespace, pod.name, _age(pod.since, now), node) if number == 0 else ("",) * 4
            written = "<unknown>" if each.set_at is None else f"{_age(each.set_at, now)} ago"
            rows.append((*own, each.name, each.manager or "<unknown>", written))
    gone = sum(pod.node_state is NodeState.GONE for pod in held)
    total = f"{counted(len(held))} held by finalizers, {gone} of them of nodes that are gone."
    return f"{table(rows)}\n{total}\n"


def _age(since: datetime, now: datetime) -> str:
    return format_duration((now - since).total_seconds())


def _as_dict(pod: HeldPod, now: datetime) -> dict[str, Any]:
    return {
        "namespace": pod.namespace,
        "name": pod.name,
        "uid": pod.uid,
        "heldSince": format_time(pod.since),
        "heldSeconds": round((now - pod.since).total_seconds(), 3),
        "nodeName": pod.node,
        "node": str(pod.node_state),
        "owner": pod.owner,
        "finalizers": [
            {
                "name": each.name,
                "manager": each.manager,
                "lastWritten": None if each.set_at is None else format_time(each.set_at),
            }
            for each in pod.finalizers
        ],
    }


@dataclass(frozen=True, slots=True)
class Wanted:
    names: tuple[str, ...]
    namespace: str
    allowed: frozenset[str]
    quarantine_seconds: float
    is_dry: bool
    # Protected pods and deletion windows.
    settings: Settings


def run_removal(
    options: ConnectionOptions, wanted: Wanted, archiving: Archiving | None, *, is_confirmed: bool
) -> int:
    """Returns the exit code. Raises PodlifeError if it cannot start."""
    prepare_to_ask(is_confirmed=is_confirmed or wanted.is_dry)
    connection = load_connection(options)
    archive = archiving.open(SystemClock()) if archiving and not wanted.is_dry else None
    namespace = wanted.namespace or connection.namespace

    async def read() -> list[HeldPod]:
        async with connected(options, connection) as client:
            return await held_pods(client, SystemClock().now(), namespace)

    try:
        held = {pod.name: pod for pod in loop.run(read())}
        pods = [held[name] for name in wanted.names if name in held]
        absent = [name for name in wanted.names if name not in held]
        result = FinalizerSummary()
        if pods and (is_confirmed or wanted.is_dry or _is_agreed(pods, wanted)):
            result = loop.run(_removed(options, connection, wanted, pods, archiving, archive))
        elif pods:
            print("Nothing was taken off.")
            return 1
    except KeyboardInterrupt:
        print("podlife: interrupted: only reported finalizers were taken off", file=sys.stderr)
        return _INTERRUPTED
    for line in removal_lines(result, is_dry=wanted.is_dry):
        print(printable(line))
    problems = [
        f"no pod {namespace}/{name} is held by a finalizer: `podlife gc finalizers` shows which are, -n names another "
        "namespace"
        for name in absent
    ]
    problems += problems_of(result, connection)
    for problem in problems:
        print(printable(f"podlife: {problem}"), file=sys.stderr)
    if result.left:
        return _INTERRUPTED
    return 1 if problems else 0


def _is_agreed(pods: Sequence[HeldPod], wanted: Wanted) -> bool:
    sys.stdout.write(format_held(pods, "table", SystemClock().now()))
    return is_agreed(f"Take {', '.join(sorted(wanted.allowed))} off {counted(len(pods))}?")


async def _removed(
    options: ConnectionOptions,
    connection: Connection,
    wanted: Wanted,
    pods: Sequence[HeldPod],
    archiving: Archiving | None,
    archive: Archive | None,
) -> FinalizerSummary:
    clock = SystemClock()
    async with (
        connected(options, connection, rights=RIGHTS) as client,
        recording(client) as recorder,
        archiving_steps(client, archiving, archive) as steps,
    ):

        def report(taken: FinalizerRemoval) -> None:
            regarding, message = event_of(taken)
            recorder.event(regarding, "Normal", "FinalizerRemoved", message)

        remover = FinalizerRemover(
            client, clock, wanted.allowed, lambda: wanted.settings, steps=steps, is_dry=wanted.is_dry
        )
        # A dry run changes nothing and needs no quarantine.
        seconds = 0.0 if wanted.is_dry else wanted.quarantine_seconds
        round_ = FinalizerRound(client, clock, remover, quarantine_seconds=seconds)
        await round_.begin()
        with loop.stopped_by_signals(round_.stop):
            result = await round_.run(pods, None if wanted.is_dry else report)
        await recorder.flush(seconds=_FLUSH_SECONDS)
        return result


def removal_lines(result: FinalizerSummary, *, is_dry: bool = False) -> Iterator[str]:
    """The outcome, a line per pod."""
    for taken in result.done:
        if taken.is_gone:
            yield f"pod {taken.key} is gone already"
            continue
        names, verb = ", ".join(taken.taken), "would be taken off" if is_dry else "taken off"
        rest = f"; still held by {', '.join(taken.left)}" if taken.left else ""
        yield f"{names} {verb} pod {taken.key}{rest}"


def problems_of(result: FinalizerSummary, connection: Connection) -> Iterator[str]:
    def why(error: PodlifeError) -> PodlifeError:
        return explained(error, connection, rights=RIGHTS) if isinstance(error, ApiError) else error

    if result.error is not None:
        yield f"no finalizer was taken off: {why(result.error)}"
    for kept in result.kept:
        yield f"nothing was taken off pod {kept.key}: {kept.why}"
    for pod, error in result.failures:
        yield f"nothing was taken off pod {pod.key}: {why(error)}"
    if result.left:
        yield f"interrupted: {counted(result.left)} left as they are"
