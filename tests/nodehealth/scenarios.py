"""The scenarios. Each ends where nothing is left to do; then its runs are compared."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from podlife.client import NODES, PODS
from tests.component.nodehealth.world import NOT_READY, UNREACHABLE, tolerates
from tests.nodehealth.outcome import Outcome
from tests.nodehealth.stage import GRACE_SECONDS, Stage

Play = Callable[[Stage], Awaitable[None]]

SOON = [tolerates(NOT_READY, 2), tolerates(UNREACHABLE, 2)]
LATER = [tolerates(NOT_READY, 3600), tolerates(UNREACHABLE, 3600)]
SILENT = ("unreachable:NoSchedule", "unreachable:NoExecute")
UNWELL = ("not-ready:NoSchedule", "not-ready:NoExecute")


@dataclass(frozen=True)
class Scenario:
    name: str
    play: Play
    # Parts of the outcome that are not the same twice with kube-controller-manager, by what is a race there.
    ignoring: tuple[str, ...] = ()
    # All zones of the cluster go down in it.
    is_alone: bool = False

    def __str__(self) -> str:
        return self.name

    def prefix(self, suffix: str = "") -> str:
        return f"{self.name}{suffix}-".replace("_", "-")


SCENARIOS: dict[str, Scenario] = {}


def scenario(*, ignoring: tuple[str, ...] = (), is_alone: bool = False) -> Callable[[Play], Play]:
    def register(play: Play) -> Play:
        SCENARIOS[play.__name__] = Scenario(play.__name__, play, ignoring, is_alone)
        return play

    return register


def golden_file() -> Path:
    return Path(__file__).parent / "golden.json"


@cache
def _goldens() -> dict[str, Outcome]:
    read: dict[str, Outcome] = json.loads(golden_file().read_text()) if golden_file().exists() else {}
    return read


def golden(scenario: Scenario) -> Outcome:
    """What kube-controller-manager made of it; raises LookupError where nobody has recorded that."""
    try:
        return _goldens()[scenario.name]
    except KeyError:
        raise LookupError(f"record it: python -m tests.nodehealth.record {scenario.name}") from None


@scenario()
async def falls_silent(s: Stage) -> None:
    """The whole way: Unknown, not ready pods, both taints, eviction."""
    for name in ("up", "n1"):
        await s.raise_node(name)
    await s.add_pod("web", "n1", tolerations=SOON)
    await s.add_pod("stays", "n1", tolerations=LATER)
    await s.add_pod("elsewhere", "up", tolerations=SOON)
    await asyncio.sleep(2)
    await s.stop("n1")
    await s.until_going("web")


@scenario()
async def returns_in_time(s: Stage) -> None:
    """The pod stays, and is told that it does."""
    for name in ("up", "n1"):
        await s.raise_node(name)
    await s.add_pod("web", "n1", tolerations=LATER)
    await asyncio.sleep(2)
    await s.stop("n1")
    await s.until_taints("n1", *SILENT)
    await s.until_unready("web")
    s.start("n1")
    await s.post("n1")
    await s.until_taints("n1")


@scenario()
async def never_says_anything(s: Stage) -> None:
    """After the startup grace; its pods are not touched before they go."""
    await s.raise_node("up")
    await s.create_node("n1", zone=s.zone())
    await s.add_pod("web", "n1", tolerations=LATER)
    await s.until_taints("n1", *SILENT)


@scenario()
async def says_not_ready(s: Stage) -> None:
    """The agent is alive and says so: its pods go in their time, and are shown as the agent shows them."""
    for name in ("up", "n1"):
        await s.raise_node(name)
    await s.add_pod("web", "n1", tolerations=SOON)
    await asyncio.sleep(2)
    await s.post("n1", Ready="False")
    await s.until_taints("n1", *UNWELL)
    await s.until_going("web")


@scenario()
async def not_ready_then_silent(s: Stage) -> None:
    for name in ("up", "n1"):
        await s.raise_node(name)
    await s.add_pod("web", "n1", tolerations=LATER)
    await asyncio.sleep(1)
    await s.post("n1", Ready="False")
    await s.until_taints("n1", *UNWELL)
    await s.stop("n1")
    await s.until_taints("n1", *SILENT)


@scenario()
async def silent_then_not_ready(s: Stage) -> None:
    for name in ("up", "n1"):
        await s.raise_node(name)
    await s.add_pod("web", "n1", tolerations=LATER)
    await asyncio.sleep(1)
    await s.stop("n1")
    await s.until_taints("n1", *SILENT)
    await s.until_unready("web")
    s.start("n1")
    await s.post("n1", Ready="False")
    await s.until_taints("n1", *UNWELL)


@scenario()
async def under_pressure(s: Stage) -> None:
    """Each condition its taint, one after the other; all go together."""
    await s.raise_node("n1")
    await asyncio.sleep(1)
    said: dict[str, str] = {}
    wanted: list[str] = []
    for type_, key in (
        ("MemoryPressure", "memory-pressure"),
        ("DiskPressure", "disk-pressure"),
        ("PIDPressure", "pid-pressure"),
        ("NetworkUnavailable", "network-unavailable"),
    ):
        said[type_] = "True"
        wanted.append(f"{key}:NoSchedule")
        await s.post("n1", **said)
        await s.until_taints("n1", *wanted)
    await s.post("n1", NetworkUnavailable="False")
    await s.until_taints("n1")


@scenario()
async def cordoned_and_back(s: Stage) -> None:
    """Its pods stay."""
    await s.raise_node("n1")
    await s.add_pod("web", "n1")
    await s.client.patch(NODES, f"{s.prefix}n1", {"spec": {"unschedulable": True}})
    await s.until_taints("n1", "unschedulable:NoSchedule")
    await s.client.patch(NODES, f"{s.prefix}n1", {"spec": {"unschedulable": None}})
    await s.until_taints("n1")


@scenario()
async def lease_alone(s: Stage) -> None:
    """A node that never said anything lives by its lease."""
    await s.create_node("n1", zone=s.zone())
    await s.renew("n1")
    s.start("n1")
    await asyncio.sleep(2 * GRACE_SECONDS)


@scenario()
async def status_alone(s: Stage) -> None:
    """And one whose lease is dead by its status."""
    await s.raise_node("n1", beats=False)
    for _ in range(int(2 * GRACE_SECONDS)):
        await asyncio.sleep(1)
        await s.post("n1")


@scenario()
async def zone_is_down(s: Stage) -> None:
    """All of one zone: evicted all the same, node by node."""
    for number in range(3):
        await s.raise_node(f"n{number}")
        await s.add_pod(f"on-n{number}", f"n{number}", tolerations=SOON)
    await asyncio.sleep(2)
    await s.stop("n0", "n1", "n2")
    await s.until_going("on-n0", "on-n1", "on-n2")


@scenario()
async def most_of_a_zone_is_down(s: Stage) -> None:
    """Three of five: nothing new comes to them, and nobody is evicted. They never say anything: that counts as not
    ready from the first look, so no turn is given before the zone is known to be partly down."""
    for number in range(3):
        await s.create_node(f"n{number}", zone=s.zone())
    for number in range(3, 5):
        await s.raise_node(f"n{number}")
    await s.add_pod("web", "n0", tolerations=SOON)
    for number in range(3):
        await s.until_taints(f"n{number}", "unreachable:NoSchedule")
    await asyncio.sleep(5)


@scenario()
async def taint_of_a_user(s: Stage) -> None:
    """Who does not bear it goes at once, who bears it for a time then, who bears it for ever never."""
    await s.raise_node("n1")
    for name, tolerations in (
        ("goes", []),
        ("other", [tolerates("something-else")]),
        ("waits", [tolerates("repair", 3)]),
        ("stays", [tolerates("repair")]),
        ("bears-all", [tolerates()]),
    ):
        await s.add_pod(name, "n1", tolerations=tolerations)
    await s.taint("n1", "repair")
    await s.until_going("goes", "other", "waits")


@scenario()
async def taint_taken_back(s: Stage) -> None:
    """In time for one, too late for the other."""
    await s.raise_node("n1")
    await s.add_pod("goes", "n1")
    await s.add_pod("waits", "n1", tolerations=[tolerates("repair", 3600)])
    await s.taint("n1", "repair")
    await s.until_going("goes")
    await asyncio.sleep(0.5)
    await s.taint("n1")


@scenario()
async def second_taint(s: Stage) -> None:
    """One that is not borne ends the wait for the first; one that is borne for less changes nothing."""
    await s.raise_node("n1")
    await s.add_pod("goes", "n1", tolerations=[tolerates("a", 3600)])
    await s.add_pod("kept", "n1", tolerations=[tolerates("a", 3600), tolerates("b", 1)])
    await s.taint("n1", "a")
    await asyncio.sleep(1)
    await s.taint("n1", "a", "b")
    await s.until_going("goes")
    await asyncio.sleep(3)


@scenario()
async def toleration_shortened_and_lengthened(s: Stage) -> None:
    """What was set stays, whichever way."""
    await s.raise_node("n1")
    for name, seconds in (("shorter", 3600), ("longer", 3)):
        await s.add_pod(name, "n1", tolerations=[tolerates("a", seconds)])
    await s.taint("n1", "a")
    await asyncio.sleep(1)
    for name, seconds in (("shorter", 1), ("longer", 3600)):
        pod = await s.pod(name)
        assert pod is not None
        changed = [
            {**each, "tolerationSeconds": seconds} if each["key"] == "a" else each
            for each in pod["spec"]["tolerations"]
        ]
        await s.client.patch(PODS, s.prefix + name, {"spec": {"tolerations": changed}}, "default")
    await s.until_going("longer")


@scenario()
async def finished_and_going_pods(s: Stage) -> None:
    """Neither phase nor deletion keeps a pod."""
    await s.raise_node("n1")
    for name in ("done", "going"):
        await s.add_pod(name, "n1")
    await s.client.patch(
        PODS, f"{s.prefix}done", {"status": {"phase": "Succeeded"}}, "default", subresource="status"
    )
    await s.client.delete(PODS, f"{s.prefix}going", "default")
    await s.taint("n1", "repair")
    await s.until("the finished pod is gone", lambda: "gone" in s.last("Pod", "done"))


@scenario()
async def pod_comes_late(s: Stage) -> None:
    """Onto a node that is silent already."""
    for name in ("up", "n1"):
        await s.raise_node(name)
    await asyncio.sleep(1)
    await s.stop("n1")
    await s.until_taints("n1", *SILENT)
    pod = await s.add_pod("web", tolerations=[*SOON, tolerates("x")])
    await s.client.bind(f"{s.prefix}web", "default", f"{s.prefix}n1", uid=pod["metadata"]["uid"])
    await s.until_unready("web")
    await s.until_going("web")


@scenario()
async def pod_bound_to_a_tainted_node(s: Stage) -> None:
    await s.raise_node("n1", taints=[{"key": "repair", "effect": "NoExecute"}])
    pods = {
        name: await s.add_pod(name, tolerations=given)
        for name, given in (("goes", []), ("stays", [tolerates()]))
    }
    for name, pod in pods.items():
        await s.client.bind(s.prefix + name, "default", f"{s.prefix}n1", uid=pod["metadata"]["uid"])
    await s.until_going("goes")


@scenario()
async def node_is_deleted(s: Stage) -> None:
    """While it is silent: what was set for its pods stays set."""
    for name in ("up", "n1"):
        await s.raise_node(name)
    await s.add_pod("web", "n1", tolerations=[tolerates(NOT_READY, 5), tolerates(UNREACHABLE, 5)])
    await asyncio.sleep(1)
    await s.stop("n1")
    await s.until_taints("n1", *SILENT)
    await s.client.delete(NODES, f"{s.prefix}n1")
    await s.until_going("web")


@scenario()
async def labels_and_taints_of_others(s: Stage) -> None:
    """The older labels follow the newer ones; other taints stay through all of it."""
    await s.raise_node("up")
    await s.raise_node(
        "n1",
        labels={
            "kubernetes.io/os": "linux",
            "kubernetes.io/arch": "arm64",
            "beta.kubernetes.io/arch": "none",
        },
        taints=[
            {"key": "mine", "value": "v", "effect": "NoSchedule"},
            {"key": UNREACHABLE, "effect": "PreferNoSchedule"},
        ],
    )
    await asyncio.sleep(2)
    await s.stop("n1")
    others = ("mine:NoSchedule", "unreachable:PreferNoSchedule")
    await s.until_taints("n1", *others, *SILENT)
    s.start("n1")
    await s.post("n1")
    await s.until_taints("n1", *others)


@scenario()
async def registers_with_evicting_taints(s: Stage) -> None:
    """A node that is new loses them, and keeps others."""
    both = [{"key": key, "effect": "NoExecute"} for key in (NOT_READY, UNREACHABLE, "mine")]
    await s.raise_node("n1", taints=both)
    await s.until_taints("n1", "mine:NoExecute")


@scenario(is_alone=True)
async def all_zones_go_down(s: Stage) -> None:
    """Nobody is evicted, and what was tainted is taken back; with one of them ready again it goes on."""
    for name, zone in (("a1", "a"), ("a2", "a"), ("b1", "b")):
        await s.raise_node(name, zone)
    await s.add_pod("web", "a1", tolerations=LATER)
    await asyncio.sleep(2)
    await s.stop("a1")
    await s.until_taints("a1", *SILENT)
    await s.stop("b1")
    await s.until_taints("b1", *SILENT)
    await s.stop("a2")
    await s.until_ready("a2", "Unknown")
    for name in ("a1", "a2", "b1"):
        await s.until_taints(name, "unreachable:NoSchedule")
    await asyncio.sleep(4)
    s.start("b1")
    await s.post("b1")
    await s.until_taints("b1")
    await s.until_taints("a1", *SILENT)
    await s.until_taints("a2", *SILENT)
