"""OpenAPI of custom resources, made from their schemas: what `kubectl explain` and client-side validation read.

Pure functions from rows to documents. Paths are described in short: their operations, kinds and types, without the
parameters that all resources share.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podlife.api.codec import Object, decode_object, encode
from podlife.api.schema import openapi_documents
from podlife.apiserver.resource import Resource

_META = "io.k8s.apimachinery.pkg.apis.meta.v1."
_SCALE = "io.k8s.api.autoscaling.v1.Scale"
# A document with the types that all resources share, and one with the scale subresource.
_SHARED, _SCALED = "v3/apis/coordination.k8s.io/v1", "v3/apis/apps/v1"
_CONVENTIONS = "https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md"
_VERBS = {
    "collection": (("get", "list"), ("post", "create"), ("delete", "deletecollection")),
    "object": (("get", "read"), ("put", "replace"), ("delete", "delete"), ("patch", "patch")),
    "subresource": (("get", "read"), ("put", "replace"), ("patch", "patch")),
}
_ACTIONS = {"create": "post", "read": "get", "replace": "put"}
_PATCHES = ("application/json-patch+json", "application/merge-patch+json", "application/apply-patch+yaml")
# kubectl looks for these before it uses them.
_OPTIONS = ("dryRun", "fieldManager", "fieldValidation")
_JUNCTORS = ("allOf", "oneOf", "anyOf", "not")


def path_of(row: Resource) -> str:
    """The path of the version 3 document with this row, below /openapi."""
    return f"v3/apis/{row.group}/{row.version}"


def hash_of(rows: Sequence[Resource]) -> str:
    """A hash that changes whenever the document of these rows does."""
    parts = [
        [row.api_version, row.kind, row.list_kind, row.plural, row.namespaced, row.subresources, _props(row)]
        for row in rows
    ]
    return hashlib.sha512(encode([parts, openapi_documents.hashes()[_SHARED]])).hexdigest().upper()


def document_v3(rows: Sequence[Resource]) -> bytes:
    """The document of one group and version."""
    schemas: Object = {}
    paths: Object = {}
    for row in rows:
        schemas |= _definitions(row, v2=False)
        paths |= _paths(row, v2=False)
    shared = _schemas(_SHARED, (_META,))
    if any("scale" in row.subresources for row in rows):
        shared |= _schemas(_SCALED, (_SCALE,))
    return encode(
        {
            "openapi": "3.0.0",
            "info": {"title": "Kubernetes CRD Swagger", "version": "v0.1.0"},
            "paths": dict(sorted(paths.items())),
            "components": {"schemas": dict(sorted((shared | schemas).items()))},
        }
    )


def document_v2(rows: Iterable[Resource]) -> bytes:
    """The one document of version 2: kube-apiserver's, and these rows."""
    document = decode_object(openapi_documents.document("v2") or b"{}")
    for row in rows:
        document["definitions"] |= _definitions(row, v2=True)
        document["paths"] |= _paths(row, v2=True)
    return encode(document)


def _schemas(path: str, prefixes: tuple[str, ...]) -> Object:
    document = decode_object(openapi_documents.document(path) or b"{}")
    found = document["components"]["schemas"].items()
    return {name: schema for name, schema in found if name.startswith(prefixes)}


def _props(row: Resource) -> Object:
    return {} if row.custom is None else row.custom.props


def _model(row: Resource, kind: str) -> str:
    return f"{'.'.join(reversed(row.group.split('.')))}.{row.version}.{kind}"


def _ref(name: str, *, v2: bool) -> Object:
    return {"$ref": f"#/definitions/{name}" if v2 else f"#/components/schemas/{name}"}


def _described(text: str, name: str, *, v2: bool) -> Object:
    reference = _ref(name, v2=v2)
    return {"description": text, **(reference if v2 else {"allOf": [reference]})}


def _definitions(row: Resource, *, v2: bool) -> Object:
    kind, list_kind = _model(row, row.kind), _model(row, row.list_kind)
    items = f"List of {row.plural}. More info: {_CONVENTIONS}"
    metadata = f"Standard list metadata. More info: {_CONVENTIONS}#types-kinds"
    return {
        kind: {**_kind_schema(_props(row), v2=v2), **_gvk(row, row.kind)},
        list_kind: {
            "description": f"{row.list_kind} is a list of {row.kind}",
            "type": "object",
            "required": ["items"],
            "properties": {
                **_type_fields(),
                "items": {"description": items, "type": "array", "items": _ref(kind, v2=v2)},
                "metadata": _described(metadata, f"{_META}ListMeta", v2=v2),
            },
            **_gvk(row, row.list_kind),
        },
    }


def _gvk(row: Resource, kind: str) -> Object:
    named = {"group": row.group, "kind": kind, "version": row.version}
    return {"x-kubernetes-group-version-kind": [named]}


def _kind_schema(props: Object, *, v2: bool) -> Object:
    if not props or (v2 and props.get("x-kubernetes-preserve-unknown-fields")):
        # With any property, kubectl would forbid all others.
        return {"type": "object"}
    schema = _published(props, v2=v2)
    schema["properties"] = {**schema.get("properties", {}), **_type_fields(), "metadata": _metadata(v2=v2)}
    return schema


def _metadata(*, v2: bool) -> Object:
    text = f"Standard object's metadata. More info: {_CONVENTIONS}#metadata"
    return _described(text, f"{_META}ObjectMeta", v2=v2)


def _type_fields() -> Object:
    return {
        "apiVersion": {
            "description": "APIVersion defines the versioned schema of this representation of an object. Servers "
            "should convert recognized schemas to the latest internal value, and may reject unrecognized values. "
            f"More info: {_CONVENTIONS}#resources",
            "type": "string",
        },
        "kind": {
            "description": "Kind is a string value representing the REST resource this object represents. Servers may "
            "infer this from the endpoint the client submits requests to. Cannot be updated. In CamelCase. "
            f"More info: {_CONVENTIONS}#types-kinds",
            "type": "string",
        },
    }


def _published(props: Mapping[str, Any], *, v2: bool) -> Object:
    """A schema as clients see it. Version 2 has neither junctors nor nullable, and kubectl cannot read some of its
    combinations."""
    schema: Object = dict(props)
    if v2:
        _reduce(schema)
    elif schema.get("x-kubernetes-int-or-string") and not schema.get("anyOf") and not schema.get("allOf"):
        schema["anyOf"] = [{"type": "integer"}, {"type": "string"}]
    if "properties" in schema:
        schema["properties"] = {name: _published(each, v2=v2) for name, each in schema["properties"].items()}
    for field in ("items", "additionalProperties"):
        if isinstance(schema.get(field), dict):
            schema[field] = _published(schema[field], v2=v2)
    if schema.get("x-kubernetes-embedded-resource") and not (
        v2 and schema.get("x-kubernetes-preserve-unknown-fields")
    ):
        schema["properties"] = {
            **schema.get("properties", {}),
            **_type_fields(),
            "metadata": _metadata(v2=v2),
        }
        schema["required"] = list(dict.fromkeys([*schema.get("required", ()), "kind", "apiVersion"]))
    return schema


def _reduce(schema: Object) -> None:
    for field in _JUNCTORS:
        schema.pop(field, None)
    nullable = {name for name, each in schema.get("properties", {}).items() if each.get("nullable")}
    kept = [name for name in schema.pop("required", ()) if name not in nullable]
    if kept:
        schema["required"] = kept
    is_open = schema.get("x-kubernetes-preserve-unknown-fields")
    if schema.pop("nullable", False) or is_open:
        for field in ("items", "properties", "type"):
            schema.pop(field, None)
    if isinstance(schema.get("additionalProperties"), bool):
        del schema["additionalProperties"]
    if schema.get("type") == "array" and "items" not in schema:
        del schema["type"]


def _paths(row: Resource, *, v2: bool) -> Object:
    root = f"/apis/{row.group}/{row.version}/"
    collection = f"{root}{'namespaces/{namespace}/' * row.namespaced}{row.plural}"
    paths = {
        collection: _operations(row, "collection", "", v2=v2),
        f"{collection}/{{name}}": _operations(row, "object", "", v2=v2),
    }
    if row.namespaced:
        paths[f"{root}{row.plural}"] = {"get": _operation(row, "get", "list", "ForAllNamespaces", v2=v2)}
    for name in row.subresources:
        paths[f"{collection}/{{name}}/{name}"] = _operations(row, "subresource", name, v2=v2)
    return paths


def _operations(row: Resource, place: str, subresource: str, *, v2: bool) -> Object:
    operations: Object = {
        method: _operation(row, method, verb, subresource, v2=v2) for method, verb in _VERBS[place]
    }
    names = ([("name", f"name of the {row.kind}")] if place != "collection" else []) + (
        [("namespace", "object name and auth scope, such as for teams and projects")] * row.namespaced
    )
    typed: Object = {"type": "string"} if v2 else {"schema": {"type": "string"}}
    operations["parameters"] = [
        {"name": name, "in": "path", "description": text, "required": True, **typed} for name, text in names
    ]
    return operations


def _operation(row: Resource, method: str, verb: str, suffix: str, *, v2: bool) -> Object:
    answer = _SCALE if suffix == "scale" else _model(row, row.list_kind if verb == "list" else row.kind)
    if verb in ("delete", "deletecollection"):
        answer = f"{_META}Status"
    title = "".join(part.capitalize() for part in row.group.split("."))
    scope = "Namespaced" if row.namespaced and suffix != "ForAllNamespaces" else ""
    name = f"{verb}{title}{row.version.capitalize()}{scope}{row.kind}{suffix[:1].upper()}{suffix[1:]}"
    operation: Object = {
        "description": f"{verb} {row.kind}",
        "operationId": name,
        "tags": [f"{title[0].lower()}{title[1:]}_{row.version}"],
        "responses": {"200": _answer(_ref(answer, v2=v2), v2=v2), "401": {"description": "Unauthorized"}},
        "x-kubernetes-action": _ACTIONS.get(verb, verb),
        "x-kubernetes-group-version-kind": {"group": row.group, "kind": row.kind, "version": row.version},
    }
    if method in ("post", "put", "patch"):
        body = f"{_META}Patch" if method == "patch" else answer
        types = _PATCHES if method == "patch" else ("application/json", "application/yaml")
        operation |= _body(_ref(body, v2=v2), types, v2=v2)
    if method != "get":
        typed: Object = {"type": "string"} if v2 else {"schema": {"type": "string"}}
        options = _OPTIONS if method != "delete" else _OPTIONS[:1]
        operation["parameters"] = [
            *operation.get("parameters", ()),
            *(
                {"name": each, "in": "query", "uniqueItems" if v2 else "required": v2, **typed}
                for each in options
            ),
        ]
    return operation


def _answer(schema: Object, *, v2: bool) -> Object:
    return {
        "description": "OK",
        **({"schema": schema} if v2 else {"content": {"application/json": {"schema": schema}}}),
    }


def _body(schema: Object, types: Sequence[str], *, v2: bool) -> Object:
    if v2:
        return {
            "consumes": list(types),
            "parameters": [{"name": "body", "in": "body", "required": True, "schema": schema}],
        }
    return {"requestBody": {"required": True, "content": {each: {"schema": schema} for each in types}}}
