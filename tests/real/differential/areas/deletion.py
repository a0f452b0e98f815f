"""Graceful deletion, preconditions, finalizers and deletion of collections: the GD- rules as the real one has them."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import (
    APPS,
    CORE,
    PODS,
    config_map,
    delete_options,
    of,
    phase,
    pod,
    workload,
)
from tests.real.differential.steps import Area

DELETION = Area("deletion")
MAPS = CORE + "/configmaps"


def _grace(seconds: int) -> dict[str, Any]:
    return delete_options(gracePeriodSeconds=seconds)


def _without_moment(body: dict[str, Any]) -> Any:
    return body["metadata"]["deletionGracePeriodSeconds"]


# GD-01 … GD-05, GD-70 … GD-75: the grace of a first delete.
_first = {
    "gd-01-own-grace": (pod("own", nodeName="n"), None, None),
    "gd-01-spec-grace": (pod("spec", nodeName="n", terminationGracePeriodSeconds=7), None, None),
    "gd-01-requested": (pod("requested", nodeName="n"), None, _grace(15)),
    "gd-71-longer-than-spec": (pod("longer", nodeName="n"), None, _grace(32)),
    "gd-02-unscheduled": (pod("unscheduled"), None, _grace(30)),
    "gd-03-failed": (pod("failed", nodeName="n"), "Failed", _grace(30)),
    "gd-03-succeeded": (pod("succeeded", nodeName="n"), "Succeeded", None),
    "gd-04-negative": (pod("negative", nodeName="n"), "Running", _grace(-1)),
    "gd-05-pending-with-node": (pod("pending", nodeName="n"), "Pending", _grace(30)),
    "gd-52-zero": (pod("zero", nodeName="n"), None, _grace(0)),
    "gd-01-spec-zero": (pod("spec-zero", nodeName="n", terminationGracePeriodSeconds=0), None, None),
    "empty-options": (pod("empty-options", nodeName="n"), None, {}),
}
for name, (body, status, options) in _first.items():
    path = PODS + "/" + body["metadata"]["name"]
    DELETION.post(f"{name}-create", PODS, body)
    if status:
        DELETION.patch(f"{name}-phase", "merge", path + "/status", phase(status))
    DELETION.delete(f"{name}-delete", path, options)
DELETION.get("what-is-left-of-first-deletes", PODS)
# Beyond all time: upstream's deletion timestamp is what is left of an overflow.
DELETION.post(
    "endless-create", PODS, pod("endless", nodeName="n", terminationGracePeriodSeconds=300_000_000_000)
)
DELETION.delete("endless-delete", PODS + "/endless", pick=_without_moment)
DELETION.delete("endless-at-once", PODS + "/endless", _grace(0), pick=_without_moment)

# GD-11 … GD-31: a delete of what is being deleted already.
DELETION.post("second-create", PODS, pod("second", nodeName="n"))
DELETION.delete("second-first", PODS + "/second", _grace(30))
DELETION.delete("gd-11-absent-changes-nothing", PODS + "/second")
DELETION.delete("gd-12-longer-changes-nothing", PODS + "/second", _grace(60))
DELETION.delete("gd-12-equal-changes-nothing", PODS + "/second", _grace(30))
DELETION.delete("gd-13-shorter", PODS + "/second", _grace(20))
DELETION.get("gd-13-is-stored", PODS + "/second")
DELETION.patch(
    "gd-66-time-cannot-be-cleared", "merge", PODS + "/second", {"metadata": {"deletionTimestamp": None}}
)
DELETION.patch(
    "gd-66-grace-cannot-change",
    "merge",
    PODS + "/second",
    {"metadata": {"deletionGracePeriodSeconds": 1}},
    422,
)
DELETION.patch(
    "gd-66-no-new-finalizers",
    "merge",
    PODS + "/second",
    {"metadata": {"finalizers": ["example.com/late"]}},
    422,
)
DELETION.patch("update-while-terminating", "merge", PODS + "/second", {"metadata": {"labels": {"a": "b"}}})
DELETION.delete("gd-74-zero-ends-it", PODS + "/second", _grace(0))
DELETION.get("gd-74-gone", PODS + "/second", 404)
DELETION.delete("gd-50-missing", PODS + "/second", None, 404)

# GD-40 … GD-45: preconditions and options.
DELETION.post(
    "conditions-create",
    PODS,
    pod("conditions"),
    keep={"uid": "metadata.uid", "rv": "metadata.resourceVersion"},
)
_other_uid = {"uid": "99999999-9999-9999-9999-999999999999"}
DELETION.delete("gd-40-other-uid", PODS + "/conditions", delete_options(preconditions=_other_uid), 409)
DELETION.delete(
    "gd-40-other-uid-dry-run",
    PODS + "/conditions",
    delete_options(preconditions=_other_uid, dryRun=["All"]),
    409,
)
DELETION.delete(
    "gd-41-other-version", PODS + "/conditions", delete_options(preconditions={"resourceVersion": "1"}), 409
)
DELETION.delete(
    "gd-44-both-propagations",
    PODS + "/conditions",
    delete_options(orphanDependents=True, propagationPolicy="Orphan"),
    422,
)
DELETION.delete(
    "gd-44-unknown-propagation", PODS + "/conditions", delete_options(propagationPolicy="Slow"), 422
)
DELETION.delete("gd-44-bad-dry-run", PODS + "/conditions", delete_options(dryRun=["Some"]), 422)
DELETION.delete(
    "bad-options-before-missing", PODS + "/no-such", delete_options(propagationPolicy="Slow"), 422
)
DELETION.delete(
    "gd-45-options-before-uid",
    PODS + "/conditions",
    delete_options(propagationPolicy="Slow", preconditions=_other_uid),
    422,
)
DELETION.delete("options-of-another-kind", PODS + "/conditions", config_map("x"), 400)
DELETION.delete("options-unreadable", PODS + "/conditions", "{", 400)
DELETION.delete("grace-in-the-query", PODS + "/conditions?gracePeriodSeconds=abc", None, 400)
DELETION.delete("gd-65-dry-run-unscheduled", PODS + "/conditions?dryRun=All")
DELETION.get("gd-65-still-there", PODS + "/conditions")
DELETION.delete(
    "gd-43-right-conditions",
    PODS + "/conditions",
    delete_options(preconditions={"uid": "${uid}", "resourceVersion": "${rv}"}, gracePeriodSeconds=0),
)
DELETION.post("dry-create", PODS, pod("dry", nodeName="n"))
DELETION.delete("gd-65-dry-run-graceful", PODS + "/dry", delete_options(dryRun=["All"]))
DELETION.get("gd-65-unmarked", PODS + "/dry")
DELETION.delete("query-grace", PODS + "/dry?gracePeriodSeconds=10")
DELETION.delete("query-zero", PODS + "/dry?gracePeriodSeconds=0")
DELETION.post("old-create", PODS, pod("old", nodeName="n"))
DELETION.delete("gd-81-orphan-dependents-false", PODS + "/old", delete_options(orphanDependents=False), 202)

# Other kinds answer with a Status and know no grace.
DELETION.post("map-create", MAPS, config_map("m"))
DELETION.delete("gd-80-map-answers-with-a-status", MAPS + "/m", _grace(30))
DELETION.delete("map-missing", MAPS + "/m", None, 404)
DELETION.post("deployment-create", APPS + "/deployments", workload("Deployment", "d"))
DELETION.delete(
    "deployment-background", APPS + "/deployments/d", delete_options(propagationPolicy="Background")
)
DELETION.post("foreground-create", APPS + "/deployments", workload("Deployment", "f"))
DELETION.delete("gd-61-foreground", APPS + "/deployments/f", delete_options(propagationPolicy="Foreground"))
DELETION.get("gd-61-foreground-waits", APPS + "/deployments/f")
DELETION.delete("gd-61-orphan-later", APPS + "/deployments/f", delete_options(propagationPolicy="Orphan"))
DELETION.patch("foreground-done", "merge", APPS + "/deployments/f", {"metadata": {"finalizers": None}})
DELETION.get("foreground-gone", APPS + "/deployments/f", 404)
DELETION.post("orphan-create", APPS + "/deployments", workload("Deployment", "o"))
DELETION.delete("gd-61-orphan", APPS + "/deployments/o", delete_options(propagationPolicy="Orphan"))
DELETION.post("service-create", CORE + "/services", of("v1", "Service", "s", spec={"ports": [{"port": 80}]}))
DELETION.delete("service-answers-with-itself", CORE + "/services/s")
DELETION.post("account-create", CORE + "/serviceaccounts", of("v1", "ServiceAccount", "robot"))
DELETION.delete("account", CORE + "/serviceaccounts/robot")

FINALIZERS = Area("finalizers")
_held = {"finalizers": ["example.com/hold"]}
FINALIZERS.get("start", MAPS, keep={"rv": "metadata.resourceVersion"})
FINALIZERS.post("map-create", MAPS, config_map("m", metadata=_held))
FINALIZERS.delete("gd-59-map-is-marked", MAPS + "/m")
FINALIZERS.delete("map-again", MAPS + "/m")
FINALIZERS.patch("gd-56-still-held", "merge", MAPS + "/m", {"data": {"a": "b"}})
FINALIZERS.patch("gd-56-released", "merge", MAPS + "/m", {"metadata": {"finalizers": []}})
FINALIZERS.get("map-gone", MAPS + "/m", 404)
FINALIZERS.post("pod-create", PODS, pod("p", nodeName="n", metadata=_held))
FINALIZERS.delete("gd-55-pod-zero-grace-stays", PODS + "/p", _grace(0))
FINALIZERS.get("pod-is-marked", PODS + "/p")
FINALIZERS.patch("status-while-held", "merge", PODS + "/p/status", phase("Failed"))
FINALIZERS.delete("gd-10-again", PODS + "/p", _grace(0))
FINALIZERS.patch("pod-released", "merge", PODS + "/p", {"metadata": {"finalizers": None}})
FINALIZERS.get("pod-gone", PODS + "/p", 404)
FINALIZERS.post("graceful-create", PODS, pod("q", nodeName="n", metadata=_held))
FINALIZERS.delete("graceful-delete", PODS + "/q")
FINALIZERS.patch("gd-57-released-while-graceful", "merge", PODS + "/q", {"metadata": {"finalizers": None}})
FINALIZERS.get("gd-57-waits", PODS + "/q")
FINALIZERS.delete("graceful-ends", PODS + "/q", _grace(0))
FINALIZERS.get("graceful-gone", PODS + "/q", 404)
FINALIZERS.watch("events-of-pods", PODS + "?resourceVersion=${rv}")
FINALIZERS.watch("events-of-maps", MAPS + "?resourceVersion=${rv}")

COLLECTIONS = Area("collections")
COLLECTIONS.get("start", PODS, keep={"rv": "metadata.resourceVersion"})
for letter in "abc":
    COLLECTIONS.post(f"map-{letter}", MAPS, config_map(letter, metadata={"labels": {"n": letter}}))
    COLLECTIONS.post(f"pod-{letter}", PODS, pod(letter, metadata={"labels": {"n": letter}}))
COLLECTIONS.post("pod-running", PODS, pod("running", nodeName="n"))
COLLECTIONS.delete("dry-run", MAPS + "?dryRun=All")
COLLECTIONS.get("dry-run-left-all", MAPS)
COLLECTIONS.delete("selected", MAPS + "?labelSelector=n%3Da")
COLLECTIONS.get("selected-left", MAPS)
COLLECTIONS.delete("one-by-field", MAPS + "?fieldSelector=metadata.name%3Db")
COLLECTIONS.delete("bad-selector", MAPS + "?labelSelector=a%20b%20c", None, 400)
COLLECTIONS.delete("bad-options", MAPS, delete_options(propagationPolicy="Slow"), 422)
COLLECTIONS.delete("all-maps", MAPS)
COLLECTIONS.delete("nothing-left", MAPS)
COLLECTIONS.delete("all-pods", PODS)
COLLECTIONS.get("running-is-marked", PODS)
COLLECTIONS.delete("all-pods-now", PODS, _grace(0))
COLLECTIONS.get("no-pods", PODS)
COLLECTIONS.delete("services-cannot", CORE + "/services", None, 200)
COLLECTIONS.delete("across-namespaces", "/api/v1/pods", None, 405)
COLLECTIONS.watch("events", PODS + "?resourceVersion=${rv}")
