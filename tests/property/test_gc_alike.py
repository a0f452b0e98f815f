"""There is one way to collect: whoever is asked decides alike, guards included.

Random policies meet random clusters. A `Collector` that runs, `plan_once`, `sweep_once`, `podlife gc plan`, `podlife gc
sweep` and `podlife gc run` are each given the same, and what they would do, do, hold back and say is compared. The
commands are run as somebody types them, in this process: only their connection and their clock are ours.
"""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import AsyncIterator, Coroutine
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any
from unittest.mock import patch

import yaml
from hypothesis import assume, event, given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from podlife.api.codec import format_time
from podlife.cli.commands.gc.app import app
from podlife.client import NAMESPACES, Connection
from podlife.daemons.gc import PodGarbageCollector
from podlife.daemons.service import Service
from podlife.events import Recorder
from podlife.podgc import Collector, Guards, Plan, PolicyError, Settings, Summary, load_policy, read_policy
from podlife.podgc.keep_until import KEEP_UNTIL
from podlife.podgc.namespace_annotations import FORCE_UNTIL
from podlife.podgc.owner_wait.status import TRACKING
from podlife.podgc.policy.model import STOP
from podlife.testing.virtual_loop import VirtualTimeLoop
from tests.component.podgc.world import START, World, running, serve

Document = dict[str, Any]

# When what goes at once is gone: shares are judged once a second.
SOON_SECONDS = 3.0
# When everything is gone that a minute's room and quarantines let go, and nothing new has become due.
LONG_SECONDS = 900.0

some = st.fixed_dictionaries


def rarely(values: Any, otherwise: Any) -> Any:
    return st.integers(0, 3).flatmap(lambda drawn: values if drawn == 3 else st.just(otherwise))


# Nothing becomes due within LONG_SECONDS of the beginning: ages and limits are far apart.
ages = st.sampled_from((timedelta(minutes=1), timedelta(minutes=100), timedelta(days=2)))
selectors = st.sampled_from(
    (
        {"phase": ["Failed"]},
        {"labels": "app=x"},
        {"reason": ["OutOf*"]},
        {"namespaces": ["a"]},
        {"ownerKind": ["Job"]},
        {"node": ["gone*"]},
    )
)
limits: st.SearchStrategy[Document] = st.sampled_from(
    (
        {"keep": {"count": 1}},
        {"keep": {"count": 0, "per": "namespace"}, "waitForOwner": "1h"},
        {"ttlAfterFinished": "0s"},
        {"ttlAfterFinished": "30m", "waitForOwner": "3d"},
        {"keep": {"count": 1, "per": "owner"}, "ttlAfterFinished": "2h", "collectWhen": "any"},
        {"maxTerminating": "0s"},
        {"ttlAfterFinished": "0s", "maxTerminating": "1h"},
    )
)


@st.composite
def rules(draw: st.DrawFn) -> list[Document]:
    return [
        {"name": f"rule-{number}", "select": draw(selectors), **draw(limits)}
        for number in range(draw(st.integers(0, 2)))
    ]


guards = some(
    {},
    optional={
        "perPass": st.integers(1, 3),
        "perMinute": st.integers(1, 4),
        "shareOfNamespace": st.sampled_from(("20%", "50%", "100%")),
        "shareOfCluster": st.sampled_from(("20%", "50%", "100%")),
        "shareAtLeast": st.integers(0, 3),
        "windows": st.sampled_from(
            ([{"from": "00:00", "to": "12:00"}], [{"from": "12:00", "to": "13:00"}], [{"days": ["Tue"]}])
        ),
        "observeOnly": rarely(st.just(True), False),
    },
)
policies = some(
    {"apiVersion": st.just("podlife.dev/v1"), "kind": st.just("PodGCPolicy")},
    optional={
        "rules": rules(),
        "guards": guards,
        "protect": some(
            {},
            optional={
                "namespaces": st.just(["b"]),
                "labels": st.just(["app=y"]),
                "maxKeepUntil": st.sampled_from(("0s", "1h", "30d")),
            },
        ),
        "upstream": some(
            {},
            optional={
                "terminated": some({"threshold": st.integers(0, 3)}),
                "orphaned": some({"quarantine": st.sampled_from(("0s", "30s"))}),
                "unscheduled": some({"enabled": st.booleans()}),
            },
        ),
    },
)


@dataclass(frozen=True)
class PodState:
    phase: str
    reason: str
    node: str
    app: str
    namespace: str
    keep_until: str
    age: timedelta
    is_terminating: bool
    is_held: bool
    is_of_job: bool


pod_states = st.builds(
    PodState,
    phase=st.sampled_from(("Succeeded", "Failed", "Failed", "Running", "Pending")),
    reason=st.sampled_from(("", "Evicted", "OutOfcpu")),
    node=st.sampled_from(("node", "node", "broken", "gone", "gone-too", "")),
    app=st.sampled_from(("", "x", "y")),
    namespace=st.sampled_from(("a", "a", "b")),
    keep_until=rarely(st.sampled_from(("2029-01-01T00:00:00Z", "9999-12-31T23:59:59Z", "some day")), ""),
    age=ages,
    is_terminating=st.booleans(),
    is_held=rarely(st.just(True), False),
    is_of_job=st.booleans(),
)
marks = st.sampled_from(({}, {}, {STOP: "wait"}, {FORCE_UNTIL: "2030-01-02T00:00:00Z"}))


@dataclass(frozen=True)
class Situation:
    policy: Document
    pods: tuple[PodState, ...]
    marks: dict[str, dict[str, str]]
    # What the flags say beside the policy.
    threshold: int
    quarantine_seconds: int
    max_per_minute: int | None
    is_forced: bool

    def settings(self, file: Path) -> Settings:
        return Settings(
            policy=load_policy(file),
            threshold=self.threshold,
            quarantine_seconds=self.quarantine_seconds,
            # One pass for all that happens.
            period_seconds=10 * LONG_SECONDS,
            guards=Guards(per_minute=self.max_per_minute) if self.max_per_minute else None,
            is_forced=self.is_forced,
        )

    def flags(self, file: Path, *, guards: bool = True) -> list[str]:
        found = [
            f"--policy={file}",
            f"--terminated-pod-gc-threshold={self.threshold}",
            f"--quarantine={self.quarantine_seconds}s",
        ]
        if guards:
            found += [f"--max-per-minute={self.max_per_minute}"] if self.max_per_minute else []
            found += ["--force"] if self.is_forced else []
        return found

    @property
    def has_more_flags(self) -> bool:
        """Whether there is something that `gc plan` has no flag for."""
        return bool(self.max_per_minute) or self.is_forced


situations = st.builds(
    Situation,
    policy=policies,
    pods=st.lists(pod_states, min_size=1, max_size=7).map(tuple),
    marks=some({"a": marks, "kube-system": rarely(marks, {})}),
    threshold=st.integers(0, 3),
    quarantine_seconds=st.sampled_from((0, 30)),
    max_per_minute=rarely(st.integers(1, 3), None),
    is_forced=rarely(st.just(True), False),
)


async def build(world: World, situation: Situation) -> None:
    for name, noted in (("a", situation.marks["a"]), ("b", {})):
        await world.admin.create(NAMESPACES, {"metadata": {"name": name, "annotations": noted}})
    everywhere = {"metadata": {"annotations": situation.marks["kube-system"]}}
    await world.admin.patch(NAMESPACES, "kube-system", everywhere)
    await world.node()
    await world.node("broken", ready="False", taint_effect="NoExecute")
    for number, state in enumerate(situation.pods):
        name = f"p{number}"
        ended = [{"type": "Ready", "status": "False", "lastTransitionTime": format_time(START - state.age)}]
        job = {"apiVersion": "batch/v1", "kind": "Job", "name": "j", "uid": "job-uid", "controller": True}
        finalizers = ("example.com/hold",) if state.is_held else ()
        await world.pod(
            name,
            phase=state.phase,
            reason=state.reason,
            node=state.node,
            namespace=state.namespace,
            labels={"app": state.app} if state.app else {},
            conditions=ended,
            # What its Job has not counted yet, it has not seen.
            finalizers=(*finalizers, TRACKING) if state.is_of_job else finalizers,
            owner=job if state.is_of_job else None,
        )
        metadata: Document = {}
        if state.keep_until:
            metadata["annotations"] = {KEEP_UNTIL: state.keep_until}
        if state.is_terminating:
            metadata["deletionTimestamp"] = format_time(START - timedelta(minutes=10))
            metadata["deletionGracePeriodSeconds"] = 0 if state.is_held else 30
        await world.plant(name, state.namespace, metadata=metadata)


@dataclass
class Doings:
    """What became of the cluster, and what was said of it."""

    deleted: frozenset[str] = frozenset()
    marked: frozenset[str] = frozenset()
    # What was gone after a moment.
    deleted_soon: frozenset[str] = frozenset()
    held: set[tuple[str, str]] = field(default_factory=set)
    plan: Plan | None = None
    summary: Summary | None = None
    said: Document = field(default_factory=dict)
    code: int = 0


async def note(world: World, doings: Doings) -> None:
    asked = {each.path.rsplit("/", 1)[-1] for each in world.faults.sent("DELETE", "/pods/")}
    doings.deleted, doings.marked = frozenset(asked), frozenset(world.patched())


class Alone:
    """A cluster of its own, with a loop of its own whose time is virtual; commands run on it too."""

    def __init__(self, situation: Situation, folder: Path) -> None:
        self.situation = situation
        self.file = folder / "policy.yaml"
        self.folder = folder
        self.doings = Doings()
        self.loop: asyncio.AbstractEventLoop

    def now(self) -> datetime:
        return START + timedelta(seconds=self.loop.time())

    def run(self, work: Any) -> Doings:
        with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
            self.loop = runner.get_loop()
            serving = serve(self.folder)
            world = runner.run(serving.__aenter__())
            runner.run(build(world, self.situation))
            work(runner, world)
            runner.run(note(world, self.doings))
            runner.run(serving.__aexit__(None, None, None))
            left = asyncio.all_tasks(self.loop)
            assert not left, f"tasks left behind: {left}"
        return self.doings

    # The ways

    def from_python(self, runner: asyncio.Runner, world: World) -> None:
        collector = Collector(world.client, self.situation.settings(self.file), clock=world.clock)
        self.doings.plan = runner.run(collector.plan_once())
        self.doings.summary = runner.run(collector.sweep_once())

    def by_a_collector(self, runner: asyncio.Runner, world: World) -> None:
        collector = Collector(world.client, self.situation.settings(self.file), clock=world.clock)
        runner.run(self._watch(world, collector, collector))

    async def _watch(self, world: World, collector: Collector, runs: Any) -> None:
        async with running(runs):
            await asyncio.sleep(SOON_SECONDS)
            await note(world, self.doings)
            self.doings.deleted_soon = self.doings.deleted
            await asyncio.sleep(LONG_SECONDS)
        self.doings.held = {(str(guard), place) for guard, place in collector.metrics.held_back}

    def by_plan_and_sweep(self, runner: asyncio.Runner, world: World) -> None:
        with self._command_line(runner, world):
            planned = CliRunner().invoke(
                app, ["plan", "-o", "json", *self.situation.flags(self.file, guards=False)]
            )
            assert planned.exit_code == 0, planned.output
            self.doings.said = json.loads(planned.stdout)
            swept = CliRunner().invoke(app, ["sweep", "--yes", *self.situation.flags(self.file)])
            assert swept.exception is None or isinstance(swept.exception, SystemExit), swept.exception
            self.doings.code = swept.exit_code

    def by_run(self, runner: asyncio.Runner, world: World) -> None:
        async def serve_it(service: Service, *_: Any, **__: Any) -> None:
            collecting = service.make(
                world.client, world.clock, Recorder(world.admin, "gc", clock=world.clock)
            )
            assert isinstance(collecting, PodGarbageCollector)
            await self._watch(world, collecting._collector, collecting)

        flags = [*self.situation.flags(self.file), "--no-leader-elect", f"--period={10 * LONG_SECONDS:.0f}s"]
        with self._command_line(runner, world), patch("podlife.daemons.gc.run_service", serve_it):
            result = CliRunner().invoke(app, ["run", *flags])
        assert result.exit_code == 0, result.exception or result.output

    def _command_line(self, runner: asyncio.Runner, world: World) -> ExitStack:
        def run(main: Coroutine[Any, Any, Any]) -> Any:
            return runner.run(main)

        @asynccontextmanager
        async def connected(*_: Any, **__: Any) -> AsyncIterator[Any]:
            yield world.client

        stack = ExitStack()
        stack.enter_context(patch("podlife.daemons.event_loop.run", run))
        commands = "podlife.cli.commands.gc"
        for module in ("plan", "sweep"):
            stack.enter_context(patch(f"{commands}.{module}.connected", connected))
        for module in ("plan", "sweep", "app"):
            stack.enter_context(
                patch(f"{commands}.{module}.load_connection", lambda _: Connection("https://example"))
            )
        stack.enter_context(patch("podlife.daemons.logs.set_up_logs", lambda _: None))
        for module in ("plan", "sweep", "once"):
            stack.enter_context(patch(f"{commands}.{module}.SystemClock", lambda: self))
        return stack


def names(pods: Any) -> frozenset[str]:
    return frozenset(pod.metadata.name for pod in pods)


def told(plan: Plan) -> tuple[Any, ...]:
    """A plan as `gc plan` says it, but for what differs from cluster to cluster."""
    return (
        [(v.pod.metadata.name, v.rule, str(v.reason), str(v.action), v.why) for v in plan.victims],
        [(h.refusal.guard, h.refusal.place, h.refusal.why, sorted(names(h.pods))) for h in plan.held_back],
        [(each.node, sorted(names(each.pods))) for each in plan.later],
        sorted((each.victim.pod.metadata.name, each.what) for each in plan.waiting),
    )


def said(plan: Document) -> tuple[Any, ...]:
    return (
        [(v["name"], v.get("rule", ""), v["reason"], v["action"], v["why"]) for v in plan["victims"]],
        [
            (h["guard"], h["namespace"], h["why"], sorted(pod["name"] for pod in h["pods"]))
            for h in plan.get("heldBack", ())
        ],
        [(each["node"], sorted(pod["name"] for pod in each["pods"])) for each in plan["later"]],
        sorted((each["name"], each["why"]) for each in plan.get("waiting", ())),
    )


@settings(max_examples=40)
@given(situation=situations)
def test_whoever_is_asked_plans_does_and_holds_back_the_same(situation: Situation) -> None:
    # What stands there twice is written twice: a policy has no aliases.
    text = yaml.safe_dump(json.loads(json.dumps(situation.policy)))
    try:
        read_policy(text, "policy")
    except PolicyError:
        # One rule leaves another none, or speaks of what is protected.
        assume(False)
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / "policy.yaml").write_text(text)
        python, collector, command, run = (
            (alone := Alone(situation, Path(folder))).run(getattr(alone, way))
            for way in ("from_python", "by_a_collector", "by_plan_and_sweep", "by_run")
        )
    plan, summary = python.plan, python.summary
    assert plan is not None
    assert summary is not None
    if plan.victims:
        event("somebody goes")
    for each in plan.held_back:
        event(f"held by {each.refusal.guard}")

    # What goes now is what a plan says, whoever says it and whoever does it.
    if not situation.has_more_flags:
        assert said(command.said) == told(plan)
    marked_only = names(v.pod for v in plan.victims if v.action == "mark-failed")
    assert collector.deleted_soon == names(v.pod for v in plan.victims) - marked_only
    assert run.deleted_soon == collector.deleted_soon

    # What goes in the end: a collector has time for what a sweep does not wait for.
    assert (command.deleted, command.marked) == (python.deleted, python.marked)
    assert (run.deleted, run.marked, run.held) == (collector.deleted, collector.marked, collector.held)
    is_cut_short = any(each.is_for_a_minute for each in summary.held_back)
    if is_cut_short:
        assert python.deleted <= collector.deleted
    else:
        assert (python.deleted, python.marked) == (collector.deleted, collector.marked)

    # What is held back, by what, and that it is told; a minute is only waited for.
    assert command.code == (0 if summary.is_complete else 1)
    lasting = {each for each in collector.held if each[0] != "perMinute"}
    held = {
        (str(each.refusal.guard), each.refusal.place)
        for each in (*plan.held_back, *summary.held_back)
        if not each.is_for_a_minute
    }
    # A pod that waits for its owner takes a place for as long as the owner is asked about. A collector goes on where
    # perMinute cuts a sweep short, and may meet other guards then.
    assert plan.waiting or is_cut_short or (lasting <= held and bool(lasting) == bool(held))
