"""Server-side apply and managers of custom resources: every type of a structural schema, status, scale, versions."""

from __future__ import annotations

import random
from typing import Any

from tests.real.differential.areas import custom_resources
from tests.real.differential.areas.custom_resources import (
    CRDS,
    array,
    integer,
    is_established,
    offer,
    string,
    struct,
    version,
)
from tests.real.differential.areas.objects import Object, of
from tests.real.differential.steps import Area

GROUP = "apply.example.com"
CUSTOM_APPLY = Area("crd-apply")
CUSTOM_MANAGERS = Area("crd-managers")


def crd(plural: str, *versions: Object, **more: Any) -> Object:
    return custom_resources.crd(plural, *versions, group=GROUP, **more)


def _path(plural: str, name: str = "", *, at: str = "v1") -> str:
    return f"/apis/{GROUP}/{at}/namespaces/${{ns}}/{plural}" + (f"/{name}" if name else "")


def _keyed(*keys: str, **more: Any) -> Object:
    return {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys), **more}


_ATOMIC: Object = {"x-kubernetes-map-type": "atomic"}
_SET: Object = {"x-kubernetes-list-type": "set"}
_FREE: Object = {"x-kubernetes-preserve-unknown-fields": True}
_PORT = struct(
    {"port": integer(), "protocol": string(default="TCP"), "note": string(), "tags": array(string(), **_SET)},
    required=["port"],
)
_SPEC: Object = {
    "text": string(),
    "day": string(format="date-time"),
    "number": integer(),
    "ratio": {"type": "number"},
    "flag": {"type": "boolean"},
    "either": {"x-kubernetes-int-or-string": True},
    "defaulted": string(default="by-default"),
    "nullable": string(nullable=True),
    "inner": struct({"a": string(), "b": integer(default=7), "deeper": struct({"c": string()})}),
    "whole": struct({"a": string(), "b": string()}, **_ATOMIC),
    "map": struct(additionalProperties=string()),
    "wholeMap": struct(additionalProperties=string(), **_ATOMIC),
    "structs": struct(additionalProperties=struct({"a": string(), "b": string()})),
    "list": array(string()),
    "numbers": array(integer(), **_SET),
    "set": array(string(), **_SET),
    "ports": array(_PORT, **_keyed("port", "protocol")),
    "named": array(struct({"name": string(), "value": string()}, required=["name"]), **_keyed("name")),
    "wholes": array(
        struct({"name": string(), "value": string()}, required=["name"], **_ATOMIC), **_keyed("name")
    ),
    "free": struct(**_FREE),
    "half": struct({"known": string(), "list": array(string(), **_SET)}, **_FREE),
    "any": _FREE,
    "embedded": struct({"spec": struct({"x": string()})}, **{"x-kubernetes-embedded-resource": True}),
    "template": struct(None, **{"x-kubernetes-embedded-resource": True, **_FREE}),
    "replicas": integer(),
}
_STATUS = struct(
    {
        "replicas": integer(),
        "phase": string(),
        "conditions": array(
            struct({"type": string(), "status": string(), "reason": string()}, required=["type"]),
            **_keyed("type"),
        ),
    }
)
_SUBRESOURCES = {
    "status": {},
    "scale": {"specReplicasPath": ".spec.replicas", "statusReplicasPath": ".status.replicas"},
}


def _whole(spec: Object, **more: Any) -> Object:
    return struct({"spec": struct(spec), "status": _STATUS, "top": string()}, **more)


def _thing(plural: str, name: str, spec: Any = None, *, at: str = "v1", **more: Any) -> Object:
    kind = plural.removesuffix("s").capitalize()
    return of(f"{GROUP}/{at}", kind, name, **({} if spec is None else {"spec": spec}), **more)


def _apply(
    step: str,
    spec: Any,
    code: int = 0,
    *,
    name: str = "one",
    who: str = "me",
    plural: str = "things",
    at: str = "v1",
    force: bool = False,
    query: str = "",
    **more: Any,
) -> None:
    query = f"?fieldManager={who}" + ("&force=true" if force else "") + query
    path = _path(plural, name, at=at) + more.pop("below", "") + query
    CUSTOM_APPLY.patch(step, "apply", path, _thing(plural, name, spec, at=at, **more), code)


def managers(body: Object) -> Object:
    """Under their name, so that they are compared in one order: they are sorted by seconds, which differ."""
    return {"managedFields": body["metadata"]["managedFields"]}


offer(CUSTOM_APPLY, crd("things", version(_whole(_SPEC), subresources=_SUBRESOURCES)))
CUSTOM_APPLY.get("definition-owned", f"{CRDS}/things.{GROUP}", pick=managers)

# One object, several managers.
_apply("creates", {"text": "a", "map": {"x": "1"}, "set": ["p", "q"]}, 201)
_apply("again", {"text": "a", "map": {"x": "1"}, "set": ["p", "q"]}, 200)
CUSTOM_APPLY.get("got", _path("things", "one"))
_apply("conflict", {"text": "b"}, 409, who="you")
_apply("conflicts", {"text": "b", "map": {"x": "2"}}, 409, who="you")
_apply("forced", {"text": "b", "set": ["r"]}, 200, who="you", force=True)
_apply("prunes", {"map": {"x": "1"}}, 200)
_apply("nothing", None, 200)
_apply("empty-spec", {}, 200)
_apply("null-spec", None, 0, top=None)
_apply("dry-run", {"text": "c"}, 0, force=True, query="&dryRun=All")
CUSTOM_APPLY.patch(
    "merge", "merge", _path("things", "one") + "?fieldManager=editor", {"spec": {"number": 3, "inner": {}}}
)
CUSTOM_APPLY.patch(
    "json",
    "json",
    _path("things", "one") + "?fieldManager=editor",
    [{"op": "add", "path": "/spec/list", "value": ["x"]}],
)
CUSTOM_APPLY.get("version", _path("things", "one"), keep={"rv": "metadata.resourceVersion"})
CUSTOM_APPLY.put(
    "put",
    _path("things", "one") + "?fieldManager=putter",
    _thing("things", "one", {"text": "put"}, metadata={"resourceVersion": "${rv}", "labels": {"a": "b"}}),
)
CUSTOM_APPLY.post(
    "post",
    _path("things") + "?fieldManager=poster",
    _thing("things", "two", {"text": "t"}, status={"phase": "x"}),
)
CUSTOM_APPLY.patch("reset", "merge", _path("things", "two"), {"metadata": {"managedFields": [{}]}})
_apply("before-first-apply", {"text": "u"}, 409, name="two")
_apply("first-apply", {"text": "u"}, 200, name="two", force=True)
CUSTOM_APPLY.patch(
    "unknown-pruned", "merge", _path("things", "two"), {"spec": {"nope": 1}}, headers={"User-Agent": "tool/1"}
)

# Every type: made by one, applied by another.
_CASES: dict[str, tuple[Any, ...]] = {
    "text": ("a", "b", None, ""),
    "day": ("2020-01-01T00:00:00Z", "2021-01-01T00:00:00Z", 5, None),
    "number": (1, 2, 0, None, "x"),
    "ratio": (1.5, 2, 2.0, "x"),
    "flag": (True, False, None, "x"),
    "either": (1, "50%", 2, None, {"a": 1}, ["x"], True),
    "defaulted": ("x", "y", None),
    "nullable": ("x", None, "y", None),
    "inner": ({"a": "x"}, {"b": 1}, {"deeper": {"c": "y"}}, {}, None, "x", {"nope": 1}),
    "whole": ({"a": "x"}, {"b": "y"}, {}, None, {"a": "x", "b": "y"}),
    "map": ({"a": "x"}, {"b": "y"}, {}, None, {"a": "z", "c": ""}),
    "wholeMap": ({"a": "x"}, {"b": "y"}, {}, None),
    "structs": ({"k": {"a": "x"}}, {"k": {"b": "y"}, "l": {}}, {"l": None}, {"k": {}}),
    "list": (["a", "b"], ["b", "c"], [], None, ["a", "a"]),
    "numbers": ([1, 2], [2, 3], [3], [1.0, 2.5], [], [1, 1]),
    "set": (["a", "b"], ["c", "a"], ["c"], [], None, ["d", "d"], [None], [{}], [["x"]]),
    "ports": (
        [{"port": 1}, {"port": 2, "protocol": "UDP", "tags": ["a"]}],
        [{"port": 1, "note": "n"}, {"port": 2, "protocol": "UDP", "tags": ["b"]}],
        [{"port": 3}, {"port": 1, "protocol": "TCP", "note": "m"}],
        [{"protocol": "UDP", "port": 2, "tags": []}],
        [{"port": 1}, {"port": 1, "protocol": "TCP"}],
        [{"protocol": "UDP"}],
        [{"note": "x"}],
        [],
    ),
    "named": (
        [{"name": "a", "value": "1"}, {"name": "b", "value": "1"}],
        [{"name": "c"}, {"name": "a", "value": "2"}],
        [{"name": "a"}],
        [{"value": "x"}],
        ["x"],
        [None],
    ),
    "wholes": ([{"name": "a", "value": "1"}], [{"name": "a"}, {"name": "b", "value": "2"}], [{"name": "b"}]),
    "free": (
        {"a": {"b": 1, "c": [1, 2]}, "d": None},
        {"a": {"b": 2}},
        {"a": {"c": [3]}},
        {"a": "text"},
        {"a": {"e": {}}},
        {},
        None,
        {"a": [{"x": 1}]},
    ),
    "half": ({"known": "x", "list": ["a"], "y": {"z": 1}}, {"list": ["b"], "y": {"w": 2}}, {"known": 5}, {}),
    "any": ({"a": 1}, {"b": 2}, "text", 5, ["x"], {"a": {"b": None}}, None),
    "embedded": (
        {
            "apiVersion": "v1",
            "kind": "A",
            "metadata": {"name": "x", "labels": {"a": "b"}},
            "spec": {"x": "1"},
        },
        {"apiVersion": "v1", "kind": "A", "metadata": {"name": "x", "labels": {"c": "d"}}},
        {"apiVersion": "v1", "kind": "B", "metadata": {"name": "x", "finalizers": ["a.b/c"]}},
        {"apiVersion": "v1", "kind": "B", "metadata": {"nope": "x"}},
        {"kind": "B"},
    ),
    "template": (
        {"apiVersion": "v1", "kind": "A", "spec": {"any": {"x": 1}}},
        {"apiVersion": "v1", "kind": "A", "spec": {"any": {"y": 1}}, "more": [1]},
        {"apiVersion": "v1", "kind": "A"},
    ),
}
for _field, (_made, *_applied) in _CASES.items():
    _name = _field.lower()
    CUSTOM_APPLY.post(
        f"{_field}-made",
        _path("things") + "?fieldManager=maker",
        _thing("things", _name, {_field: _made}),
    )
    for _number, _value in enumerate(_applied):
        _apply(f"{_field}-{_number}", {_field: _value}, name=_name, who="applier")
        _apply(f"{_field}-{_number}-forced", {_field: _value}, name=_name, who="applier", force=True)
    CUSTOM_APPLY.patch(
        f"{_field}-merged", "merge", _path("things", _name) + "?fieldManager=m", {"spec": {_field: _made}}, 0
    )
    _apply(f"{_field}-gone", {}, name=_name, who="applier", force=True)

# Refusals.
_apply("unknown-field", {"nope": 1}, 500)
_apply("unknown-at-root", {}, 500, nope=1)
_apply("unknown-metadata", {}, 500, metadata={"name": "one", "nope": 1})
_apply("other-name", {}, 400, metadata={"name": "other"})
_apply("invalid", {"ports": [{"port": 1, "note": 5}]}, 500)
_apply("managers-in-it", {}, 400, metadata={"managedFields": [{"manager": "x"}]})
_apply("stale", {"text": "x"}, 409, metadata={"resourceVersion": "1"}, force=True)
CUSTOM_APPLY.patch(
    "other-version",
    "apply",
    _path("things", "one") + "?fieldManager=x",
    _thing("things", "one", {}, at="v7"),
    400,
)
CUSTOM_APPLY.patch(
    "other-kind", "apply", _path("things", "one") + "?fieldManager=x", of(f"{GROUP}/v1", "Other", "one"), 400
)
CUSTOM_APPLY.patch("no-manager", "apply", _path("things", "one"), _thing("things", "one", {}), 422)
CUSTOM_APPLY.patch("strategic", "strategic", _path("things", "one"), {"spec": {}}, 415)

# Status and scale.
_apply("to-scale", {"replicas": 2, "text": "s"}, 201, name="s")
_apply("status-in-main", {"replicas": 2, "text": "s"}, 200, name="s", status={"phase": "no"})
_CONDITION = {"type": "Ready", "status": "True"}
_apply(
    "status",
    {"text": "ignored"},
    name="s",
    who="controller",
    below="/status",
    status={"phase": "on", "replicas": 2, "conditions": [_CONDITION]},
    metadata={"labels": {"not": "kept"}},
    force=True,
)
_apply("status-again", None, name="s", who="controller", below="/status", status={"conditions": [_CONDITION]})
_apply(
    "status-conflict",
    None,
    name="s",
    who="other",
    below="/status",
    status={"conditions": [{**_CONDITION, "status": "False"}]},
)
CUSTOM_APPLY.patch(
    "status-merge",
    "merge",
    _path("things", "s") + "/status?fieldManager=m",
    {"metadata": {"labels": {"x": "y"}}, "spec": {"text": "no"}, "status": {"phase": "off"}},
)
CUSTOM_APPLY.get("status-version", _path("things", "s"), keep={"rv": "metadata.resourceVersion"})
CUSTOM_APPLY.put(
    "status-put",
    _path("things", "s") + "/status?fieldManager=p",
    _thing("things", "s", {"text": "no"}, status={"phase": "put"}, metadata={"resourceVersion": "${rv}"}),
)
_apply("status-of-nothing", None, 404, name="nothing", below="/status", status={"phase": "x"})
_SCALE = {"apiVersion": "autoscaling/v1", "kind": "Scale", "metadata": {"name": "s", "namespace": "${ns}"}}
_AT_SCALE = _path("things", "s") + "/scale"
CUSTOM_APPLY.get("scale-get", _AT_SCALE)
CUSTOM_APPLY.put("scale-put", f"{_AT_SCALE}?fieldManager=k", {**_SCALE, "spec": {"replicas": 5}})
CUSTOM_APPLY.get("after-scale-put", _path("things", "s"))
CUSTOM_APPLY.patch("scale-merge", "merge", f"{_AT_SCALE}?fieldManager=h", {"spec": {"replicas": 6}})
CUSTOM_APPLY.get("after-scale-merge", _path("things", "s"))
CUSTOM_APPLY.patch(
    "scale-apply-same", "apply", f"{_AT_SCALE}?fieldManager=a", {**_SCALE, "spec": {"replicas": 6}}, 0
)
CUSTOM_APPLY.get("after-scale-apply", _path("things", "s"))
_apply("scale-conflict", {"replicas": 9}, 409, name="s", who="hpa")
CUSTOM_APPLY.patch(
    "scale-apply", "apply", f"{_AT_SCALE}?fieldManager=a&force=true", {**_SCALE, "spec": {"replicas": 7}}, 0
)

# Two versions with one schema.
_BOTH = {"list": array(string(), **_SET), "text": string(), "named": _SPEC["named"], "replicas": integer()}
offer(
    CUSTOM_APPLY,
    crd(
        "twins",
        version(_whole(_BOTH), "v1", storage=False, subresources=_SUBRESOURCES),
        version(_whole(_BOTH), "v2", subresources=_SUBRESOURCES),
    ),
)
_TWIN: dict[str, Any] = {"plural": "twins", "name": "t"}
_apply("twin-v1", {"text": "a", "list": ["x", "y"], "replicas": 1}, 201, **_TWIN)
_apply("twin-v2-other", {"list": ["z"], "named": [{"name": "n"}]}, at="v2", who="other", **_TWIN)
_apply("twin-v2-conflict", {"text": "b"}, 409, at="v2", who="other", **_TWIN)
_apply("twin-v2-prunes", {"list": ["x"]}, at="v2", **_TWIN)
_apply("twin-v1-again", {"list": ["x"], "text": "c"}, **_TWIN)
CUSTOM_APPLY.patch("twin-merge-v2", "merge", _path("twins", "t", at="v2"), {"spec": {"list": ["x", "w"]}})
CUSTOM_APPLY.patch(
    "twin-status-v1", "merge", _path("twins", "t") + "/status?fieldManager=s", {"status": {"phase": "1"}}
)
CUSTOM_APPLY.patch(
    "twin-status-v2",
    "merge",
    _path("twins", "t", at="v2") + "/status?fieldManager=s",
    {"status": {"phase": "2"}},
)
CUSTOM_APPLY.get("twin-rv", _path("twins", "t", at="v2"), keep={"rv": "metadata.resourceVersion"})
CUSTOM_APPLY.put(
    "twin-main-with-status",
    _path("twins", "t", at="v2") + "?fieldManager=main",
    _thing(
        "twins", "t", {"text": "m"}, at="v2", status={"phase": "3"}, metadata={"resourceVersion": "${rv}"}
    ),
)
_apply("twin-scaled", {"replicas": 3}, who="r1", **_TWIN)
CUSTOM_APPLY.patch(
    "twin-scale-v2",
    "merge",
    _path("twins", "t", at="v2") + "/scale?fieldManager=sc",
    {"spec": {"replicas": 4}},
)
CUSTOM_APPLY.get("twin-after-scale", _path("twins", "t"))

# Two versions that differ: what one has the other does not declare.
offer(
    CUSTOM_APPLY,
    crd(
        "cousins",
        version(_whole({"text": string(), "only1": string(), "l": array(string())}), "v1"),
        version(
            _whole({"text": string(), "only2": string(), "l": array(string(), **_SET)}), "v2", storage=False
        ),
    ),
)
_COUSIN: dict[str, Any] = {"plural": "cousins", "name": "c"}
_apply("cousin-v1", {"text": "a", "l": ["x"]}, 201, **_COUSIN)
_apply("cousin-v2", {"l": ["x", "y"]}, at="v2", who="other", force=True, **_COUSIN)
_apply("cousin-v2-only", {"only2": "z"}, at="v2", who="third", **_COUSIN)
CUSTOM_APPLY.patch("cousin-v1-merge", "merge", _path("cousins", "c"), {"spec": {"only1": "q"}})
CUSTOM_APPLY.get("cousin-got", _path("cousins", "c"))
_apply("cousin-v2-after", {"text": "b"}, at="v2", who="other", force=True, **_COUSIN)
_apply("cousin-v1-after", {"text": "b"}, who="other", force=True, **_COUSIN)

# The schema changes under the objects.
_BEFORE = {
    "m": struct({"a": string(), "b": string()}),
    "l": array(string(), **_SET),
    "n": _SPEC["named"],
    "t": string(),
}
_AFTER = {
    "m": struct({"a": string(), "b": string()}, **_ATOMIC),
    "l": array(string()),
    "n": array(struct({"name": string(), "value": string()})),
    "t": string(),
}
offer(CUSTOM_APPLY, crd("movers", version(_whole(_BEFORE))))
_MOVER: dict[str, Any] = {"plural": "movers", "name": "m"}
_apply("mover", {"m": {"a": "1"}, "l": ["x"], "n": [{"name": "k", "value": "v"}], "t": "u"}, 201, **_MOVER)
_apply("mover-other", {"m": {"b": "2"}, "l": ["y"], "n": [{"name": "o"}]}, who="other", **_MOVER)
CUSTOM_APPLY.patch(
    "mover-atomic",
    "json",
    f"{CRDS}/movers.{GROUP}",
    [
        {
            "op": "replace",
            "path": "/spec/versions/0/schema/openAPIV3Schema/properties/spec",
            "value": struct(_AFTER),
        }
    ],
    pick=lambda body: body["spec"],
)
CUSTOM_APPLY.get(
    "mover-served",
    f"/openapi/v3/apis/{GROUP}/v1",
    until=lambda body: any(
        "x-kubernetes-map-type"
        in str(schema.get("properties", {}).get("spec", {}).get("properties", {}).get("m", {}))
        for name, schema in body["components"]["schemas"].items()
        if name.endswith(".Mover")
    ),
    pick=lambda body: None,
)
CUSTOM_APPLY.patch("mover-merge", "merge", _path("movers", "m") + "?fieldManager=e", {"spec": {"t": "w"}})
_apply("mover-again", {"m": {"a": "3"}}, 0, **_MOVER)
_apply("mover-forced", {"m": {"a": "3"}, "t": "x"}, 0, force=True, **_MOVER)

# A version that is gone takes its managers with it.
CUSTOM_APPLY.patch(
    "twin-forgets-v1",
    "json",
    f"{CRDS}/twins.{GROUP}",
    [{"op": "remove", "path": "/spec/versions/0"}],
    pick=lambda body: len(body["spec"]["versions"]),
)
CUSTOM_APPLY.get(
    "twin-v1-gone",
    f"/apis/{GROUP}/v1",
    until=lambda body: not any(each["name"] == "twins" for each in body["resources"]),
    pick=lambda body: None,
)
_apply("twin-after-v1", {"text": "z"}, at="v2", who="late", force=True, **_TWIN)
CUSTOM_APPLY.patch(
    "twin-merge-after-v1", "merge", _path("twins", "t", at="v2") + "?fieldManager=l", {"spec": {"text": "y"}}
)
_apply("twin-apply-after", {"text": "y"}, at="v2", who="late", **_TWIN)

# A schema that keeps everything.
offer(CUSTOM_APPLY, crd("frees", version(struct(**_FREE))))
_FREES: dict[str, Any] = {"plural": "frees", "name": "f"}
_apply("free", {"a": {"b": [1], "c": {"d": 1}}}, 201, extra={"x": [1]}, **_FREES)
_apply("free-other", {"a": {"c": {"e": 2}}, "g": None}, who="other", **_FREES)
_apply("free-prunes", {"a": {}}, **_FREES)
CUSTOM_APPLY.patch("free-merge", "merge", _path("frees", "f"), {"extra": {"y": 1}, "spec": {"a": None}})

# The definition itself.
CUSTOM_APPLY.patch(
    "definition",
    "apply",
    f"{CRDS}/applieds.{GROUP}?fieldManager=helm",
    crd("applieds", version(_whole(_BOTH))),
    201,
)
CUSTOM_APPLY.get(
    "definition-established",
    f"{CRDS}/applieds.{GROUP}",
    until=is_established,
    pick=managers,
)
CUSTOM_APPLY.patch(
    "definition-again",
    "apply",
    f"{CRDS}/applieds.{GROUP}?fieldManager=helm",
    crd("applieds", version(_whole({"text": string()})), names={"shortNames": ["ap"]}),
    pick=managers,
)
CUSTOM_APPLY.patch(
    "definition-conflict",
    "apply",
    f"{CRDS}/applieds.{GROUP}?fieldManager=flux",
    crd("applieds", version(_whole({"number": integer()}))),
    409,
)
CUSTOM_APPLY.patch(
    "definition-status",
    "merge",
    f"{CRDS}/applieds.{GROUP}/status?fieldManager=me",
    {"metadata": {"labels": {"a": "b"}}},
    pick=lambda body: body["metadata"].get("labels"),
)


# Many writes by several managers, drawn at random with a fixed seed, through two versions.
offer(
    CUSTOM_MANAGERS,
    crd(
        "draws",
        version(_whole(_SPEC), subresources=_SUBRESOURCES),
        version(_whole(_SPEC), "v2", storage=False, subresources=_SUBRESOURCES),
    ),
)


def _draw(chance: random.Random, number: int) -> None:
    fields = chance.sample(sorted(_CASES), chance.randint(0, 5))
    spec = {field: chance.choice(_CASES[field]) for field in fields}
    manager = chance.choice(["anna", "berta", "carla"])
    verb = chance.choice(["apply", "apply", "force", "force", "force", "merge"])
    at = chance.choice(["v1", "v1", "v2"])
    query = f"?fieldManager={manager}" + ("&force=true" if verb == "force" else "")
    body = _thing("draws", "d", spec, at=at) if verb != "merge" else {"spec": spec}
    kind = "merge" if verb == "merge" else "apply"
    path = _path("draws", "d", at=at) + query
    CUSTOM_MANAGERS.patch(f"{number}-{verb}", kind, path, body, 0, unordered=True)


CUSTOM_MANAGERS.post("base", _path("draws") + "?fieldManager=base", _thing("draws", "d", {"text": "x"}))
_CHANCE = random.Random(14)
for _number in range(200):
    _draw(_CHANCE, _number)


def _apply_definition(name: str, code: int, schema: Object, **more: Any) -> None:
    """Apply a definition with this schema."""
    definition = crd(name, version(schema=schema), **more)
    path = f"{CRDS}/{definition['metadata']['name']}?fieldManager=me"
    CUSTOM_APPLY.patch(f"definition-{name}", "apply", path, definition, code)


_RULES = "x-kubernetes-validations"
_RULE: Object = {"rule": "self.x == 'y'", "message": "no"}
_apply_definition("unknownfields", 500, {"type": "object", "foo": 1})
_apply_definition("unknownbelow", 500, struct({"spec": struct({"x": string(foo={"a": 1})})}))
_apply_definition("unknowninitems", 201, struct({"spec": struct({"x": array(string(foo=1))})}))
_apply_definition("unknowninadditional", 201, struct({"spec": struct(additionalProperties=string(foo=1))}))
_apply_definition("unknowninallof", 500, struct({"spec": {**struct({"x": string()}), "allOf": [{"foo": 1}]}}))
_apply_definition("mistyped", 500, struct({"spec": struct({"x": string(maxLength="5")})}))
_apply_definition("ruledtwice", 500, struct({"spec": struct({"x": string()}, **{_RULES: [_RULE, _RULE]})}))
_apply_definition(
    "unknowninrule", 500, struct({"spec": struct({"x": string()}, **{_RULES: [{**_RULE, "foo": 1}]})})
)
_apply_definition(
    "anydefault", 201, struct({"spec": {**_FREE, "type": "object", "default": {"a": {"b": [1]}}}})
)
