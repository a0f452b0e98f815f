"""Validation of a CustomResourceDefinition, with kube-apiserver's messages and field paths."""

from __future__ import annotations

from collections.abc import Iterator, Set

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    FieldErrors,
    bad_value,
    duplicate,
    forbidden,
    not_supported,
    required,
    too_many,
)
from podlife.api.names import check_dns_label_1035, check_dns_subdomain
from podlife.api.structural import Props, check_schema, find_field
from podlife.apiserver.strategies.field_checks import immutable

_COLUMN_TYPES = ("boolean", "date", "integer", "number", "string")
_COLUMN_FORMATS = ("byte", "date", "date-time", "double", "float", "int32", "int64", "password")
_MOST_SELECTABLE = 8
_REVIEW_VERSIONS = ("v1", "v1beta1")
_LONGEST_WARNING = 256
_PARTS = dict.fromkeys(("schema", "subresources", "additionalPrinterColumns", "selectableFields"))
# What a schema may have at its root if the status is a part of its own, as upstream's Go fields are called.
_AT_ROOT = (
    "Description Type Format Title Maximum ExclusiveMaximum Minimum ExclusiveMinimum MaxLength MinLength Pattern "
    "MaxItems MinItems UniqueItems MultipleOf Required Items Properties ExternalDocs Example "
    "XPreserveUnknownFields XValidations"
)
_WITH_STATUS = "at the root of the schema if the status subresource is enabled"
_ROOT_FIELDS = {
    "x-kubernetes-preserve-unknown-fields",
    "x-kubernetes-validations",
    *(name[0].lower() + name[1:] for name in _AT_ROOT.split()),
}


def has_condition(crd: Object, kind: str) -> bool:
    """Whether the condition is True."""
    conditions = crd.get("status", {}).get("conditions") or ()
    return any(each.get("type") == kind and each.get("status") == "True" for each in conditions)


def validate_definition(crd: Object) -> FieldErrors:
    spec, status = crd["spec"], crd.get("status", {})
    is_new = "resourceVersion" not in crd["metadata"]
    if is_new and crd["metadata"].get("name") != f"{spec['names']['plural']}.{spec['group']}":
        yield bad_value(
            "metadata.name", crd["metadata"].get("name"), 'must be spec.names.plural+"."+spec.group'
        )
    yield from _group(spec["group"])
    yield from _scope(spec["scope"])
    yield from _versions(spec)
    if (conversion := spec.get("conversion")) is not None:
        yield from _conversion(conversion, "spec.conversion")
    yield from _allowed_names(status.get("acceptedNames") or {}, "status.acceptedNames")
    yield from _stored_versions(status.get("storedVersions") or [], spec["versions"] or [])
    if spec.get("preserveUnknownFields"):
        yield bad_value(
            "spec.preserveUnknownFields",
            True,
            "cannot set to true, set x-kubernetes-preserve-unknown-fields to true in spec.versions[*].schema instead",
        )


def validate_definition_update(new: Object, old: Object) -> FieldErrors:
    """What an update may not change."""
    if has_condition(old, "Established"):
        yield from immutable("spec.scope", new["spec"]["scope"], old["spec"]["scope"])
        yield from immutable("spec.names.kind", new["spec"]["names"]["kind"], old["spec"]["names"]["kind"])
    yield from immutable("spec.group", new["spec"]["group"], old["spec"]["group"])
    yield from immutable("spec.names.plural", new["spec"]["names"]["plural"], old["spec"]["names"]["plural"])


def _group(group: str) -> FieldErrors:
    if not group:
        yield required("spec.group")
    elif problems := check_dns_subdomain(group):
        yield bad_value("spec.group", group, ",".join(problems))
    elif "." not in group:
        yield bad_value("spec.group", group, "should be a domain with at least one dot")


def _scope(scope: str) -> FieldErrors:
    if not scope:
        yield required("spec.scope")
    elif scope not in ("Cluster", "Namespaced"):
        yield not_supported("spec.scope", scope, ["Cluster", "Namespaced"])


def _versions(spec: Object) -> FieldErrors:
    versions: list[Object] = spec["versions"] or []
    # Upstream's paths: what all versions have in common is a part of the spec in its internal form.
    shared = {field for field in _PARTS if _is_shared(versions, field)}
    for index, version in enumerate(versions):
        if "openAPIV3Schema" not in (version.get("schema") or {}):
            yield required(f"spec.versions[{index}].schema.openAPIV3Schema")
    for index, version in enumerate(versions):
        path = f"spec.versions[{index}]"
        if problems := check_dns_label_1035(version["name"]):
            yield bad_value(f"{path}.name", version["name"], ",".join(problems))
        yield from _deprecation(version, f"{path}.deprecationWarning")
        yield from _parts(version, path, _PARTS.keys() - shared)
    if len({version["name"] for version in versions}) < len(versions):
        yield bad_value("spec.versions", versions, "must contain unique version names")
    if sum(version["storage"] for version in versions) != 1:
        detail = "must have exactly one version marked as storage version"
        yield bad_value("spec.versions", spec["versions"], detail)
    if versions and (problems := check_dns_label_1035(versions[0]["name"])):
        yield bad_value("spec.version", versions[0]["name"], ",".join(problems))
    yield from _names(spec["names"])
    if shared:
        yield from _parts(versions[0], "spec", shared)


def _is_shared(versions: list[Object], field: str) -> bool:
    return bool(versions and versions[0].get(field)) and all(
        version.get(field) == versions[0][field] for version in versions
    )


def _parts(version: Object, path: str, parts: Set[str]) -> FieldErrors:
    """Errors in these parts of a version."""
    subresources = version.get("subresources") or {}
    props = (version.get("schema") or {}).get("openAPIV3Schema")
    if "schema" in parts and props is not None:
        name = "validation" if path == "spec" else "schema"
        yield from _schema(props, f"{path}.{name}.openAPIV3Schema", has_status="status" in subresources)
    if "subresources" in parts and (scale := subresources.get("scale")) is not None:
        yield from _scale(scale, f"{path}.subresources.scale")
    if "additionalPrinterColumns" in parts:
        for index, column in enumerate(version.get("additionalPrinterColumns") or ()):
            yield from _column(column, f"{path}.additionalPrinterColumns[{index}]")
    if "selectableFields" in parts and (fields := version.get("selectableFields")):
        yield from _selectable(fields, props or {}, f"{path}.selectableFields")


def _schema(props: Props, path: str, *, has_status: bool) -> FieldErrors:
    if has_status:
        if props.get("type", "object") != "object":
            detail = f'only "object" is allowed as the type {_WITH_STATUS}'
            yield bad_value(f"{path}.type", props["type"], detail)
        elif not props.keys() <= _ROOT_FIELDS:
            shown = f"[{_AT_ROOT}]"
            detail = f"only {shown} fields are allowed {_WITH_STATUS}"
            yield bad_value(path, props, detail)
    if props.get("nullable"):
        yield forbidden(f"{path}.nullable", "nullable cannot be true at the root")
    yield from check_schema(props, path)


def _deprecation(version: Object, path: str) -> FieldErrors:
    warning = version.get("deprecationWarning")
    if warning is None:
        return
    if not version.get("deprecated"):
        yield bad_value(path, warning, "can only be set for deprecated versions")
        return
    if len(warning) > _LONGEST_WARNING:
        yield bad_value(path, warning, "must be <= 256 characters long")
    if not warning:
        yield bad_value(path, warning, "must not be an empty string")
    for index, char in enumerate(warning):
        if not char.isprintable():
            detail = f"must only contain printable UTF-8 characters; non-printable character found at index {index}"
            yield bad_value(path, warning, detail)
            break


def _simple_path(text: str, path: str) -> list[FieldError]:
    return (
        [] if text.startswith(".") else [bad_value(path, text, "must be a simple json path starting with .")]
    )


def _scale(scale: Object, path: str) -> FieldErrors:
    for field, roots, words in (
        ("specReplicasPath", (".spec.",), ".spec"),
        ("statusReplicasPath", (".status.",), ".status"),
        ("labelSelectorPath", (".spec.", ".status."), "either .spec or .status"),
    ):
        text = scale.get(field, "")
        at = f"{path}.{field}"
        if not text:
            if field != "labelSelectorPath":
                yield required(at)
        elif errors := _simple_path(text, at):
            yield from errors
        elif not text.startswith(roots):
            yield bad_value(at, text, f"should be a json path under {words}")


def _column(column: Object, path: str) -> FieldErrors:
    kind, format_, text = (column.get(field, "") for field in ("type", "format", "jsonPath"))
    if not column.get("name"):
        yield required(f"{path}.name")
    if kind not in _COLUMN_TYPES:
        detail = f"must be one of {','.join(_COLUMN_TYPES)}"
        yield bad_value(f"{path}.type", kind, detail) if kind else required(f"{path}.type", detail)
    if format_ and format_ not in _COLUMN_FORMATS:
        yield bad_value(f"{path}.format", format_, f"must be one of {','.join(_COLUMN_FORMATS)}")
    if not text:
        yield required(f"{path}.JSONPath")
    else:
        yield from _simple_path(text, f"{path}.JSONPath")


def _selectable(fields: list[Object], props: Props, path: str) -> FieldErrors:
    seen: set[str] = set()
    for index, field in enumerate(fields):
        at, text = f"{path}[{index}].jsonPath", field.get("jsonPath", "")
        if not text:
            yield required(at)
            continue
        try:
            _, found = find_field(text, props, with_brackets=False)
        except ValueError as error:
            yield bad_value(at, text, f"is an invalid path: {error}")
            continue
        if text.split(".")[1:2] == ["metadata"]:
            yield bad_value(at, text, "must not point to fields in metadata")
        if found.get("type") not in ("string", "boolean", "integer"):
            detail = (
                "must point to a field of type string, boolean or integer. "
                "Enum string fields and strings with formats are allowed."
            )
            yield bad_value(at, text, detail)
        if text in seen:
            yield duplicate(at, text)
        seen.add(text)
    if len(seen) > _MOST_SELECTABLE:
        yield too_many(path, len(seen), _MOST_SELECTABLE)


def _names(names: Object) -> FieldErrors:
    for field in ("plural", "singular", "kind", "listKind"):
        if not names.get(field):
            yield required(f"spec.names.{field}")
    yield from _allowed_names(names, "spec.names")


def _allowed_names(names: Object, path: str) -> FieldErrors:
    for field in ("plural", "singular"):
        name = names.get(field, "")
        if name and (problems := check_dns_label_1035(name)):
            yield bad_value(f"{path}.{field}", name, ",".join(problems))
    for field in ("kind", "listKind"):
        name = names.get(field, "")
        if name and (problems := check_dns_label_1035(name.lower())):
            detail = f"may have mixed case, but should otherwise match: {','.join(problems)}"
            yield bad_value(f"{path}.{field}", name, detail)
    yield from _labels(names.get("shortNames") or [], f"{path}.shortNames")
    if names.get("kind") and names["kind"] == names.get("listKind"):
        yield bad_value(f"{path}.listKind", names["listKind"], "kind and listKind may not be the same")
    yield from _labels(names.get("categories") or [], f"{path}.categories")


def _labels(values: list[str], path: str) -> Iterator[FieldError]:
    for index, value in enumerate(values):
        if problems := check_dns_label_1035(value):
            yield bad_value(f"{path}[{index}]", value, ",".join(problems))


def _stored_versions(stored: list[str], versions: list[Object]) -> FieldErrors:
    path = "status.storedVersions"
    if not stored:
        yield bad_value(path, stored or None, "must have at least one stored version")
        return
    for version in versions:
        if version["storage"] and version["name"] not in stored:
            yield bad_value(path, stored, f"must have the storage version {version['name']}")
    served = {version["name"] for version in versions}
    for index, name in enumerate(stored):
        if name not in served:
            detail = (
                f"missing from spec.versions; {name} was previously a storage version, and must remain in "
                f"spec.versions until a storage migration ensures no data remains persisted in {name} and removes "
                f"{name} from status.storedVersions"
            )
            yield bad_value(f"{path}[{index}]", name, detail)


def _conversion(conversion: Object, path: str) -> FieldErrors:
    strategy, webhook = conversion["strategy"], conversion.get("webhook")
    if not strategy:
        yield required(f"{path}.strategy")
    elif strategy not in ("None", "Webhook"):
        yield not_supported(f"{path}.strategy", strategy, ["None", "Webhook"])
    if strategy == "Webhook":
        yield from _webhook(webhook or {}, path)
    elif webhook is not None:
        detail = "should not be set when strategy is not set to Webhook"
        if webhook.get("clientConfig") is not None:
            yield forbidden(f"{path}.webhookClientConfig", detail)
        if webhook.get("conversionReviewVersions"):
            yield forbidden(f"{path}.conversionReviewVersions", detail)


def _webhook(webhook: Object, path: str) -> FieldErrors:
    config = webhook.get("clientConfig")
    if config is None:
        yield required(f"{path}.webhookClientConfig", "required when strategy is set to Webhook")
    elif (config.get("url") is None) == (config.get("service") is None):
        yield required(f"{path}.webhookClientConfig", "exactly one of url or service is required")
    versions = webhook.get("conversionReviewVersions") or []
    at = f"{path}.conversionReviewVersions"
    if not versions:
        yield required(at)
    seen: set[str] = set()
    for index, version in enumerate(versions):
        if version in seen:
            yield bad_value(f"{at}[{index}]", version, "duplicate version")
            continue
        seen.add(version)
        for problem in check_dns_label_1035(version):
            yield bad_value(f"{at}[{index}]", version, problem)
    if versions and not set(versions) & set(_REVIEW_VERSIONS):
        yield bad_value(at, versions, f"must include at least one of {', '.join(_REVIEW_VERSIONS)}")
