"""DT-01 to DT-11: what the API server adds to a pod that does not say how long it stays on a node that fails."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.storage import MemoryStore
from podlife.client import PODS, DeleteOptions
from podlife.testing import LoopClock, virtual_time
from tests.component.nodehealth.world import NOT_READY, UNREACHABLE, World, world
from tests.kit.embedded import connect

Toleration = dict[str, Any]


def tolerates(key: str, seconds: int = 300) -> Toleration:
    return {"key": key, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": seconds}


BOTH = [tolerates(NOT_READY), tolerates(UNREACHABLE)]
FOO = {"key": "foo", "operator": "Equal", "value": "bar", "effect": "NoSchedule"}
WITHOUT_EFFECT = {"key": UNREACHABLE, "operator": "Exists"}
WILD = {"operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 700}

ROWS = [
    pytest.param([], BOTH, id="DT-02 DT-04 none"),
    pytest.param([FOO], [FOO, *BOTH], id="DT-05 an unrelated one"),
    pytest.param(
        [tolerates(NOT_READY, 700)],
        [tolerates(NOT_READY, 700), tolerates(UNREACHABLE)],
        id="DT-06a not ready",
    ),
    pytest.param(
        [tolerates(UNREACHABLE, 700)],
        [tolerates(UNREACHABLE, 700), tolerates(NOT_READY)],
        id="DT-06b unreachable",
    ),
    pytest.param(
        [tolerates(NOT_READY, 7), tolerates(UNREACHABLE, 7)],
        [tolerates(NOT_READY, 7), tolerates(UNREACHABLE, 7)],
        id="DT-07 both",
    ),
    pytest.param([WITHOUT_EFFECT], [WITHOUT_EFFECT, tolerates(NOT_READY)], id="DT-08 without an effect"),
    pytest.param([WILD], [WILD], id="DT-09 everything"),
    # The operator, the value and the seconds do not matter.
    pytest.param(
        [
            {"key": NOT_READY, "operator": "Equal", "value": "x", "effect": "NoExecute"},
            tolerates(UNREACHABLE, 1),
        ],
        [
            {"key": NOT_READY, "operator": "Equal", "value": "x", "effect": "NoExecute"},
            tolerates(UNREACHABLE, 1),
        ],
        id="DT-03 another value",
    ),
]


async def tolerations(w: World, name: str = "web") -> list[Toleration]:
    pod = await w.pod(name)
    assert pod is not None
    return list(pod["spec"]["tolerations"])


@pytest.mark.parametrize(("given", "expected"), ROWS)
@virtual_time
async def test_a_new_pod(given: list[Toleration], expected: list[Toleration]) -> None:
    async with world() as w:
        await w.add_pod("web", tolerations=given)
        assert await tolerations(w) == expected


@virtual_time
async def test_an_update_that_leaves_them_out_gets_them_again_and_no_more() -> None:
    """DT-01 and DT-10: on create and update of pods, not of their status, and not on a delete."""
    async with world() as w:
        await w.add_pod("web")
        pod = await w.pod("web") or {}
        pod["spec"]["tolerations"] = []
        await w.client.update(PODS, pod)
        assert await tolerations(w) == BOTH
        await w.client.patch(PODS, "web", {"metadata": {"labels": {"a": "b"}}}, "default")
        await w.say_ready("web", "False")
        assert await tolerations(w) == BOTH
        await w.client.delete(PODS, "web", "default", options=DeleteOptions(grace_period_seconds=0))
        assert await w.pod("web") is None


@virtual_time
async def test_the_seconds_are_the_servers_flags() -> None:
    """DT-11."""
    server = assemble(
        MemoryStore(),
        clock=LoopClock(),
        authenticator=Authenticator(),
        not_ready_toleration_seconds=7,
        unreachable_toleration_seconds=9,
    )
    await create_system_namespaces(server.registry, ADMIN)
    async with connect(server) as client:
        pod = {"metadata": {"name": "web"}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
        made = await client.create(PODS, pod, "default")
        assert made["spec"]["tolerations"] == [tolerates(NOT_READY, 7), tolerates(UNREACHABLE, 9)]
