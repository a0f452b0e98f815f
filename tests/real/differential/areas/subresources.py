"""Binding, eviction with budgets, scale and the status of workloads."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import (
    APPS,
    CORE,
    NOT_READY,
    PODS,
    POLICY,
    READY,
    bind,
    budget,
    delete_options,
    eviction,
    of,
    phase,
    pod,
    template,
    workload,
)
from tests.real.differential.steps import Area

BINDING = Area("binding")
BINDING.post("create", PODS, pod("p"), keep={"uid": "metadata.uid"})
BINDING.post("without-target", PODS + "/p/binding", of("v1", "Binding", "p", target={"kind": "Node"}), 500)
BINDING.post(
    "to-another-kind", PODS + "/p/binding", of("v1", "Binding", "p", target={"kind": "Pod", "name": "n"}), 500
)
BINDING.post("of-another-name", PODS + "/p/binding", bind("q", "n"), 400)
BINDING.post("bind", PODS + "/p/binding", bind("p", "node-x"))
BINDING.get("bound", PODS + "/p")
BINDING.post("bind-again", PODS + "/p/binding", bind("p", "node-y"), 409)
BINDING.post("missing-pod", PODS + "/missing/binding", bind("missing", "n"), 404)
BINDING.post("create-annotated", PODS, pod("a"))
BINDING.post(
    "annotations-are-carried-over",
    PODS + "/a/binding",
    {**bind("a", "node-x"), "metadata": {"name": "a", "annotations": {"k": "v"}, "labels": {"l": "m"}}},
)
BINDING.get("annotated", PODS + "/a")
BINDING.post("create-legacy", PODS, pod("l"))
BINDING.post("legacy-path", CORE + "/bindings", bind("l", "node-x"))
BINDING.post("create-gated", PODS, pod("g", schedulingGates=[{"name": "a.b/c"}]))
BINDING.post("gated-cannot-be-bound", PODS + "/g/binding", bind("g", "node-x"), 409)
BINDING.post("create-deleted", PODS, pod("d", metadata={"finalizers": ["a.b/c"]}))
BINDING.delete("delete", PODS + "/d")
BINDING.post("terminating-cannot-be-bound", PODS + "/d/binding", bind("d", "node-x"), 409)
BINDING.post("dry-run", PODS, pod("e"))
BINDING.post("dry-run-bind", PODS + "/e/binding?dryRun=All", bind("e", "node-x"))
BINDING.get("dry-run-left-it", PODS + "/e")
BINDING.get("binding-cannot-be-read", PODS + "/p/binding", 405)
BINDING.get("log-of-an-unscheduled-pod-is-empty", PODS + "/e/log", 204)
BINDING.get("log-of-a-missing-pod", PODS + "/missing/log", 404)
BINDING.get("log-of-a-missing-container", PODS + "/e/log?container=nope", 400)
BINDING.get("log-with-bad-options", PODS + "/e/log?tailLines=-1", 422)
BINDING.post(
    "create-two",
    PODS,
    pod("two", nodeName="gone", containers=[{"name": "a", "image": "i"}, {"name": "b", "image": "i"}]),
)
BINDING.get("log-needs-a-choice", PODS + "/two/log", 400)

EVICTION = Area("eviction")
BUDGETS = POLICY + "/poddisruptionbudgets"


def _evict(step: str, name: str, code: int = 201, query: str = "", **fields: Any) -> None:
    EVICTION.post(step, PODS + f"/{name}/eviction{query}", eviction(name, **fields), code)


def _running(name: str, app: str, condition: dict[str, str] = READY) -> None:
    EVICTION.post(f"create-{name}", PODS, pod(name, nodeName="n", metadata={"labels": {"app": app}}))
    EVICTION.patch(f"run-{name}", "merge", PODS + f"/{name}/status", phase("Running", conditions=[condition]))


def _budget_status(step: str, name: str, **status: Any) -> None:
    fields = {"disruptionsAllowed": 0, "currentHealthy": 0, "desiredHealthy": 0, "expectedPods": 0, **status}
    EVICTION.patch(
        step, "merge", BUDGETS + f"/{name}/status", {"status": {"observedGeneration": 1, **fields}}
    )


EVICTION.get("start", PODS, keep={"rv": "metadata.resourceVersion"})
_running("free", "free")
EVICTION.post("ev-02-other-name", PODS + "/free/eviction", eviction("other"), 400)
_evict("ev-04-dry-run-in-query", "free", query="?dryRun=All")
_evict("ev-04-dry-run-in-options", "free", deleteOptions={"dryRun": ["All"]})
_evict("ev-04-dry-run-in-both", "free", query="?dryRun=All", deleteOptions={"dryRun": ["All"]})
EVICTION.get("dry-runs-changed-nothing", PODS + "/free")
_evict(
    "ev-03-unsafe-option",
    "free",
    422,
    deleteOptions={"ignoreStoreReadErrorWithClusterBreakingPotential": True},
)
_evict(
    "ev-22d-other-uid",
    "free",
    409,
    deleteOptions={"preconditions": {"uid": "99999999-9999-9999-9999-999999999999"}},
)
_evict("ev-22f-other-version", "free", 409, deleteOptions={"preconditions": {"resourceVersion": "1"}})
_evict("ev-11-no-budget", "free")
EVICTION.get("ev-21-condition-and-mark", PODS + "/free")
_evict("ev-05-terminating", "free", deleteOptions={"gracePeriodSeconds": 300})
_evict("ev-22b-missing", "missing", 404)
EVICTION.post(
    "ev-01-old-version", PODS + "/free/eviction", {**eviction("free"), "apiVersion": "policy/v1beta1"}, 201
)
EVICTION.post("other-kind", PODS + "/free/eviction", pod("free"), 400)
EVICTION.post("budget", BUDGETS, budget("b", {"app": "kept"}))
_running("kept", "kept")
_evict("ev-15-budget-not-seen-yet", "kept", 429)
_budget_status("ev-23a-none-allowed", "b")
_evict("ev-13-refused", "kept", 429)
EVICTION.get("ev-13-untouched", PODS + "/kept")
_budget_status("two-healthy", "b", currentHealthy=2, desiredHealthy=2)
_evict("ev-23i-needs-two-has-two", "kept", 429)
_budget_status(
    "sync-failed",
    "b",
    currentHealthy=3,
    desiredHealthy=2,
    conditions=[
        {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "SyncFailed",
            "message": "it is broken",
            "lastTransitionTime": "2020-01-01T00:00:00Z",
        }
    ],
)
_evict("ev-14-sync-failed", "kept", 429)
_budget_status(
    "insufficient",
    "b",
    currentHealthy=3,
    desiredHealthy=2,
    conditions=[
        {
            "type": "DisruptionAllowed",
            "status": "False",
            "reason": "InsufficientPods",
            "message": "",
            "lastTransitionTime": "2020-01-01T00:00:00Z",
        }
    ],
)
_evict("ev-14-other", "kept", 429)
_budget_status("one-allowed", "b", disruptionsAllowed=1, currentHealthy=3, desiredHealthy=2)
_evict("ev-17-dry-run-leaves-the-budget", "kept", query="?dryRun=All")
EVICTION.get("budget-as-before", BUDGETS + "/b")
_evict("ev-17-allowed", "kept")
EVICTION.get("ev-17-budget-decremented", BUDGETS + "/b")
_running("sick", "kept", NOT_READY)
_budget_status("ev-23k-healthy-enough", "b", currentHealthy=2, desiredHealthy=2, disruptedPods=None)
_evict("ev-18-not-ready-if-healthy-budget", "sick")
_running("sicker", "kept", NOT_READY)
_budget_status("not-healthy-enough", "b", currentHealthy=1, desiredHealthy=2)
_evict("ev-18-not-ready-refused", "sicker", 429)
EVICTION.patch(
    "always-allow", "merge", BUDGETS + "/b", {"spec": {"unhealthyPodEvictionPolicy": "AlwaysAllow"}}
)
EVICTION.patch("seen", "merge", BUDGETS + "/b/status", {"status": {"observedGeneration": 2}})
_evict("ev-23l-always-allow", "sicker")
EVICTION.post("create-pending", PODS, pod("pending", nodeName="n", metadata={"labels": {"app": "kept"}}))
_evict("ev-23b-pending", "pending")
_running("done", "kept")
EVICTION.patch("succeeds", "merge", PODS + "/done/status", phase("Succeeded"))
_evict("ev-23c-succeeded", "done")
EVICTION.get("done-is-gone", PODS + "/done", 404)
_budget_status("negative", "b", disruptionsAllowed=0)
EVICTION.post("second-budget", BUDGETS, budget("c", {"app": "kept"}))
_running("torn", "kept")
_evict("ev-11-two-budgets", "torn", 500)
EVICTION.delete("second-budget-gone", BUDGETS + "/c")
EVICTION.post("budget-for-all", BUDGETS, budget("all", maxUnavailable=0))
_running("anybody", "anybody")
_budget_status("all-seen", "all")
_evict("ev-23h-empty-selector", "anybody", 429)
EVICTION.post("bad-budget", BUDGETS, budget("bad", {}, minAvailable=1, maxUnavailable=1), 422)
EVICTION.post("bad-percentage", BUDGETS, budget("bad", {}, minAvailable="ten"), 422)
EVICTION.post("bad-policy", BUDGETS, budget("bad", {}, unhealthyPodEvictionPolicy="Maybe"), 422)
EVICTION.watch("events", PODS + "?resourceVersion=${rv}")
EVICTION.delete("clean", PODS, delete_options(gracePeriodSeconds=0))

SCALE = Area("scale")
_kinds = {"deployments": "Deployment", "replicasets": "ReplicaSet", "statefulsets": "StatefulSet"}


def _scale(name: str, replicas: Any, **metadata: Any) -> dict[str, Any]:
    return of("autoscaling/v1", "Scale", name, metadata=metadata, spec={"replicas": replicas})


for plural, kind in _kinds.items():
    one = f"{APPS}/{plural}/w"
    SCALE.post(f"{plural}-create", f"{APPS}/{plural}", workload(kind, "w", replicas=2))
    SCALE.get(f"{plural}-read", one + "/scale", keep={"rv": "metadata.resourceVersion"})
    SCALE.put(f"{plural}-put", one + "/scale", _scale("w", 4))
    SCALE.put(f"{plural}-put-stale", one + "/scale", _scale("w", 5, resourceVersion="${rv}"), 409)
    SCALE.put(f"{plural}-put-negative", one + "/scale", _scale("w", -1), 422)
    SCALE.patch(f"{plural}-patch", "merge", one + "/scale", {"spec": {"replicas": 3}})
    SCALE.get(f"{plural}-after", one)
    SCALE.patch(
        f"{plural}-status",
        "merge",
        one + "/status",
        {"status": {"replicas": 3, "observedGeneration": 3, "readyReplicas": 2}},
    )
    SCALE.patch(f"{plural}-status-impossible", "merge", one + "/status", {"status": {"replicas": -1}}, 422)
    SCALE.patch(f"{plural}-spec-by-status", "merge", one + "/status", {"spec": {"replicas": 9}})
    SCALE.patch(f"{plural}-status-by-object", "merge", one, {"status": {"replicas": 9}})
    SCALE.patch(f"{plural}-label-keeps-generation", "merge", one, {"metadata": {"labels": {"a": "b"}}})
    SCALE.patch(f"{plural}-selector", "merge", one, {"spec": {"selector": {"matchLabels": {"b": "c"}}}}, 422)
    SCALE.get(f"{plural}-scale-missing", f"{APPS}/{plural}/missing/scale", 404)
SCALE.post(
    "controller-create",
    CORE + "/replicationcontrollers",
    of("v1", "ReplicationController", "rc", spec={"replicas": 1, "template": template()}),
)
SCALE.get("controller-read", CORE + "/replicationcontrollers/rc/scale")
SCALE.get("daemonset-has-no-scale", APPS + "/daemonsets/x/scale", 404)
SCALE.get("pods-have-no-scale", PODS + "/x/scale", 404)

CONNECT = Area("connect")
CONNECT.post("create", PODS, pod("p"))
CONNECT.post(
    "create-two", PODS, pod("two", containers=[{"name": "a", "image": "i"}, {"name": "b", "image": "i"}])
)
for _method in ("get", "post"):
    for _what in ("exec", "attach", "portforward"):
        _ask = getattr(CONNECT, _method)
        _of = (_method, _what)
        _body: tuple[Any, ...] = () if _method == "get" else ({},)
        _ask("-".join((*_of, "missing-pod")), f"{PODS}/missing/{_what}", *_body, 404)
        _ask("-".join((*_of, "unscheduled-pod")), f"{PODS}/p/{_what}", *_body, 400)
        if _what != "portforward":
            _ask("-".join((*_of, "which-container")), f"{PODS}/two/{_what}", *_body, 400)
            _ask("-".join((*_of, "missing-container")), f"{PODS}/p/{_what}?container=nope", *_body, 400)
CONNECT.get("portforward-bad-port", f"{PODS}/p/portforward?ports=x", 400)
CONNECT.get("proxy-of-a-missing-pod", f"{PODS}/missing/proxy/", 404)
CONNECT.get("proxy-of-a-pod-without-address", f"{PODS}/p/proxy/", 400)
CONNECT.get("proxy-of-too-many-parts", f"{PODS}/a:b:c:d/proxy/", 400)
CONNECT.get("proxy-with-an-odd-scheme", f"{PODS}/ftp:p:80/proxy/", 400)
CONNECT.get("proxy-of-a-missing-service", f"{CORE}/services/missing/proxy/", 404)
CONNECT.get("proxy-of-a-port-of-a-missing-service", f"{CORE}/services/missing:80/proxy/", 404)
CONNECT.post(
    "create-service",
    f"{CORE}/services",
    of("v1", "Service", "s", spec={"ports": [{"port": 80, "name": "http"}], "clusterIP": "None"}),
)
CONNECT.get("proxy-of-a-service-without-endpoints", f"{CORE}/services/s/proxy/", 404)
CONNECT.get("proxy-of-a-port-that-a-service-lacks", f"{CORE}/services/s:81/proxy/", 503)
CONNECT.post("create-endpoints", f"{CORE}/endpoints", of("v1", "Endpoints", "s", subsets=[]))
CONNECT.get("proxy-of-a-service-with-no-subsets", f"{CORE}/services/s:80/proxy/", 503)
CONNECT.get("proxy-of-a-service-by-scheme", f"{CORE}/services/https:s:http/proxy/x?y=z", 503)
CONNECT.get("proxy-of-a-missing-node", "/api/v1/nodes/missing/proxy/", 404)
CONNECT.get("proxy-of-an-odd-node", "/api/v1/nodes/a:b:c:d/proxy/", 400)
