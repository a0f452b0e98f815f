"""Custom resources as Python classes: a msgspec struct gives its CustomResourceDefinition.

    @CustomResource("example.com", "v1", "pools", columns={"Size": ".spec.size"})
    class Pool(msgspec.Struct):
        metadata: Metadata
        spec: PoolSpec

    manifest = definition_of(Pool)

The same class is the view that clients and informers decode into. What a structural schema cannot express, and what an
API server would refuse, is one ConfigError that names the class and the field. See docs/write-an-operator.md.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Annotated, Literal, TypeVar

import msgspec

from podlife.api.codec import Object, plain
from podlife.errors import ConfigError

C = TypeVar("C", bound=type)

_ATTRIBUTE = "__custom_resource__"
_RULES = "x-kubernetes-validations"
_QUANTITY = r"^[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([KMGTPE]i|[numkMGTPE]|[eE][+-]?[0-9]+)?$"

IntOrString = int | str
Quantity = int | Annotated[str, msgspec.Meta(pattern=_QUANTITY)]
"""Such as 500m or 1Gi; `podlife.api.quantity` reads it."""

# Annotations of fields; any other keyword of a schema is written as they are.
ATOMIC_LIST = msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "atomic"})
SET_LIST = msgspec.Meta(extra_json_schema={"x-kubernetes-list-type": "set"})
ATOMIC_MAP = msgspec.Meta(extra_json_schema={"x-kubernetes-map-type": "atomic"})
EMBEDDED = msgspec.Meta(extra_json_schema={"x-kubernetes-embedded-resource": True})
PRESERVE_UNKNOWN = msgspec.Meta(extra_json_schema={"x-kubernetes-preserve-unknown-fields": True})


def map_list(*keys: str) -> msgspec.Meta:
    """A list of objects that these fields, with their names in JSON, identify."""
    extra = {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": list(keys)}
    return msgspec.Meta(extra_json_schema=extra)


def rule(expression: str, message: str = "", **more: str) -> msgspec.Meta:
    """A validation rule in CEL. `more` are other fields of the rule, such as `fieldPath`."""
    texts = {"rule": expression, **({"message": message} if message else {}), **more}
    return msgspec.Meta(extra_json_schema={_RULES: [texts]})


@dataclass(frozen=True, slots=True)
class CustomResource:
    """A decorator of classes: the resource whose objects they describe. A class with the field `status` has the status
    subresource. Paths are written as in `.spec.size`."""

    group: str
    version: str
    plural: str
    # By default the name of the class.
    kind: str = ""
    scope: Literal["Namespaced", "Cluster"] = "Namespaced"
    short_names: Sequence[str] = ()
    categories: Sequence[str] = ()
    # Paths by title; instead of a path, the fields of a column (`{"jsonPath": ".spec.size", "priority": 1}`).
    columns: Mapping[str, str | Object] = field(default_factory=dict)
    selectable: Sequence[str] = ()
    # Paths of the wanted and the actual number of replicas, and of a label selector, which may be missing.
    scale: Sequence[str] = ()
    # For the whole object.
    rules: Sequence[msgspec.Meta] = ()

    def __call__(self, cls: C) -> C:
        setattr(cls, _ATTRIBUTE, replace(self, kind=self.kind or cls.__name__))
        return cls

    @property
    def name(self) -> str:
        return f"{self.plural}.{self.group}"


def resource_of(cls: type) -> CustomResource:
    """Raises ConfigError for a class without the decorator."""
    found = getattr(cls, _ATTRIBUTE, None)
    if not isinstance(found, CustomResource):
        raise ConfigError(f"{cls.__name__} is not a custom resource: decorate it with @CustomResource(…)")
    return found


def definition_of(stored: type, *others: type) -> Object:
    """The CustomResourceDefinition of a class. `others` are further versions, served beside it. Raises ConfigError."""
    resource = resource_of(stored)
    for other in map(resource_of, others):
        if (other.name, other.kind) != (resource.name, resource.kind):
            raise ConfigError(
                f"{other.kind} in {other.name} is not a version of {resource.kind} in {resource.name}"
            )
    names = {"kind": resource.kind, "plural": resource.plural, "singular": resource.kind.lower()}
    lists = {"shortNames": [*resource.short_names], "categories": [*resource.categories]}
    spec = {
        "group": resource.group,
        "scope": resource.scope,
        "names": {
            **names,
            "listKind": f"{resource.kind}List",
            **{name: each for name, each in lists.items() if each},
        },
        "versions": [{**_version(cls), "storage": cls is stored} for cls in (stored, *others)],
    }
    kind = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    return {**kind, "metadata": {"name": resource.name}, "spec": spec}


def definitions_of(classes: Iterable[type]) -> list[Object]:
    """One definition for each resource; of several versions the first is stored."""
    versions: dict[str, list[type]] = {}
    for cls in classes:
        versions.setdefault(resource_of(cls).name, []).append(cls)
    return [definition_of(*each) for each in versions.values()]


def manifest_of(obj: msgspec.Struct) -> Object:
    """The object as it is created on a server: with apiVersion and kind, without metadata that is empty."""
    resource, content = resource_of(type(obj)), plain(obj)
    content["metadata"] = {
        name: each for name, each in content["metadata"].items() if each not in ("", 0, [], {})
    }
    return {"apiVersion": f"{resource.group}/{resource.version}", "kind": resource.kind, **content}


def _version(cls: type) -> Object:
    # Operators that only read their resource do not load the checks of schemas and rules.
    from podlife.api.class_schema import find_property, schema_of

    resource = resource_of(cls)
    rules = [each for meta in resource.rules for each in (meta.extra_json_schema or {}).get(_RULES, ())]
    schema = schema_of(cls, {_RULES: rules} if rules else {})
    columns = []
    for name, column in resource.columns.items():
        given = {"jsonPath": column} if isinstance(column, str) else column
        found = find_property(cls, schema, given["jsonPath"])
        kind = "date" if found.get("format") == "date-time" else found.get("type")
        # Objects and lists are printed as text.
        kind = kind if kind in ("boolean", "date", "integer", "number") else "string"
        columns.append({"name": name, "type": kind, **given})
    subresources: Object = {"status": {}} if "status" in schema["properties"] else {}
    if resource.scale:
        paths = zip(
            ("specReplicasPath", "statusReplicasPath", "labelSelectorPath"), resource.scale, strict=False
        )
        subresources["scale"] = dict(paths)
    for path in (*resource.selectable, *resource.scale):
        find_property(cls, schema, path)
    selectable = [{"jsonPath": path} for path in resource.selectable]
    parts = {
        "additionalPrinterColumns": columns,
        "selectableFields": selectable,
        "subresources": subresources,
    }
    given_parts = {name: each for name, each in parts.items() if each}
    return {"name": resource.version, "served": True, "schema": {"openAPIV3Schema": schema}, **given_parts}
