"""What may change in a pod, and through which door."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import PODS, container, pod
from tests.real.differential.steps import Area

UPDATES = Area("pod-updates")

UPDATES.post(
    "create",
    PODS,
    pod("p", metadata={"labels": {"v": "1"}}),
    keep={"uid": "metadata.uid", "rv": "metadata.resourceVersion"},
)
UPDATES.get("get", PODS + "/p", keep={"rv": "metadata.resourceVersion"})
_current = pod("p", metadata={"labels": {"v": "2"}, "resourceVersion": "${rv}"})


def _spec(**changes: Any) -> dict[str, Any]:
    return {"spec": changes}


UPDATES.patch("label", "merge", PODS + "/p", {"metadata": {"labels": {"v": "2"}}})
UPDATES.put("stale-version", PODS + "/p", _current, 409)
UPDATES.patch("same-again-writes-nothing", "merge", PODS + "/p", {"metadata": {"labels": {"v": "2"}}})
UPDATES.patch("image", "strategic", PODS + "/p", _spec(containers=[{"name": "main", "image": "other:2"}]))
UPDATES.patch("deadline-set", "merge", PODS + "/p", _spec(activeDeadlineSeconds=50))
UPDATES.patch("deadline-shortened", "merge", PODS + "/p", _spec(activeDeadlineSeconds=40))
UPDATES.patch("deadline-lengthened", "merge", PODS + "/p", _spec(activeDeadlineSeconds=60), 422)
UPDATES.patch("deadline-removed", "merge", PODS + "/p", _spec(activeDeadlineSeconds=None), 422)
UPDATES.patch("node-name", "merge", PODS + "/p", _spec(nodeName="n"), 422)
UPDATES.patch("grace", "merge", PODS + "/p", _spec(terminationGracePeriodSeconds=5), 422)
UPDATES.patch("restart-policy", "merge", PODS + "/p", _spec(restartPolicy="Never"), 422)
UPDATES.patch("second-container", "strategic", PODS + "/p", _spec(containers=[container("b")]), 422)
UPDATES.patch("empty-image", "strategic", PODS + "/p", _spec(containers=[{"name": "main", "image": ""}]), 422)
UPDATES.patch(
    "toleration-added",
    "json",
    PODS + "/p",
    [{"op": "add", "path": "/spec/tolerations/-", "value": {"key": "x", "operator": "Exists"}}],
)
UPDATES.patch(
    "default-toleration-comes-back",
    "json",
    PODS + "/p",
    [{"op": "remove", "path": "/spec/tolerations/0"}],
)
UPDATES.patch(
    "own-toleration-removed", "json", PODS + "/p", [{"op": "remove", "path": "/spec/tolerations/1"}], 422
)
UPDATES.patch("name-changed", "merge", PODS + "/p", {"metadata": {"name": "q"}}, 400)
UPDATES.patch("namespace-changed", "merge", PODS + "/p", {"metadata": {"namespace": "q"}}, 400)
UPDATES.patch("uid-changed", "merge", PODS + "/p", {"metadata": {"uid": "q"}}, 422)
UPDATES.patch(
    "version-in-patch-is-a-condition", "merge", PODS + "/p", {"metadata": {"resourceVersion": "1"}}, 409
)
UPDATES.patch(
    "creation-time-is-kept",
    "merge",
    PODS + "/p",
    {"metadata": {"creationTimestamp": "2001-01-01T00:00:00Z"}},
)
UPDATES.patch("generation-is-kept", "merge", PODS + "/p", {"metadata": {"generation": 77}})
UPDATES.patch(
    "deletion-time-cannot-be-set",
    "merge",
    PODS + "/p",
    {"metadata": {"deletionTimestamp": "2001-01-01T00:00:00Z"}},
    422,
)
UPDATES.patch("status-through-the-object-is-ignored", "merge", PODS + "/p", {"status": {"phase": "Failed"}})
UPDATES.patch("phase", "merge", PODS + "/p/status", {"status": {"phase": "Running", "podIP": "10.9.8.7"}})
UPDATES.patch("phase-unknown", "merge", PODS + "/p/status", {"status": {"phase": "Dancing"}})
UPDATES.patch("spec-through-status-is-ignored", "merge", PODS + "/p/status", _spec(nodeName="n"))
UPDATES.patch("labels-through-status", "merge", PODS + "/p/status", {"metadata": {"labels": {"w": "3"}}})
UPDATES.patch(
    "qos-class-cannot-change", "merge", PODS + "/p/status", {"status": {"qosClass": "Guaranteed"}}, 422
)
UPDATES.patch(
    "conditions-merge-by-type",
    "strategic",
    PODS + "/p/status",
    {
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}, {"type": "Initialized", "status": "True"}]
        }
    },
)
UPDATES.patch(
    "one-condition-changes",
    "strategic",
    PODS + "/p/status",
    {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": "Because"}]}},
)
UPDATES.patch(
    "container-statuses",
    "strategic",
    PODS + "/p/status",
    {
        "status": {
            "containerStatuses": [
                {
                    "name": "main",
                    "ready": True,
                    "restartCount": 0,
                    "image": "other:2",
                    "imageID": "",
                    "state": {"running": {"startedAt": "2020-01-01T00:00:00Z"}},
                }
            ]
        }
    },
)
UPDATES.get("status-alone", PODS + "/p/status")
UPDATES.get("get-again", PODS + "/p", keep={"rv": "metadata.resourceVersion"})
UPDATES.put("put-without-what-was-filled-in", PODS + "/p", pod("p"), 422)
UPDATES.put("put-on-a-missing-name", PODS + "/missing", pod("missing"), 404)
UPDATES.put("put-with-another-name", PODS + "/p", pod("other"), 400)
UPDATES.put(
    "put-with-another-uid",
    PODS + "/p",
    pod("p", metadata={"uid": "33333333-3333-3333-3333-333333333333"}),
    409,
)
UPDATES.post("gated", PODS, pod("gated", schedulingGates=[{"name": "a.b/c"}]))
UPDATES.patch("gate-removed", "merge", PODS + "/gated", _spec(schedulingGates=None))
UPDATES.patch("gate-added", "merge", PODS + "/gated", _spec(schedulingGates=[{"name": "d.e/f"}]), 422)
UPDATES.get("missing", PODS + "/missing", 404)
UPDATES.patch("patch-of-a-missing-one", "merge", PODS + "/missing", {}, 404)
