"""The three patch formats, and what each refuses."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import APPS, CORE, PODS, config_map, container, of, pod, workload
from tests.real.differential.steps import Area

PATCHES = Area("patches")
MAPS = CORE + "/configmaps"
ONE = MAPS + "/m"
DEPLOYMENT = APPS + "/deployments/d"
FINALIZERS = {"finalizers": ["a.b/c", "d.e/f"]}

PATCHES.post(
    "map", MAPS, config_map("m", {"a": "1", "b": "2"}, metadata={**FINALIZERS, "labels": {"x": "y"}})
)


def _json(name: str, *operations: Any, code: int = 200, path: str = ONE) -> None:
    PATCHES.patch(f"json-{name}", "json", path, list(operations), code)


_json("add", {"op": "add", "path": "/data/c", "value": "3"})
_json("replace", {"op": "replace", "path": "/data/a", "value": "9"})
_json("remove", {"op": "remove", "path": "/data/b"})
_json("test-passes", {"op": "test", "path": "/data/a", "value": "9"})
_json("test-fails", {"op": "test", "path": "/data/a", "value": "8"}, code=422)
_json("move", {"op": "move", "from": "/data/c", "path": "/data/d"})
_json("copy", {"op": "copy", "from": "/data/d", "path": "/data/e"})
_json("escaped", {"op": "add", "path": "/metadata/annotations", "value": {"k~/": "v"}}, code=422)
_json("escaped-key", {"op": "add", "path": "/metadata/labels/a.b~1c", "value": "v"})
_json("append", {"op": "add", "path": "/metadata/finalizers/-", "value": "g.h/i"})
_json("insert", {"op": "add", "path": "/metadata/finalizers/0", "value": "z.z/z"})
_json("remove-missing", {"op": "remove", "path": "/data/nope"}, code=422)
_json("replace-missing-adds", {"op": "replace", "path": "/data/nope", "value": "1"})
_json("parent-missing", {"op": "add", "path": "/nope/deeper", "value": "1"}, code=422)
_json("index-out-of-range", {"op": "add", "path": "/metadata/finalizers/99", "value": "1.2/3"}, code=422)
_json("unknown-operation", {"op": "shout", "path": "/data/a", "value": "1"}, code=422)
_json("wrong-type", {"op": "add", "path": "/data/a", "value": 5}, code=422)
_json("unknown-field", {"op": "add", "path": "/dada", "value": {"a": "b"}})
_json("nothing")
PATCHES.patch("json-not-a-list", "json", ONE, {"op": "add", "path": "/data/a", "value": "1"}, 400)
PATCHES.patch("json-unreadable", "json", ONE, "[{", 400)
PATCHES.get("after-json", ONE)

PATCHES.patch("merge-set", "merge", ONE, {"data": {"z": "26"}})
PATCHES.patch("merge-null-removes", "merge", ONE, {"data": {"z": None}})
PATCHES.patch("merge-null-of-nothing", "merge", ONE, {"data": {"never": None}})
PATCHES.patch("merge-list-is-replaced", "merge", ONE, {"metadata": {"finalizers": ["x.y/z"]}})
PATCHES.patch("merge-empty", "merge", ONE, {})
PATCHES.patch("merge-all-data", "merge", ONE, {"data": None})
PATCHES.patch("merge-wrong-type", "merge", ONE, {"data": "text"}, 422)
PATCHES.patch("merge-not-an-object", "merge", ONE, "[1]", 400)
PATCHES.patch("merge-unreadable", "merge", ONE, "{", 400)
PATCHES.patch("merge-unknown-field", "merge", ONE, {"dada": {"a": "b"}})
PATCHES.patch("merge-other-kind", "merge", ONE, {"kind": "Secret"}, 422)
PATCHES.patch("merge-dry-run", "merge", ONE + "?dryRun=All", {"data": {"dry": "run"}})
PATCHES.get("merge-dry-run-left-it", ONE)
PATCHES.patch("merge-bad-label", "merge", ONE, {"metadata": {"labels": {"a": "-"}}}, 422)
PATCHES.patch("empty-body", "merge", ONE, "", 400)

PATCHES.post(
    "deployment",
    APPS + "/deployments",
    workload(
        "Deployment",
        "d",
        template={
            "metadata": {"labels": {"app": "web"}},
            "spec": {
                "containers": [
                    container(
                        "a",
                        env=[{"name": "A", "value": "1"}, {"name": "B", "value": "2"}],
                        ports=[{"containerPort": 80}],
                    ),
                    container("b"),
                ],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "tolerations": [{"key": "t", "operator": "Exists"}],
            },
        },
    ),
)


def _strategic(name: str, spec: Any, code: int = 200) -> None:
    """A strategic patch of the pod template's spec."""
    PATCHES.patch(f"strategic-{name}", "strategic", DEPLOYMENT, {"spec": {"template": {"spec": spec}}}, code)


_strategic("container-by-name", {"containers": [{"name": "a", "image": "new"}]})
_strategic("container-is-added-in-front", {"containers": [container("c")]})
_strategic("container-deleted", {"containers": [{"name": "c", "$patch": "delete"}]})
_strategic(
    "env-by-name",
    {"containers": [{"name": "a", "env": [{"name": "B", "value": "3"}, {"name": "C", "value": "4"}]}]},
)
_strategic(
    "ports-by-number",
    {"containers": [{"name": "a", "ports": [{"containerPort": 80, "name": "web"}, {"containerPort": 81}]}]},
)
_strategic(
    "order",
    {
        "$setElementOrder/containers": [{"name": "b"}, {"name": "a"}],
        "containers": [{"name": "b", "image": "x"}],
    },
)
_strategic("volume-by-name", {"volumes": [{"name": "v", "emptyDir": {"medium": "Memory"}}]})
_strategic(
    "volume-kind-swapped",
    {"volumes": [{"name": "v", "$retainKeys": ["name", "hostPath"], "hostPath": {"path": "/x"}}]},
)
_strategic("list-is-atomic", {"tolerations": [{"key": "u", "operator": "Exists"}]})
_strategic("list-replaced", {"containers": [{"$patch": "replace"}, container("only")]})
_strategic("map-replaced", {"nodeSelector": {"$patch": "replace", "a": "b"}})
_strategic("map-merged", {"nodeSelector": {"c": "d"}})
_strategic("null-removes", {"nodeSelector": None})
_strategic("unknown-directive", {"containers": [{"name": "only", "$patch": "explode"}]}, 500)
_strategic("element-without-key", {"containers": [{"image": "x"}]}, 500)
_strategic("wrong-type", {"containers": "x"}, 422)
PATCHES.patch(
    "strategic-strategy-recreate-keeps-rolling-update",
    "strategic",
    DEPLOYMENT,
    {"spec": {"strategy": {"type": "Recreate"}}},
    422,
)
PATCHES.patch(
    "strategic-strategy-with-retained-keys",
    "strategic",
    DEPLOYMENT,
    {"spec": {"strategy": {"$retainKeys": ["type"], "type": "Recreate"}}},
)
PATCHES.get("after-strategic", DEPLOYMENT)
PATCHES.patch("strategic-finalizers-merge", "strategic", ONE, {"metadata": {"finalizers": ["k.l/m"]}})
PATCHES.patch(
    "strategic-finalizer-taken-out",
    "strategic",
    ONE,
    {"metadata": {"$deleteFromPrimitiveList/finalizers": ["k.l/m"]}},
)
PATCHES.patch("strategic-unreadable", "strategic", ONE, "{", 400)
PATCHES.patch(
    "strategic-whole-replace",
    "strategic",
    ONE,
    {"$patch": "replace", "metadata": {"name": "m"}, "data": {"a": "b"}},
)
PATCHES.post(
    "owner-create",
    PODS,
    pod(
        "owned",
        metadata={
            "ownerReferences": [
                {"apiVersion": "v1", "kind": "A", "name": "a", "uid": "11111111-1111-1111-1111-111111111111"}
            ]
        },
    ),
)
PATCHES.patch(
    "strategic-owner-deleted-by-uid",
    "strategic",
    PODS + "/owned",
    {"metadata": {"ownerReferences": [{"$patch": "delete", "uid": "11111111-1111-1111-1111-111111111111"}]}},
)
PATCHES.patch("apply-creates", "apply", MAPS + "/applied?fieldManager=me", config_map("applied"), 201)
PATCHES.patch("apply-without-manager", "apply", ONE, config_map("m"), 422)
PATCHES.patch("unknown-patch-type", "merge", ONE, {}, 415, headers={"Content-Type": "application/xml-patch"})
PATCHES.patch("json-as-patch-type", "merge", ONE, {}, 415, headers={"Content-Type": "application/json"})
PATCHES.patch("force-without-apply", "merge", ONE + "?force=true", {}, 422)
PATCHES.patch("service-ports-by-port", "strategic", CORE + "/services/none", {}, 404)
PATCHES.post(
    "service", CORE + "/services", of("v1", "Service", "s", spec={"ports": [{"port": 80, "name": "a"}]})
)
PATCHES.patch(
    "strategic-service-ports-by-number",
    "strategic",
    CORE + "/services/s",
    {"spec": {"ports": [{"port": 81, "name": "b"}]}},
)
