"""docs/fail-over-a-statefulset.md and docs/who-deleted-my-pod.md: what they tell people to type, typed in order in a
cluster in which it happens, does what they say. The same words run as processes in tests/real/explain.
"""

from __future__ import annotations

import re
import shlex

from podlife.client import NODES, PODS, STATEFUL_SETS
from podlife.diagnosis import find_stuck, look_at_node, look_at_pod
from podlife.explain import Explanation
from podlife.testing import Cluster, ClusterNodeSpec, virtual_time
from tests.component.explain.kubectl_words import type_in
from tests.component.stories.objects import workload
from tests.kit.real_parts import ROOT

FAIL_OVER = (ROOT / "docs" / "fail-over-a-statefulset.md").read_text(encoding="utf-8")
WHO = (ROOT / "docs" / "who-deleted-my-pod.md").read_text(encoding="utf-8")


def blocks(page: str, language: str = "") -> list[str]:
    """What stands between the fences of a language, or of none."""
    found = re.findall(r"^```(\w*)\n(.*?)^```$", page, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


def typed(page: str) -> list[str]:
    """Every command, in order."""
    return [line for block in blocks(page) for line in block.splitlines()]


async def run(cluster: Cluster, line: str) -> Explanation | None:
    words = shlex.split(line)
    if words[:2] == ["podlife", "explain"]:
        if words[2] == "node":
            return await look_at_node(cluster.client, cluster.clock, words[3])
        return await look_at_pod(cluster.client, cluster.clock, "default", words[3])
    if words[:3] == ["kubectl", "get", "pod"]:
        await cluster.client.get(PODS, words[3], "default")
    else:
        await type_in(cluster.client, line)
        await cluster.settled()
    return None


@virtual_time
async def test_a_statefulset_fails_over_as_the_page_says() -> None:
    first, node, taint, get, again, untaint = typed(FAIL_OVER)
    # The fullest is not taken: the first pod goes to the first node.
    async with Cluster(
        nodes=(ClusterNodeSpec("n1"), ClusterNodeSpec("n2"), ClusterNodeSpec("n3"))
    ) as cluster:
        await cluster.client.create(STATEFUL_SETS, workload("db", 1, serviceName="db"), "default")
        await cluster.settled()
        old = await cluster.client.get(PODS, "db-0", "default")
        assert old["spec"]["nodeName"] == "n1"
        await cluster.node("n1").power_off()
        await cluster.advance(seconds=90)
        early = await run(cluster, first)
        assert early is not None
        assert early.causes[0].name == "node-not-ready"
        assert [each.who for each in early.causes[0].upcoming] == ["taint eviction"]
        await cluster.advance(minutes=6)
        for line, cause in ((first, "taint-missing"), (node, "not-ready")):
            found = await run(cluster, line)
            assert found is not None
            assert found.causes[0].name == cause
            assert found.causes[0].remedies[0].command == taint
        await run(cluster, taint)
        await run(cluster, get)
        new = await cluster.client.get(PODS, "db-0", "default")
        assert new["spec"]["nodeName"] in ("n2", "n3")
        found = await run(cluster, again)
        assert found is not None
        assert (found.stage, found.causes) == ("running and ready", ())
        await cluster.node("n1").start()
        await cluster.advance(minutes=1)
        found = await run(cluster, node)
        assert found is not None
        assert found.causes[0].name == "still-out-of-service"
        assert found.causes[0].remedies[0].command == untaint
        await run(cluster, untaint)
        assert not (await cluster.client.get(NODES, "n1"))["spec"].get("taints")


@virtual_time
async def test_the_deletion_is_told_before_and_after_as_the_page_says() -> None:
    before, after, as_json, *stuck = typed(WHO)
    assert [line.split(" ")[1] for line in stuck] == ["stuck", "stuck"]
    shown = blocks(WHO, "text")
    async with Cluster(nodes=2) as cluster:
        await cluster.client.create(STATEFUL_SETS, workload("web", 1, serviceName="web"), "default")
        await cluster.settled()
        await cluster.client.scale(STATEFUL_SETS, "web", "default", 1)
        await cluster.node("n1").power_off()
        await cluster.advance(minutes=7)
        found = await run(cluster, before)
        assert found is not None
        assert f"Pod default/web-0: {found.stage}\n" in shown[0]
        assert shown[0].splitlines()[1] == f"Deleted {found.deletion}"
        _, listed = await find_stuck(cluster.client, cluster.clock, "default")
        assert [each.name for each in listed] == ["web-0"]
        await cluster.controllers.kill("statefulset")
        await cluster.node("n1").remove()
        await cluster.advance(minutes=3)
        for line in (after, as_json):
            found = await run(cluster, line)
            assert found is not None
            assert f"Pod default/web-0: {found.stage}\nDeleted {found.deletion}\n" == shown[1]
