"""Custom resources: definitions, their errors and conditions, and everything that instances can do."""

from __future__ import annotations

from typing import Any

from tests.real.differential.areas.objects import Object, delete_options, of
from tests.real.differential.steps import Area

GROUP = "diff.example.com"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
TABLE = {"Accept": "application/json;as=Table;v=v1;g=meta.k8s.io"}
YAML = {"Content-Type": "application/yaml"}


def string(**more: Any) -> Object:
    return {"type": "string", **more}


def integer(**more: Any) -> Object:
    return {"type": "integer", **more}


def struct(properties: Object | None = None, **more: Any) -> Object:
    return {"type": "object", **({"properties": properties} if properties is not None else {}), **more}


def array(items: Object, **more: Any) -> Object:
    return {"type": "array", "items": items, **more}


def version(schema: Object | None, name: str = "v1", **more: Any) -> Object:
    found: Object = {"name": name, "served": True, "storage": True, **more}
    return found if schema is None else {**found, "schema": {"openAPIV3Schema": schema}}


def crd(
    plural: str, *versions: Object, names: Object | None = None, group: str = GROUP, **spec: Any
) -> Object:
    kind = plural.removesuffix("s").capitalize()
    return of(
        "apiextensions.k8s.io/v1",
        "CustomResourceDefinition",
        f"{plural}.{group}",
        spec={
            "group": group,
            "scope": "Namespaced",
            "names": {"plural": plural, "kind": kind, **(names or {})},
            "versions": list(versions),
            **spec,
        },
    )


def is_established(body: Any) -> bool:
    conditions = body.get("status", {}).get("conditions") or []
    return any(each["type"] == "Established" and each["status"] == "True" for each in conditions)


def has_condition(kind: str) -> Any:
    return lambda body: any(each["type"] == kind for each in body["status"]["conditions"] or [])


def _by_type(body: Any) -> Any:
    """Controllers write conditions in any order."""
    conditions = sorted(body["status"]["conditions"] or [], key=lambda each: str(each["type"]))
    return {**body, "status": {**body["status"], "conditions": conditions}}


def offer(area: Area, definition: Object) -> None:
    """Create a definition and wait until it is established, and listed by discovery."""
    name = definition["metadata"]["name"]
    plural = name.partition(".")[0]
    area.post(f"{plural}-definition", CRDS, definition)
    area.get(f"{plural}-established", f"{CRDS}/{name}", until=is_established, pick=_by_type)


DEFINITIONS = Area("crd-definitions", namespace=False)
_plain = struct({"spec": struct({"a": string()})})
offer(DEFINITIONS, crd("plains", version(_plain)))
DEFINITIONS.post("again", CRDS, crd("plains", version(_plain)), 409)
DEFINITIONS.get("table", f"{CRDS}/plains.{GROUP}", headers=TABLE, pick=lambda body: body["columnDefinitions"])
DEFINITIONS.put("update-without-version", f"{CRDS}/plains.{GROUP}", crd("plains", version(_plain)), 422)
DEFINITIONS.patch(
    "immutable",
    "merge",
    f"{CRDS}/plains.{GROUP}",
    {"spec": {"scope": "Cluster", "names": {"kind": "Other"}}},
    422,
)
DEFINITIONS.patch(
    "immutable-group", "merge", f"{CRDS}/plains.{GROUP}", {"spec": {"group": "other.example.com"}}, 422
)
DEFINITIONS.patch(
    "two-versions",
    "merge",
    f"{CRDS}/plains.{GROUP}",
    {"spec": {"versions": [version(_plain, storage=False), version(_plain, "v2")]}},
    pick=_by_type,
)
DEFINITIONS.patch(
    "old-version-is-stored",
    "merge",
    f"{CRDS}/plains.{GROUP}",
    {"spec": {"versions": [version(_plain, "v2")]}},
    422,
)
DEFINITIONS.patch(
    "migrated",
    "merge",
    f"{CRDS}/plains.{GROUP}/status",
    {"status": {"storedVersions": ["v2"]}},
    pick=_by_type,
)
DEFINITIONS.post(
    "names-taken",
    CRDS,
    crd("rivals", version(_plain), names={"kind": "Plain", "singular": "plain", "shortNames": ["p"]}),
)
DEFINITIONS.get(
    "names-refused", f"{CRDS}/rivals.{GROUP}", until=has_condition("NamesAccepted"), pick=_by_type
)
DEFINITIONS.get("not-served", f"/apis/{GROUP}/v1/rivals", 404, pick=lambda body: None)
DEFINITIONS.delete(
    "delete-rival", f"{CRDS}/rivals.{GROUP}", pick=lambda body: sorted(body["metadata"]["finalizers"])
)
DEFINITIONS.delete("delete", f"{CRDS}/plains.{GROUP}", pick=lambda body: body["metadata"]["finalizers"])
DEFINITIONS.get("gone", f"{CRDS}/plains.{GROUP}", 404, until=lambda body: body["kind"] == "Status")
DEFINITIONS.delete("delete-again", f"{CRDS}/plains.{GROUP}", code=404)
DEFINITIONS.post("dry-run", CRDS + "?dryRun=All", crd("plains", version(_plain)))
DEFINITIONS.post(
    "warns-about-format", CRDS + "?dryRun=All", crd("plains", version(struct({"a": string(format="nope")})))
)
DEFINITIONS.post(
    "unknown-fields",
    CRDS + "?dryRun=All&fieldValidation=Strict",
    crd("plains", version(struct({"a": string(b=1)}), c=2)),
    400,
)
DEFINITIONS.post(
    "wrong-type", CRDS, crd("plains", version(struct({"a": string(maxLength="x")}))), 400, pick=None
)

BAD = Area("crd-errors", namespace=False)


def bad(name: str, schema: Object | None, **more: Any) -> None:
    BAD.post(name, CRDS, crd("bads", version(schema, **more)), 422, unordered=True)


def bad_field(name: str, schema: Object) -> None:
    bad(name, struct({"a": schema}))


BAD.post("empty", CRDS, of("apiextensions.k8s.io/v1", "CustomResourceDefinition", "x"), 422, unordered=True)
BAD.post("name", CRDS, {**crd("bads", version(_plain)), "metadata": {"name": "other"}}, 422, unordered=True)
BAD.post("scope", CRDS, crd("bads", version(_plain), scope="World"), 422, unordered=True)
BAD.post("group", CRDS, crd("bads", version(_plain), group="nodots"), 422, unordered=True)
BAD.post("protected-group", CRDS, crd("bads", version(_plain), group="x.k8s.io"), 422, unordered=True)
BAD.post("no-versions", CRDS, crd("bads"), 422, unordered=True)
BAD.post(
    "two-storage", CRDS, crd("bads", version(_plain), version(_plain, "v2")), 422, unordered=True, pick=None
)
BAD.post(
    "same-version", CRDS, crd("bads", version(_plain), version(_plain, storage=False)), 422, unordered=True
)
BAD.post(
    "names",
    CRDS,
    crd("bads", version(_plain), names={"kind": "-", "shortNames": ["A"], "categories": ["b.c"]}),
    422,
    unordered=True,
)
BAD.post(
    "list-kind", CRDS, crd("bads", version(_plain), names={"kind": "K", "listKind": "K"}), 422, unordered=True
)
BAD.post("version-name", CRDS, crd("bads", version(_plain, "1.0")), 422, unordered=True)
BAD.post("preserve", CRDS, crd("bads", version(_plain), preserveUnknownFields=True), 422, unordered=True)
BAD.post(
    "conversion", CRDS, crd("bads", version(_plain), conversion={"strategy": "Magic"}), 422, unordered=True
)
BAD.post(
    "webhook", CRDS, crd("bads", version(_plain), conversion={"strategy": "Webhook"}), 422, unordered=True
)
BAD.post(
    "webhook-config",
    CRDS,
    crd(
        "bads",
        version(_plain),
        conversion={
            "strategy": "Webhook",
            "webhook": {"clientConfig": {}, "conversionReviewVersions": ["v9", "v9", "X"]},
        },
    ),
    422,
    unordered=True,
)
BAD.post(
    "webhook-not-used",
    CRDS,
    crd(
        "bads",
        version(_plain),
        conversion={
            "strategy": "None",
            "webhook": {"clientConfig": {"url": "https://x"}, "conversionReviewVersions": ["v1"]},
        },
    ),
    422,
    unordered=True,
)
bad("no-schema", None)
bad("deprecation", _plain, deprecationWarning="old")
bad(
    "scale",
    _plain,
    subresources={
        "scale": {"specReplicasPath": "spec.x", "statusReplicasPath": ".spec.x", "labelSelectorPath": ".x"}
    },
)
bad("scale-empty", _plain, subresources={"scale": {"specReplicasPath": "", "statusReplicasPath": ""}})
bad("columns", _plain, additionalPrinterColumns=[{"name": "", "type": "x", "format": "y", "jsonPath": "z"}])
bad(
    "selectable",
    _plain,
    selectableFields=[
        {"jsonPath": ".spec.b"},
        {"jsonPath": ".spec"},
        {"jsonPath": ".spec.a"},
        {"jsonPath": ".spec.a"},
    ],
)
bad(
    "selectable-metadata",
    struct({"metadata": struct({"name": string()})}),
    selectableFields=[{"jsonPath": ".metadata.name"}],
)
bad("root-type", string())
bad("root-no-type", {"properties": {"a": string()}})
bad("root-nullable", struct({}, nullable=True))
bad("root-additional", {"type": "object", "additionalProperties": string()})
bad("root-with-status", struct({"status": struct({})}, minProperties=1), subresources={"status": {}})
bad("root-metadata", struct({"metadata": struct({"labels": struct({})})}))
bad("kind-type", struct({"kind": integer(), "apiVersion": integer(), "metadata": string()}))
bad_field("no-type", {})
bad_field("unknown-type", {"type": "text"})
bad_field("null-type", {"type": "null"})
bad_field("array-without-items", {"type": "array"})
bad_field("items-without-type", array({}))
bad_field("items-empty-list", {"type": "array", "items": []})
bad_field("items-list", {"type": "array", "items": [string(), string()]})
bad_field("pattern", string(pattern="a("))
bad_field("pattern-class", string(pattern="[z-a]"))
bad_field("pattern-lookahead", string(pattern="(?=x)"))
bad_field("unique", array(string(), uniqueItems=True))
bad_field("both-properties", struct({"b": string()}, additionalProperties=string()))
bad_field("ref", string(**{"$ref": "#/x"}))
bad_field("id", string(id="x"))
bad_field("definitions", string(definitions={"x": string()}))
bad_field("dependencies", struct({"b": string()}, dependencies={"b": ["c"]}))
bad_field("pattern-properties", struct({}, patternProperties={"x": string()}))
bad_field("additional-items", array(string(), additionalItems=True))
bad_field("nested-type", string(anyOf=[string()]))
bad_field(
    "nested-everything",
    struct(
        {"b": string()},
        allOf=[
            {
                "properties": {
                    "b": {
                        "default": "x",
                        "description": "d",
                        "title": "t",
                        "nullable": True,
                        "x-kubernetes-int-or-string": True,
                    },
                    "c": {"minLength": 1},
                    "metadata": {},
                }
            }
        ],
    ),
)
bad_field(
    "nested-not",
    struct({}, **{"not": {"required": ["x"], "items": {"minLength": 1}, "additionalProperties": string()}}),
)
bad_field("preserve-false", struct({}, **{"x-kubernetes-preserve-unknown-fields": False}))
bad_field(
    "int-or-string-and-preserve",
    {"x-kubernetes-int-or-string": True, "x-kubernetes-preserve-unknown-fields": True},
)
bad_field("int-or-string-with-type", {"x-kubernetes-int-or-string": True, "anyOf": [string(), integer()]})
bad_field("embedded-without-type", {"x-kubernetes-embedded-resource": True})
bad_field("embedded-empty", struct(None, **{"x-kubernetes-embedded-resource": True}))
bad_field("list-type", array(string(), **{"x-kubernetes-list-type": "bag"}))
bad_field("list-type-of-string", string(**{"x-kubernetes-list-type": "set"}))
bad_field("set-of-objects", array(struct({"b": string()}), **{"x-kubernetes-list-type": "set"}))
bad_field("map-list-without-keys", array(struct({"b": string()}), **{"x-kubernetes-list-type": "map"}))
bad_field(
    "map-list-of-strings",
    array(string(), **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b"]}),
)
bad_field(
    "map-list-keys",
    array(
        struct({"b": string(nullable=True), "c": struct({})}, nullable=True),
        **{"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["b", "b", "c", "d"]},
    ),
)
bad_field("keys-without-map", array(struct({"b": string()}), **{"x-kubernetes-list-map-keys": ["b"]}))
bad_field("map-type", struct({}, **{"x-kubernetes-map-type": "x"}))
bad_field("map-type-of-string", string(**{"x-kubernetes-map-type": "atomic"}))
bad_field("default-type", string(default=1))
bad_field("default-unknown", struct({"b": string()}, default={"c": 1}))
bad_field("default-invalid", integer(default=5, maximum=3))
bad("default-in-metadata", struct({"metadata": struct({"name": string(default="x")})}))
bad_field(
    "rule",
    string(
        **{
            "x-kubernetes-validations": [
                {"rule": " "},
                {"rule": "true", "message": " "},
                {"rule": "true", "reason": "Why"},
            ]
        }
    ),
)

INSTANCES = Area("crd-instances")
W = f"/apis/{GROUP}/v1/namespaces/${{ns}}/widgets"
_widget_schema = struct(
    {
        "spec": struct(
            {
                "size": string(enum=["small", "large"], default="small"),
                "count": integer(minimum=1, maximum=10, format="int32"),
                "ratio": {"type": "number", "exclusiveMinimum": True, "minimum": 0, "multipleOf": 0.5},
                "even": integer(multipleOf=2),
                "name": string(minLength=2, maxLength=5, pattern="^[a-z]+$"),
                "flag": {"type": "boolean"},
                "when": string(format="date-time"),
                "address": string(format="ipv4"),
                "tags": array(string(), **{"x-kubernetes-list-type": "set", "maxItems": 3}),
                "ports": array(
                    struct(
                        {"port": integer(), "protocol": string(default="TCP"), "name": string()},
                        required=["port"],
                    ),
                    **{
                        "x-kubernetes-list-type": "map",
                        "x-kubernetes-list-map-keys": ["port", "protocol"],
                        "minItems": 1,
                    },
                ),
                "labels": {"type": "object", "additionalProperties": string(maxLength=3), "maxProperties": 2},
                "any": struct(None, **{"x-kubernetes-preserve-unknown-fields": True}),
                "half": struct(
                    {"known": struct({"a": string()})}, **{"x-kubernetes-preserve-unknown-fields": True}
                ),
                "amount": {"x-kubernetes-int-or-string": True},
                "template": struct(
                    None,
                    **{"x-kubernetes-preserve-unknown-fields": True, "x-kubernetes-embedded-resource": True},
                ),
                "maybe": string(nullable=True),
                "nested": struct({"deep": integer(default=7)}, default={}),
                "choice": struct(
                    {"a": string(), "b": string()}, oneOf=[{"required": ["a"]}, {"required": ["b"]}]
                ),
                "some": string(anyOf=[{"minLength": 3}, {"pattern": "^x"}]),
                "both": string(allOf=[{"minLength": 3}, {"pattern": "^x"}]),
                "never": string(**{"not": {"pattern": "^x"}}),
                "replicas": integer(),
            },
            required=["size"],
        ),
        "status": struct({"replicas": integer(), "selector": string(), "phase": string(enum=["On", "Off"])}),
    }
)
_columns = [
    {"name": "Size", "type": "string", "jsonPath": ".spec.size"},
    {"name": "Count", "type": "integer", "jsonPath": ".spec.count", "priority": 1, "description": "How many"},
    {"name": "Flag", "type": "boolean", "jsonPath": ".spec.flag"},
    {"name": "Ports", "type": "string", "jsonPath": ".spec.ports[*].port"},
    {"name": "TCP", "type": "integer", "jsonPath": '.spec.ports[?(@.protocol=="TCP")].port'},
    {"name": "Labels", "type": "string", "jsonPath": ".spec.labels"},
    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
]
offer(
    INSTANCES,
    crd(
        "widgets",
        version(
            _widget_schema,
            subresources={
                "status": {},
                "scale": {
                    "specReplicasPath": ".spec.replicas",
                    "statusReplicasPath": ".status.replicas",
                    "labelSelectorPath": ".status.selector",
                },
            },
            additionalPrinterColumns=_columns,
            selectableFields=[
                {"jsonPath": ".spec.size"},
                {"jsonPath": ".spec.count"},
                {"jsonPath": ".spec.flag"},
            ],
        ),
        names={"shortNames": ["wd"], "categories": ["all", "things"]},
    ),
)


def widget(name: str, spec: Any = None, **more: Any) -> Object:
    return of(f"{GROUP}/v1", "Widget", name, **({"spec": spec} if spec is not None else {}), **more)


INSTANCES.post("create", W, widget("one", {"count": 3, "flag": True, "labels": {"a": "b"}}))
INSTANCES.get("get", f"{W}/one")
INSTANCES.get("get-yaml", f"{W}/one", headers={"Accept": "application/yaml"})
INSTANCES.get("get-protobuf", f"{W}/one", 406, headers={"Accept": "application/vnd.kubernetes.protobuf"})
INSTANCES.post("again", W, widget("one", {}), 409)
INSTANCES.post(
    "defaults",
    W,
    widget("two", {"size": "large", "ports": [{"port": 1}, {"port": 1, "protocol": "UDP"}], "nested": None}),
)
INSTANCES.post("no-spec", W, widget("three"))
INSTANCES.post("no-kind", W, {"metadata": {"name": "none"}, "spec": {}}, 400)
INSTANCES.post("no-version", W, {"kind": "Widget", "metadata": {"name": "none"}, "spec": {}}, 400)
INSTANCES.post(
    "generated", W, {**widget("", {}), "metadata": {"generateName": "made-"}}, random="made-[a-z0-9]{5}"
)
INSTANCES.post("status-is-dropped", W, widget("four", {"replicas": 2}, status={"phase": "On"}))
INSTANCES.post("nulls", W, widget("five", {"count": None, "maybe": None, "size": None}))
INSTANCES.post(
    "pruned",
    W,
    widget("six", {"what": 1, "any": {"x": {"y": 1}}, "half": {"known": {"b": 1}, "z": 1}}, other=1),
)
INSTANCES.post(
    "pruned-strict",
    W + "?fieldValidation=Strict",
    widget("seven", {"what": 1, "half": {"known": {"b": 1}}}, other=1),
    400,
)
INSTANCES.post("pruned-ignored", W + "?fieldValidation=Ignore", widget("seven", {"what": 1}))
INSTANCES.post(
    "unknown-metadata", W + "?fieldValidation=Strict", widget("eight", {}, metadata={"what": 1}), 400
)
INSTANCES.post(
    "duplicate-fields",
    W + "?fieldValidation=Strict",
    '{"apiVersion":"diff.example.com/v1","kind":"Widget","metadata":{"name":"eight"},"spec":{"count":1,"count":2}}',
    400,
)
INSTANCES.post(
    "duplicate-warned",
    W,
    '{"apiVersion":"diff.example.com/v1","kind":"Widget","metadata":{"name":"eight"},"spec":{"count":1,"count":2}}',
)
INSTANCES.post(
    "yaml",
    W,
    "apiVersion: diff.example.com/v1\nkind: Widget\nmetadata: {name: nine}\nspec: {size: large}\n",
    headers=YAML,
)
INSTANCES.post("wrong-kind", W, {**widget("x", {}), "kind": "Other"}, 422)
INSTANCES.post("wrong-version", W, {**widget("x"), "apiVersion": f"{GROUP}/v2"}, 400)
INSTANCES.post("bad-name", W, widget("Bad_Name", {}), 422)
INSTANCES.post("bad-metadata", W, {**widget("x", {}), "metadata": {"name": "x", "labels": {"a": 1}}}, 400)
INSTANCES.post("metadata-list", W, {**widget("x", {}), "metadata": []}, 400)
INSTANCES.post("bad-label", W, widget("x", {}, metadata={"labels": {"a b": "c"}}), 422)
INSTANCES.post(
    "finalizers-warn", W, widget("ten", {}, metadata={"finalizers": ["plain", "with.dots", "ok.com/x"]})
)
INSTANCES.post(
    "embedded",
    W,
    widget(
        "eleven",
        {
            "template": {
                "apiVersion": "v1",
                "kind": "Pod",
                "metadata": {"name": "p", "labels": {"a": "b"}},
                "spec": {"x": 1},
            }
        },
    ),
)
for _name, _spec in {
    "type": "text",
    "enum": {"size": "huge"},
    "integer": {"count": "3"},
    "integer-float": {"count": 1.5},
    "minimum": {"count": 0},
    "maximum": {"count": 11},
    "int32": {"count": 3000000000},
    "number": {"ratio": 0.0},
    "multiple": {"ratio": 0.75},
    "multiple-int": {"even": 3},
    "too-short": {"name": "a"},
    "too-long": {"name": "abcdef"},
    "pattern": {"name": "AB"},
    "boolean": {"flag": "true"},
    "date-time": {"when": "yesterday"},
    "ipv4": {"address": "1.2.3"},
    "set": {"tags": ["a", "b", "a", "a"]},
    "too-many": {"tags": ["a", "b", "c", "d"]},
    "items": {"tags": [1]},
    "no-items": {"ports": []},
    "map-key": {"ports": [{"port": 1}, {"port": 1}]},
    "required": {"ports": [{"name": "x"}]},
    "additional": {"labels": {"a": "long", "b": 1}},
    "too-many-properties": {"labels": {"a": "1", "b": "2", "c": "3"}},
    "int-or-string": {"amount": True},
    "embedded-empty": {"template": {}},
    "embedded-bad": {
        "template": {"apiVersion": "a/b/c", "kind": "-", "metadata": {"name": "x/y", "labels": {"a b": "c"}}}
    },
    "null-item": {"tags": [None]},
    "one-of-none": {"choice": {}},
    "one-of-both": {"choice": {"a": "1", "b": "2"}},
    "any-of": {"some": "a"},
    "all-of": {"both": "a"},
    "all-of-one": {"both": "abc"},
    "not": {"never": "x"},
    "negative-replicas": {"replicas": -1},
}.items():
    INSTANCES.post(f"invalid-{_name}", W, widget("bad", _spec), 422, unordered=True)
INSTANCES.post(
    "embedded-metadata",
    W,
    widget("bad", {"template": {"apiVersion": "v1", "kind": "P", "metadata": {"labels": 1}}}),
    400,
)
INSTANCES.post("embedded-kind", W, widget("bad", {"template": {"apiVersion": "v1", "kind": 1}}), 400)
INSTANCES.get("list", W)
INSTANCES.get("list-all", f"/apis/{GROUP}/v1/widgets?limit=2")
INSTANCES.get("list-labels", W + "?labelSelector=a%3Db")
INSTANCES.get("list-field", W + "?fieldSelector=spec.size%3Dlarge")
INSTANCES.get("list-integer", W + "?fieldSelector=spec.count%3D3")
INSTANCES.get("list-bool", W + "?fieldSelector=spec.flag%3Dtrue")
INSTANCES.get("list-unknown-field", W + "?fieldSelector=spec.name%3Dx", 400)
INSTANCES.get("table", W, headers=TABLE)
INSTANCES.get("table-one", f"{W}/one", headers=TABLE)
INSTANCES.get(
    "partial", W, headers={"Accept": "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io"}
)
INSTANCES.watch("watch", W)
INSTANCES.get("wrong-scope", f"/apis/{GROUP}/v1/widgets/one", 404, pick=lambda body: None)
INSTANCES.get("not-there", f"{W}/zero", 404)
INSTANCES.put("update-unconditional", f"{W}/one", widget("one", {"count": 4}), 422)
INSTANCES.get("version", f"{W}/one", keep={"v": "metadata.resourceVersion"})
INSTANCES.put("update", f"{W}/one", widget("one", {"count": 4}, metadata={"resourceVersion": "${v}"}))
INSTANCES.put(
    "update-stale", f"{W}/one", widget("one", {"count": 5}, metadata={"resourceVersion": "${v}"}), 409
)
INSTANCES.put("update-missing", f"{W}/zero", widget("zero", {}, metadata={"resourceVersion": "1"}), 404)
INSTANCES.put("update-name", f"{W}/one", widget("two", {}), 400)
INSTANCES.patch("merge", "merge", f"{W}/one", {"spec": {"count": None, "size": "large"}})
INSTANCES.patch("merge-nothing", "merge", f"{W}/one", {})
INSTANCES.patch("merge-labels", "merge", f"{W}/one", {"metadata": {"labels": {"a": "b"}}})
INSTANCES.patch("merge-invalid", "merge", f"{W}/one", {"spec": {"count": 99}}, 422)
INSTANCES.patch("merge-unknown", "merge", f"{W}/one?fieldValidation=Strict", {"spec": {"what": 1}}, 422)
INSTANCES.patch("merge-warned", "merge", f"{W}/one", {"spec": {"what": 1}})
INSTANCES.patch("merge-name", "merge", f"{W}/one", {"metadata": {"name": "two"}}, 400)
INSTANCES.patch("merge-kind", "merge", f"{W}/one", {"kind": "Other"}, 422)
INSTANCES.patch("json", "json", f"{W}/one", [{"op": "add", "path": "/spec/count", "value": 2}])
INSTANCES.patch(
    "json-test-fails", "json", f"{W}/one", [{"op": "test", "path": "/spec/count", "value": 5}], 422
)
INSTANCES.patch("strategic", "strategic", f"{W}/one", {"spec": {"count": 1}}, 415)
INSTANCES.get("status", f"{W}/one/status")
INSTANCES.patch(
    "status-patch",
    "merge",
    f"{W}/one/status",
    {
        "spec": {"count": 9},
        "status": {"phase": "On", "replicas": 1, "selector": "a=b"},
        "metadata": {"labels": {"x": "y"}},
    },
)
INSTANCES.patch("status-invalid", "merge", f"{W}/one/status", {"status": {"phase": "Broken"}}, 422)
INSTANCES.patch("main-keeps-status", "merge", f"{W}/one", {"status": {"phase": "Off"}})
INSTANCES.get("scale-without-replicas", f"{W}/one/scale", 500)
INSTANCES.patch("set-replicas", "merge", f"{W}/one", {"spec": {"replicas": 2}})
INSTANCES.get("scale", f"{W}/one/scale", keep={"sv": "metadata.resourceVersion"})
INSTANCES.patch("scale-patch", "merge", f"{W}/one/scale", {"spec": {"replicas": 5}})
INSTANCES.put(
    "scale-update",
    f"{W}/one/scale",
    {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "one", "namespace": "${ns}"},
        "spec": {"replicas": 6},
    },
)
INSTANCES.put(
    "scale-negative",
    f"{W}/one/scale",
    {
        "kind": "Scale",
        "apiVersion": "autoscaling/v1",
        "metadata": {"name": "one", "namespace": "${ns}"},
        "spec": {"replicas": -6},
    },
    422,
)
INSTANCES.get("scaled", f"{W}/one")
INSTANCES.get("unknown-subresource", f"{W}/one/what", 404, pick=lambda body: None)
INSTANCES.delete("delete", f"{W}/two")
INSTANCES.delete("delete-options", f"{W}/three", delete_options(propagationPolicy="Foreground"))
INSTANCES.delete("delete-missing", f"{W}/zero", code=404)
INSTANCES.delete("finalizer-holds", f"{W}/ten")
INSTANCES.patch("finalizer-gone", "merge", f"{W}/ten", {"metadata": {"finalizers": None}})
INSTANCES.delete("delete-collection", f"{W}?labelSelector=a%3Db", pick=lambda body: body["kind"])
INSTANCES.get("resources", f"/apis/{GROUP}/v1")
INSTANCES.get("group", f"/apis/{GROUP}", until=lambda body: body["kind"] == "APIGroup")

VERSIONS = Area("crd-versions")
G1, G2 = (f"/apis/{GROUP}/{name}/gadgets" for name in ("v1", "v2"))
_v1 = struct({"spec": struct({"a": string(), "only1": string()})})
_v2 = struct({"spec": struct({"a": string(), "only2": string(default="two")})})
offer(
    VERSIONS,
    crd(
        "gadgets",
        version(_v1, deprecated=True, storage=False),
        version(_v2, "v2", deprecated=True, deprecationWarning="use v3"),
        version(_v2, "v3alpha1", served=False, storage=False),
        version(_v2, "v1beta1", deprecated=True, storage=False),
        scope="Cluster",
    ),
)
VERSIONS.post("create-v1", G1, of(f"{GROUP}/v1", "Gadget", "g1", spec={"a": "x", "only1": "y"}))
VERSIONS.get("as-v2", f"{G2}/g1")
VERSIONS.get("as-v1", f"{G1}/g1")
VERSIONS.post("create-v2", G2, of(f"{GROUP}/v2", "Gadget", "g2", spec={"a": "x", "only2": "y"}))
VERSIONS.get("list-v1", G1)
VERSIONS.get("list-v2", G2)
VERSIONS.patch("patch-v1", "merge", f"{G1}/g2", {"spec": {"a": "z"}})
VERSIONS.get("patched-v2", f"{G2}/g2")
VERSIONS.get("not-served", f"/apis/{GROUP}/v3alpha1/gadgets", 404, pick=lambda body: None)
VERSIONS.get("table", G2, headers=TABLE)
VERSIONS.get("group", f"/apis/{GROUP}", pick=lambda body: list(body["versions"]))
VERSIONS.watch("watch", G1)
VERSIONS.patch(
    "undeprecate",
    "json",
    f"{CRDS}/gadgets.{GROUP}",
    [{"op": "replace", "path": "/spec/versions/0/deprecated", "value": False}],
    pick=_by_type,
)
VERSIONS.get("recommends", f"/apis/{GROUP}/v1beta1/gadgets/g1")
