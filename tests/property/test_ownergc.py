"""The owner collector on the embedded server, through histories that nobody thought of: it never deletes what has an
owner, and when all is quiet nothing is left that should be gone."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import Any

from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from podlife.client import CONFIG_MAPS, NODES, SECRETS, Client, DeleteOptions, Ref
from podlife.errors import ApiError
from podlife.testing import VirtualTimeLoop
from podlife.wire import Request
from tests.component.ownergc.world import HELD, World, world
from tests.property.oracles.ownergc import Oracle

REFS = (CONFIG_MAPS, SECRETS, NODES)
NAMESPACES = ("default", "kube-public")
POLICIES = ("Background", "Foreground", "Orphan")
# Longer than anything is tried again with growing distance that fails only for a while.
QUIET_SECONDS = 400.0


@dataclass(frozen=True)
class To:
    """A reference to one that was made before, by its number; rightly or not."""

    number: int
    block: bool | None
    twist: str


@dataclass(frozen=True)
class Make:
    ref: int
    namespace: int
    name: int
    owners: tuple[To, ...]
    is_held: bool


@dataclass(frozen=True)
class Delete:
    number: int
    policy: str


@dataclass(frozen=True)
class Refer:
    number: int
    owners: tuple[To, ...]


@dataclass(frozen=True)
class Release:
    number: int


@dataclass(frozen=True)
class Wait:
    seconds: float


@dataclass(frozen=True)
class Fault:
    """The watches are cut; the server is away for a while; or the collector is killed and another begins."""

    what: str


Action = Make | Delete | Refer | Release | Wait | Fault

numbers = st.integers(0, 9)
owners = st.lists(
    st.builds(
        To,
        numbers,
        st.sampled_from((None, True, True, False)),
        st.sampled_from(("",) * 12 + ("name", "uid", "kind", "unknown")),
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda to: to.number,
).map(tuple)
makes = st.builds(
    Make,
    st.sampled_from((0, 0, 0, 1, 1, 2)),
    st.sampled_from((0, 0, 0, 1)),
    st.integers(0, 5),
    owners,
    st.sampled_from((False, False, False, True)),
)
deletes = st.builds(Delete, numbers, st.sampled_from(POLICIES))
refers = st.builds(Refer, numbers, st.one_of(st.just(()), owners))
releases = st.builds(Release, numbers)
waits = st.builds(Wait, st.sampled_from((0.0, 0.01, 0.5, 5.0)))
faults = st.builds(Fault, st.sampled_from(("cut", "away", "killed")))
KINDS_OF_ACTIONS = (makes, makes, makes, deletes, deletes, deletes, refers, releases, waits, waits, faults)
actions = st.sampled_from(range(len(KINDS_OF_ACTIONS))).flatmap(lambda kind: KINDS_OF_ACTIONS[kind])
# A family to begin with, and what becomes of it.
histories = st.builds(
    lambda first, then: [*first, *then],
    st.lists(makes, min_size=3, max_size=7),
    st.lists(actions, min_size=3, max_size=20),
)


@dataclass
class Play:
    its: World
    oracle: Oracle
    made: list[tuple[Ref, dict[str, Any]]] = field(default_factory=list)

    @property
    def client(self) -> Client:
        return self.its.client

    async def act(self, action: Make | Delete | Refer | Release) -> None:
        """What the server refuses has not happened."""
        try:
            if isinstance(action, Make):
                await self._make(action)
            elif self.made:
                await self._change(action)
        except ApiError:
            return

    async def _make(self, action: Make) -> None:
        ref = REFS[action.ref]
        metadata: dict[str, Any] = {
            "name": f"n{action.name}",
            "ownerReferences": self._references(action.owners),
        }
        if action.is_held:
            metadata["finalizers"] = [HELD]
        namespace = NAMESPACES[action.namespace] if ref.namespaced else ""
        self.made.append((ref, await self.client.create(ref, {"metadata": metadata}, namespace)))

    async def _change(self, action: Delete | Refer | Release) -> None:
        ref, obj = self.made[action.number % len(self.made)]
        metadata = obj["metadata"]
        name, namespace, uid = metadata["name"], metadata.get("namespace", ""), metadata["uid"]
        if isinstance(action, Delete):
            # Noted before it is done: the collector may be faster than the answer.
            notes = {"Foreground": self.oracle.foreground, "Orphan": self.oracle.orphaning}
            notes.get(action.policy, set()).add(uid)
            options = DeleteOptions(uid=uid, propagation_policy=action.policy)
            await self.client.delete(ref, name, namespace, options=options)
        elif isinstance(action, Refer):
            patch = {"metadata": {"uid": uid, "ownerReferences": self._references(action.owners) or None}}
            await self.client.patch(ref, name, patch, namespace)
        else:
            found = await self.client.get(ref, name, namespace)
            left = [each for each in found["metadata"].get("finalizers") or () if each != HELD]
            patch = {"metadata": {"uid": uid, "finalizers": left or None}}
            await self.client.patch(ref, name, patch, namespace)

    def _references(self, owners: tuple[To, ...]) -> list[dict[str, Any]]:
        if not self.made:
            return []
        by_uid = {}
        for owner in owners:
            ref, obj = self.made[owner.number % len(self.made)]
            reference = _reference(ref, obj["metadata"], owner)
            by_uid[reference["uid"]] = reference
        return list(by_uid.values())


def _reference(ref: Ref, metadata: dict[str, Any], owner: To) -> dict[str, Any]:
    reference = {
        "apiVersion": ref.api_version,
        "kind": ref.kind,
        "name": metadata["name"],
        "uid": metadata["uid"],
    }
    if owner.twist == "name":
        reference["name"] = "wrong"
    elif owner.twist == "uid":
        reference["uid"] = f"00000000{metadata['uid'][8:]}"
    elif owner.twist == "kind":
        reference["kind"] = "Secret" if ref.kind == "ConfigMap" else "ConfigMap"
    elif owner.twist == "unknown":
        reference["kind"] = "Widget"
    if owner.block is not None:
        reference["blockOwnerDeletion"] = owner.block
    return reference


async def run(history: list[Action], lags: tuple[float, float, float]) -> list[str]:
    async with world() as its:
        oracle = Oracle(its.server)
        play = Play(its, oracle)

        def lag(request: Request) -> float:
            return next(
                (each for ref, each in zip(REFS, lags, strict=True) if request.path.endswith(ref.plural)), 0.0
            )

        def look(request: Request) -> None:
            oracle.check(request)

        its.line.delay, its.line.refuse = lag, look
        async with AsyncExitStack() as stack:
            await stack.enter_async_context(its.collecting())
            for action in history:
                if isinstance(action, Wait):
                    await asyncio.sleep(action.seconds)
                elif not isinstance(action, Fault):
                    await play.act(action)
                elif action.what == "killed":
                    await stack.aclose()
                    await stack.enter_async_context(its.collecting())
                else:
                    its.line.cut()
                    its.line.is_down = action.what == "away"
                    await asyncio.sleep(3.0 if its.line.is_down else 0.0)
                    its.line.is_down = False
            await asyncio.sleep(QUIET_SECONDS)
            oracle.check_end()
    return oracle.violations


CIRCLE = [
    Make(0, 0, 0, (), False),
    Make(0, 0, 1, (To(0, True, ""),), False),
    Refer(0, (To(1, True, ""),)),
    Wait(0.5),
    Delete(0, "Foreground"),
]
# A reference is corrected while the collector drops it.
OVERTAKEN = [
    Make(0, 0, 0, (), False),
    Make(0, 0, 1, (), False),
    Make(1, 0, 0, (To(1, None, ""), To(0, None, "name")), False),
    Wait(0.05),
    Refer(2, (To(1, None, ""), To(0, None, ""))),
]


@example(history=OVERTAKEN, lags=(0.0, 0.1, 0.1))
@example(history=CIRCLE, lags=(0.0, 0.0, 0.0))
@given(history=histories, lags=st.tuples(*[st.sampled_from((0.0, 0.0, 0.1, 1.0))] * 3))
@settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])
def test_nothing_goes_that_has_an_owner_and_nothing_stays_that_has_none(
    history: list[Action], lags: tuple[float, float, float]
) -> None:
    with asyncio.Runner(loop_factory=VirtualTimeLoop) as runner:
        violations = runner.run(run(history, lags))
    assert not violations, violations
