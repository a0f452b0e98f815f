"""kubectl taint, cordon, drain and describe node. Nodes belong to no namespace, so each test names its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.real.clients import objects
from tests.real.clients.pair import Pair, manifest

CAPACITY = {"cpu": "4", "memory": "8Gi", "pods": "110"}
SINCE = dict.fromkeys(("lastHeartbeatTime", "lastTransitionTime"), "2026-01-01T00:00:00Z")
INFO = dict.fromkeys(("bootID", "machineID", "systemUUID", "kubeProxyVersion"), "") | {
    "kubeletVersion": "v1.36.3",
    "osImage": "Linux",
    "architecture": "amd64",
    "operatingSystem": "linux",
    "containerRuntimeVersion": "x://1",
    "kernelVersion": "6",
}


@pytest.fixture
def node(pair: Pair) -> Iterator[str]:
    """A ready node on both servers."""
    name = f"node-of-{pair.namespace}"
    pair("create", "-f", "-", stdin=manifest(objects.node(name)))
    # A new node has this taint until the node lifecycle controller removes it; none runs here.
    pair("taint", "node", name, "node.kubernetes.io/not-ready-")
    ready = {"type": "Ready", "status": "True", "reason": "KubeletReady", "message": "here", **SINCE}
    status = {"capacity": CAPACITY, "allocatable": CAPACITY, "conditions": [ready], "nodeInfo": INFO}
    pair.set_status(f"node/{name}", status)
    yield name
    pair("delete", "node", name)


def test_a_node_is_printed_and_described_the_same(pair: Pair, node: str) -> None:
    resources = {"requests": {"cpu": "250m", "memory": "64Mi"}, "limits": {"cpu": "1"}}
    pod = objects.pod("p", nodeName=node)
    pod["spec"]["containers"][0]["resources"] = resources
    pair("create", "-f", "-", stdin=manifest(pod))
    for output in ([], ["-o", "wide"], ["-o", "yaml"]):
        pair("get", "node", node, *output)
    said = pair("describe", "node", node)
    assert "250m (6%)" in said.out


def test_cordon_and_uncordon_set_and_clear_unschedulable(pair: Pair, node: str) -> None:
    pair("cordon", node)
    assert pair.get("node", node)["spec"]["unschedulable"] is True
    assert "SchedulingDisabled" in pair("get", "node", node).out
    assert "already cordoned" in pair("cordon", node).out
    pair("uncordon", node)
    assert "unschedulable" not in pair.get("node", node)["spec"]


def test_taints_are_set_changed_and_removed(pair: Pair, node: str) -> None:
    pair("taint", "node", node, "dedicated=db:NoSchedule", "gone=yes:NoExecute")
    pair("taint", "node", node, "dedicated=web:NoSchedule", code=1)
    pair("taint", "node", node, "dedicated=web:NoSchedule", "--overwrite")
    pair("taint", "node", node, "gone:NoExecute-")
    taints = pair.get("node", node)["spec"]["taints"]
    assert [(taint["key"], taint["value"], taint["effect"]) for taint in taints] == [
        ("dedicated", "web", "NoSchedule")
    ]
    pair("taint", "node", node, "dedicated-")
    pair("taint", "node", node, "bad:Effect", code=1)


def test_drain_names_what_it_would_leave_behind(pair: Pair, node: str) -> None:
    pair("create", "-f", "-", stdin=manifest(objects.pod("lone", nodeName=node)))
    said = pair("drain", node, "--timeout=5s", code=1)
    assert "cannot delete" in said.err
    assert "deletionTimestamp" not in pair.get("pod", "lone")["metadata"]


def test_a_drain_waits_for_the_budget_and_for_the_pod_to_end(pair: Pair, node: str) -> None:
    pod, budget = objects.pod("guarded", nodeName=node), objects.budget("guard", minAvailable=1)
    pair("create", "-f", "-", stdin=manifest(pod, budget))
    pair.set_status("pod/guarded", objects.READY["status"])
    counts = {"currentHealthy": 1, "desiredHealthy": 1, "expectedPods": 1, "observedGeneration": 1}
    pair.set_status("pdb/guard", {"disruptionsAllowed": 0, **counts})
    drain = pair.start("drain", node, "--force", "--grace-period=9", "--timeout=180s")
    try:
        assert drain.stdout is not None
        refused = next(line for line in drain.stdout if "disruption budget" in line)
        assert "will retry" in refused
        assert "deletionTimestamp" not in pair.get("pod", "guarded")["metadata"]
        pair.set_status("pdb/guard", {"disruptionsAllowed": 1, **counts, "currentHealthy": 2})
        pair.ours(
            "wait", "pod/guarded", "--for=jsonpath={.metadata.deletionGracePeriodSeconds}=9", "--timeout=180s"
        )
        assert "guarded" in pair.get("pdb", "guard")["status"]["disruptedPods"]
        assert pair.get("pdb", "guard")["status"]["disruptionsAllowed"] == 0
        # The node's agent has ended the pod.
        pair.ours("delete", "pod", "guarded", "--force", "--grace-period=0")
        out, _ = drain.communicate(timeout=180)
        assert drain.returncode == 0, out
        assert f"node/{node} drained" in out
    finally:
        drain.kill()
    assert pair.get("node", node)["spec"]["unschedulable"] is True


def test_a_drain_without_grace_empties_the_node(pair: Pair, node: str) -> None:
    pair("create", "-f", "-", stdin=manifest(*(objects.pod(name, nodeName=node) for name in ("a", "b"))))
    pair.ours("drain", node, "--force", "--grace-period=0", "--timeout=180s")
    assert pair.get("pods") == []
