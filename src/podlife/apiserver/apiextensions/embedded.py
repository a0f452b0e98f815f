"""Resources inside of custom resources (`x-kubernetes-embedded-resource`): their metadata is that of every object."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from podlife.api import schema as types
from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value, required
from podlife.api.names import check_dns_label_1035, check_path_segment
from podlife.api.structural import Schema
from podlife.apiserver.strategies.object_meta import validate_metadata


def _embedded(value: Any, schema: Schema | None, path: str) -> Iterator[tuple[Object, str]]:
    """Every embedded resource, with its path."""
    if schema is None:
        return
    if isinstance(value, dict):
        if schema.embedded:
            yield value, path
        for name, item in value.items():
            if isinstance(item, dict | list):
                inner = schema.properties.get(name)
                at = f"{path}.{name}" if path else name
                if inner is not None:
                    yield from _embedded(item, inner, at)
                else:
                    yield from _embedded(item, schema.additional, f"{path}[{name}]")
    elif isinstance(value, list) and schema.items is not None:
        for index, item in enumerate(value):
            yield from _embedded(item, schema.items, f"{path}[{index}]")


def coerce_embedded(obj: Object, schema: Schema) -> list[str]:
    """Bring the metadata of embedded resources into shape; returns the unknown fields that were removed. Raises
    DecodeError."""
    unknown: list[str] = []
    for resource, path in list(_embedded(obj, schema, "")):
        for field in ("apiVersion", "kind"):
            if not isinstance(resource.get(field, ""), str):
                raise types.DecodeError(
                    str(bad_value(f"{path}.{field}", resource[field], "must be a string"))
                )
        metadata = resource.get("metadata")
        if isinstance(metadata, dict):
            try:
                found = types.check_metadata(metadata)
            except types.DecodeError as error:
                raise types.DecodeError(str(bad_value(f"{path}.metadata", metadata, str(error)))) from None
            unknown += [f"{path}.metadata.{text.split(chr(34))[1]}" for text in found]
    return sorted(unknown)


def validate_embedded(obj: Object, schema: Schema) -> list[FieldError]:
    errors: list[FieldError] = []
    for resource, path in _embedded(obj, schema, ""):
        errors += [required(f"{path}.{field}") for field in ("apiVersion", "kind") if field not in resource]
        version, kind = resource.get("apiVersion"), resource.get("kind")
        if version == "":
            errors.append(bad_value(f"{path}.apiVersion", version, "must not be empty"))
        elif isinstance(version, str) and version.count("/") > 1:
            detail = f"unexpected GroupVersion string: {version}"
            errors.append(bad_value(f"{path}.apiVersion", version, detail))
        if kind == "":
            errors.append(bad_value(f"{path}.kind", kind, "must not be empty"))
        elif isinstance(kind, str) and (problems := check_dns_label_1035(kind.lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            errors.append(bad_value(f"{path}.kind", kind, detail))
        if metadata := resource.get("metadata"):
            named = {"name": "fakename", **metadata}
            found = validate_metadata(named, bool(metadata.get("namespace")), check_path_segment)
            errors += [error.below(path) for error in found]
    return errors
