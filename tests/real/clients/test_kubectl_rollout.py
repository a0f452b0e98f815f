"""kubectl rollout against objects whose status the test writes, as the controllers would."""

from __future__ import annotations

from typing import Any

import pytest

from tests.real.clients import objects
from tests.real.clients.pair import Pair, manifest

PROGRESSING = dict.fromkeys(("lastUpdateTime", "lastTransitionTime"), "2026-01-01T00:00:00Z") | {
    "type": "Progressing",
    "status": "True",
    "reason": "NewReplicaSetAvailable",
    "message": "done",
}


@pytest.fixture
def deployed(pair: Pair) -> Pair:
    """A deployment in its second revision, with a replica set for each."""
    web = objects.deployment("web", replicas=2)
    web["metadata"]["annotations"] = {"deployment.kubernetes.io/revision": "2"}
    web["spec"]["template"]["spec"]["containers"][0]["image"] = "new:2"
    pair("create", "-f", "-", stdin=manifest(web))
    return pair


def revision(number: int, image: str, owner: str) -> dict[str, Any]:
    made = objects.replica_set("web", replicas=0)
    made["metadata"].update(
        name=f"web-{number}",
        annotations={"deployment.kubernetes.io/revision": str(number)},
        ownerReferences=[
            {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web", "uid": owner, "controller": True}
        ],
    )
    made["spec"]["template"]["metadata"]["labels"]["pod-template-hash"] = str(number)
    made["spec"]["selector"]["matchLabels"]["pod-template-hash"] = str(number)
    made["metadata"]["labels"]["pod-template-hash"] = str(number)
    made["spec"]["template"]["spec"]["containers"][0]["image"] = image
    return made


def test_status_tells_how_far_a_rollout_is(deployed: Pair) -> None:
    said = deployed("rollout", "status", "deployment/web", "--timeout=5s", code=1)
    assert "Waiting for deployment" in said.text
    counts = dict.fromkeys(("replicas", "updatedReplicas", "readyReplicas", "availableReplicas"), 2)
    status = {"observedGeneration": 1, **counts, "conditions": [PROGRESSING]}
    deployed.set_status("deployment/web", status)
    assert "successfully rolled out" in deployed("rollout", "status", "deployment/web").out
    deployed("get", "deployment", "web", "-o", "wide")
    deployed("describe", "deployment", "web")


def test_status_follows_a_rollout_to_its_end(pair: Pair) -> None:
    pair.ours("create", "-f", "-", stdin=manifest(objects.stateful_set("db", replicas=1)))
    status = pair.start("rollout", "status", "statefulset/db", "--timeout=180s")
    try:
        assert status.stdout is not None
        assert "Waiting for" in status.stdout.readline()
        done = (
            '{"status":{"observedGeneration":1,"replicas":1,"readyReplicas":1,"updatedReplicas":1,'
            '"availableReplicas":1,"currentRevision":"a","updateRevision":"a"}}'
        )
        pair.ours("patch", "statefulset", "db", "--subresource=status", "--type=merge", "-p", done)
        out, _ = status.communicate(timeout=180)
        assert status.returncode == 0, out
    finally:
        status.kill()


def test_history_and_undo_find_the_revisions(deployed: Pair) -> None:
    for run in (deployed.ours, deployed.theirs):
        owner = run("get", "deployment", "web", "-o", "jsonpath={.metadata.uid}").out
        revisions = revision(1, "old:1", owner), revision(2, "new:2", owner)
        run("create", "-f", "-", stdin=manifest(*revisions))
    deployed("rollout", "history", "deployment/web")
    deployed("rollout", "history", "deployment/web", "--revision=1")
    deployed("rollout", "undo", "deployment/web", "--dry-run=server")
    deployed("rollout", "undo", "deployment/web")
    containers = deployed.get("deployment", "web")["spec"]["template"]["spec"]["containers"]
    assert containers[0]["image"] == "old:1"
    deployed("rollout", "undo", "deployment/web", "--to-revision=9", code=1)


def test_pause_resume_and_restart_change_the_deployment(deployed: Pair) -> None:
    deployed("rollout", "pause", "deployment/web")
    assert deployed.get("deployment", "web")["spec"]["paused"] is True
    deployed("rollout", "pause", "deployment/web", code=1)
    deployed("rollout", "restart", "deployment/web", code=1)
    deployed("rollout", "resume", "deployment/web")
    deployed("rollout", "restart", "deployment/web")
    template = deployed.get("deployment", "web")["spec"]["template"]
    assert "kubectl.kubernetes.io/restartedAt" in template["metadata"]["annotations"]
