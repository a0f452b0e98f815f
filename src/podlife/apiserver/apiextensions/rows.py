"""Rows of the catalog from a custom resource definition: one for each version that is served."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache, partial
from hashlib import sha256
from typing import Any

from podlife.api.codec import Object, encode
from podlife.api.fieldpath import Path, Version, merge_type_of_props
from podlife.api.structural import Schema, rule_tree
from podlife.apiserver.admission.webhooks import Call, ClientConfig
from podlife.apiserver.apiextensions.custom_strategy import CustomResourceStrategy, CustomResourceVersion
from podlife.apiserver.apiextensions.json_path import Find, compile_path
from podlife.apiserver.apiextensions.webhook_converter import WebhookConverter
from podlife.apiserver.catalog import version_order
from podlife.apiserver.printers import PLAIN
from podlife.apiserver.printers.cells import since
from podlife.apiserver.resource import Column, CustomResource, Printer, Resource
from podlife.apiserver.strategies.apiextensions.validation import has_condition

_VERBS = ("delete", "deletecollection", "get", "list", "patch", "create", "update", "watch")
_VERBS_OF_TERMINATING = ("delete", "deletecollection", "get", "list", "watch")
_AGE = {
    "name": "Age",
    "type": "date",
    "description": PLAIN.columns[1].description,
    "jsonPath": ".metadata.creationTimestamp",
}


def rows_of(crd: Object, call_webhook: Call | None) -> list[Resource]:
    """The rows of a definition; none while its names are not accepted."""
    if not has_condition(crd, "NamesAccepted") and not has_condition(crd, "Established"):
        return []
    versions = crd["spec"]["versions"]
    schemas = {version["name"]: Schema(_props(version)) for version in versions}
    storage = next(version["name"] for version in versions if version["storage"])
    shared = _Shared(crd, _converter(crd, schemas, call_webhook))
    return [_row(crd, version, schemas, storage, shared) for version in versions if version["served"]]


class _Shared:
    """What the rows of a definition have in common."""

    def __init__(self, crd: Object, converter: WebhookConverter | None) -> None:
        self.converter = converter
        parts = (crd["metadata"].get("uid"), crd["spec"], crd["status"]["acceptedNames"])
        self.digest = sha256(encode(parts)).digest()
        group = crd["spec"]["group"]
        by_version = {f"{group}/{version['name']}": version for version in crd["spec"]["versions"]}
        subresources = {name: each.get("subresources") or {} for name, each in by_version.items()}
        self.status_versions = tuple(name for name, each in subresources.items() if "status" in each)
        self.replicas_paths = {name: _replicas_path(each.get("scale")) for name, each in subresources.items()}
        self.versions = cache(
            lambda: {
                name: Version(merge_type_of_props(_props(version)), may_change=True)
                for name, version in by_version.items()
            }
        )


def _replicas_path(scale: Object | None) -> Path:
    return tuple(f"f:{name}" for name in scale["specReplicasPath"].split(".")[1:]) if scale else ()


def _props(version: Object) -> Object:
    props: Object = (version.get("schema") or {}).get("openAPIV3Schema") or {}
    return props


def _row(crd: Object, version: Object, schemas: dict[str, Schema], storage: str, shared: _Shared) -> Resource:
    spec, names = crd["spec"], crd["status"]["acceptedNames"]
    subresources = version.get("subresources") or {}
    is_terminating = has_condition(crd, "Terminating")
    custom = CustomResourceVersion(
        f"{names['plural']}.{spec['group']}",
        f"{spec['group']}/{version['name']}",
        names["kind"],
        schemas[version["name"]],
        schemas[storage if shared.converter is None else version["name"]],
        "status" in subresources,
        subresources.get("scale"),
        is_terminating,
    )
    # All objects were stored with this very schema, unless there were or are others.
    is_stored_as_shown = crd["metadata"].get("generation") == 1 and len(spec["versions"]) == 1
    is_converted = shared.converter is not None
    return Resource(
        spec["group"],
        version["name"],
        names["kind"],
        names["plural"],
        namespaced=spec["scope"] == "Namespaced",
        short_names=tuple(names.get("shortNames") or ()),
        categories=tuple(names.get("categories") or ()),
        strategy=CustomResourceStrategy(custom, rule_tree(_props(version), is_resource=True)),
        subresources=tuple(name for name in ("status", "scale") if subresources.get(name) is not None),
        selectable=dict(_selectable(version, custom)),
        printer=_printer(version),
        from_stored=None if is_stored_as_shown or is_converted else custom.read,
        singular_name=names["singular"],
        check=custom.check,
        custom=CustomResource(
            list_kind=names["listKind"],
            storage_version=storage,
            discovery_verbs=_VERBS_OF_TERMINATING if is_terminating else _VERBS,
            props=_props(version),
            digest=shared.digest,
            scale=subresources.get("scale"),
            versions=shared.versions,
            status_versions=shared.status_versions,
            replicas_paths=shared.replicas_paths,
            converter=shared.converter,
        ),
        warning=_deprecation(spec, version, names),
    )


def _converter(crd: Object, schemas: dict[str, Schema], call_webhook: Call | None) -> WebhookConverter | None:
    spec, status = crd["spec"], crd["status"]
    if spec["conversion"]["strategy"] != "Webhook" or call_webhook is None:
        return None
    group, webhook = spec["group"], spec["conversion"]["webhook"]
    config = ClientConfig.from_object(webhook["clientConfig"])
    if not config.ca_bundle.strip():
        config = replace(config, ca_bundle=b"")
    return WebhookConverter(
        call_webhook,
        config,
        tuple(webhook["conversionReviewVersions"]),
        {f"{group}/{name}": schema for name, schema in schemas.items()},
        status["acceptedNames"]["kind"],
        f"{group}/{status['storedVersions'][0]}",
    )


def _deprecation(spec: Object, version: Object, names: Object) -> str:
    if not version.get("deprecated"):
        return ""
    if given := version.get("deprecationWarning"):
        return str(given)
    order = version_order(version["name"])
    newer = [
        each["name"]
        for each in spec["versions"]
        if each["served"] and not each.get("deprecated") and version_order(each["name"]) < order
    ]
    text = f"{spec['group']}/{version['name']} {names['kind']} is deprecated"
    return f"{text}; use {spec['group']}/{min(newer, key=version_order)} {names['kind']}" if newer else text


def _selectable(
    version: Object, custom: CustomResourceVersion
) -> Iterator[tuple[str, Callable[[Object], str]]]:
    for field in version.get("selectableFields") or ():
        yield field["jsonPath"].removeprefix("."), partial(_field, compile_path(field["jsonPath"]))


def _field(find: Find, obj: Object) -> str:
    found = find(obj)
    return _text(found[0]) if found and found[0] is not None else ""


def _text(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    return value if isinstance(value, str) else encode(value).decode()


def _printer(version: Object) -> Printer:
    definitions = version.get("additionalPrinterColumns") or [_AGE]
    try:
        finds = [compile_path(column["jsonPath"]) for column in definitions]
    except ValueError:
        # As upstream: the name alone.
        definitions, finds = [], []
    columns = [
        Column(
            column["name"],
            column.get("description")
            or f"Custom resource definition column (in JSONPath format): {column['jsonPath']}",
            column["type"],
            column.get("format", ""),
            column.get("priority", 0),
        )
        for column in definitions
    ]

    def cells(obj: Object, now: float) -> list[Any]:
        values = [find(obj) for find in finds]
        shown = [
            _cell(found[0], column.type, now) if found else None
            for found, column in zip(values, columns, strict=True)
        ]
        return [obj["metadata"].get("name", ""), *shown]

    return Printer((PLAIN.columns[0], *columns), cells)


def _cell(value: Any, kind: str, now: float) -> Any:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    match kind:
        case "string":
            return "<nil>" if value is None else _text(value)
        case "integer" if is_number:
            return int(value)
        case "number" if is_number:
            return value
        case "boolean" if isinstance(value, bool):
            return value
        case "date" if isinstance(value, str):
            try:
                return since(value, now)
            except ValueError:
                return "<invalid>"
    return None
