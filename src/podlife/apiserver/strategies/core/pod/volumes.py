"""Volumes of a pod.

Sources that a node without cloud drivers can serve are checked as upstream does; for the others only that there is
exactly one source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value, duplicate, forbidden, not_supported, required
from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.core.persistent_volume_claims import validate_claim_template
from podlife.apiserver.strategies.core.pod.env import (
    VOLUME_FIELDS,
    validate_field_ref,
    validate_resource_field_ref,
)
from podlife.apiserver.strategies.field_checks import problems_at, required_choice, with_backsteps

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MODE_RULE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = frozenset(
    {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"}
)
_SHORTEST_TOKEN_SECONDS, _LONGEST_TOKEN_SECONDS = 600, 1 << 32


def validate_volumes(
    volumes: Sequence[Object], path: str, pod_name: str
) -> tuple[dict[str, Object], list[FieldError]]:
    """Return the valid volumes by name, and the errors of the others."""
    known: dict[str, Object] = {}
    errors: list[FieldError] = []
    for index, volume in enumerate(volumes):
        name = volume.get("name", "")
        found = _validate_volume(volume, f"{path}[{index}]", pod_name)
        if not name:
            found.append(required(f"{path}[{index}].name"))
        elif problems := check_dns_label(name):
            found += problems_at(f"{path}[{index}].name", name, problems)
        if name in known:
            found.append(duplicate(f"{path}[{index}].name", name))
        if found:
            errors += found
        else:
            known[name] = volume
    return known, errors


def _validate_volume(volume: Object, path: str, pod_name: str) -> list[FieldError]:
    sources = [kind for kind in volume if kind != "name"]
    if not sources:
        return [required(path, "must specify a volume type")]
    errors: list[FieldError] = []
    if len(sources) > 1:
        sources.sort(key=_rank)
        errors += [
            forbidden(f"{path}.{kind}", "may not specify more than 1 volume type") for kind in sources[1:]
        ]
    if check := _SOURCES.get(sources[0]):
        errors = check(volume[sources[0]], f"{path}.{sources[0]}") + errors
    if "ephemeral" in volume and pod_name and volume.get("name"):
        claim = f"{pod_name}-{volume['name']}"
        for problem in check_dns_subdomain(claim):
            errors.append(bad_value(f"{path}.name", volume["name"], f'PVC name "{claim}": {problem}'))
    return errors


def _validate_empty_dir(source: Object, path: str) -> list[FieldError]:
    size = source.get("sizeLimit")
    if size is not None and parse_nanos(size) < 0:
        return [forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")]
    return []


def _validate_host_path(source: Object, path: str) -> list[FieldError]:
    target = source.get("path", "")
    if not target:
        return [required(f"{path}.path")]
    errors = _no_backsteps(target, f"{path}.path")
    if (kind := source.get("type", "")) not in _HOST_PATH_TYPES:
        errors.append(not_supported(f"{path}.type", kind, _HOST_PATH_TYPES))
    return errors


def _validate_mode(path: str, mode: int | None) -> list[FieldError]:
    if mode is None or 0 <= mode <= 0o777:
        return []
    return [bad_value(path, mode, _MODE_RULE)]


def _validate_files(source: Object, path: str, name_field: str) -> list[FieldError]:
    errors = [] if source.get(name_field) else [required(f"{path}.{name_field}")]
    errors += _validate_mode(f"{path}.defaultMode", source.get("defaultMode"))
    for index, item in enumerate(source.get("items", ())):
        errors += _validate_item(item, f"{path}.items[{index}]")
    return errors


def _validate_secret(source: Object, path: str) -> list[FieldError]:
    return _validate_files(source, path, "secretName")


def _validate_config_map(source: Object, path: str) -> list[FieldError]:
    return _validate_files(source, path, "name")


def _validate_item(item: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{field}") for field in ("key", "path") if not item.get(field)]
    errors += _local_path(item.get("path", ""), f"{path}.path")
    return errors + _validate_mode(f"{path}.mode", item.get("mode"))


def _validate_downward(source: Object, path: str) -> list[FieldError]:
    errors = _validate_mode(f"{path}.defaultMode", source.get("defaultMode"))
    for item in source.get("items", ()):
        errors += _validate_downward_item(item, path)
    return errors


def _validate_downward_item(item: Object, path: str) -> list[FieldError]:
    target = item.get("path", "")
    errors = [] if target else [required(f"{path}.path")]
    errors += _local_path(target, f"{path}.path")
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        errors += validate_field_ref(field, f"{path}.fieldRef", VOLUME_FIELDS)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            errors.append(bad_value(path, "resource", detail))
    elif resource is not None:
        errors += validate_resource_field_ref(resource, f"{path}.resourceFieldRef", needs_container=True)
    else:
        errors.append(required(path, "one of fieldRef and resourceFieldRef is required"))
    return errors + _validate_mode(f"{path}.mode", item.get("mode"))


def _validate_projected(source: Object, path: str) -> list[FieldError]:
    errors = _validate_mode(f"{path}.defaultMode", source.get("defaultMode"))
    taken: set[str] = set()
    for index, projection in enumerate(source.get("sources", ())):
        at = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if (files := projection.get(kind)) is not None:
                errors += _validate_files(files, f"{at}.{kind}", "name")
                errors += _claim_paths(files.get("items", ()), taken, path, files.get("name", ""))
        if (downward := projection.get("downwardAPI")) is not None:
            for item in downward.get("items", ()):
                errors += _validate_downward_item(item, f"{at}.downwardAPI")
                errors += _claim_paths([item], taken, path, item.get("path", ""))
        if (token := projection.get("serviceAccountToken")) is not None:
            errors += _validate_token(token, f"{at}.serviceAccountToken", path)
        if len(projection) > 1:
            errors.append(forbidden(at, "may not specify more than 1 volume type per source"))
    return errors


def _claim_paths(items: Sequence[Object], taken: set[str], path: str, shown: str) -> list[FieldError]:
    errors: list[FieldError] = []
    for item in items:
        if target := item.get("path", ""):
            if target in taken:
                errors.append(bad_value(path, shown, "conflicting duplicate paths"))
            taken.add(target)
    return errors


def _validate_token(token: Object, path: str, volume_path: str) -> list[FieldError]:
    errors: list[FieldError] = []
    seconds = token.get("expirationSeconds", 3600)
    if seconds < _SHORTEST_TOKEN_SECONDS:
        detail = "may not specify a duration less than 10 minutes"
        errors.append(bad_value(f"{path}.expirationSeconds", seconds, detail))
    if seconds > _LONGEST_TOKEN_SECONDS:
        detail = "may not specify a duration larger than 2^32 seconds"
        errors.append(bad_value(f"{path}.expirationSeconds", seconds, detail))
    if not (target := token.get("path", "")):
        errors.append(required(f"{volume_path}.path"))
    return errors + _local_path(target, f"{volume_path}.path")


def _validate_claim(source: Object, path: str) -> list[FieldError]:
    return [] if source.get("claimName") else [required(f"{path}.claimName")]


def _validate_nfs(source: Object, path: str) -> list[FieldError]:
    errors = [required(f"{path}.{field}") for field in ("server", "path") if not source.get(field)]
    if not (target := source.get("path", "")).startswith("/"):
        errors.append(bad_value(f"{path}.path", target, "must be an absolute path"))
    return errors


def _validate_csi(source: Object, path: str) -> list[FieldError]:
    driver = source.get("driver", "")
    if not driver:
        return [required(f"{path}.driver")]
    return problems_at(f"{path}.driver", driver, check_dns_subdomain(driver.lower()))


def _validate_ephemeral(source: Object, path: str) -> list[FieldError]:
    template = source.get("volumeClaimTemplate")
    if template is None:
        return [required(f"{path}.volumeClaimTemplate")]
    return validate_claim_template(template, f"{path}.volumeClaimTemplate")


def _validate_image(source: Object, path: str) -> list[FieldError]:
    errors = [] if source.get("reference") else [required(f"{path}.reference")]
    policy = source.get("pullPolicy", "")
    return errors + required_choice(f"{path}.pullPolicy", policy, PULL_POLICIES)


_SOURCES: dict[str, Callable[[Object, str], list[FieldError]]] = {
    "emptyDir": _validate_empty_dir,
    "hostPath": _validate_host_path,
    "secret": _validate_secret,
    "nfs": _validate_nfs,
    "persistentVolumeClaim": _validate_claim,
    "downwardAPI": _validate_downward,
    "configMap": _validate_config_map,
    "projected": _validate_projected,
    "csi": _validate_csi,
    "ephemeral": _validate_ephemeral,
    "image": _validate_image,
}
_ORDER = list(_SOURCES)


def _rank(kind: str) -> int:
    # Of several sources upstream accepts the first in its own order and rejects the rest.
    return _ORDER.index(kind) if kind in _SOURCES else len(_ORDER)


def _no_backsteps(target: str, path: str) -> list[FieldError]:
    return [bad_value(path, target, "must not contain '..'")] if with_backsteps(target) else []


def descending(target: str, path: str) -> list[FieldError]:
    errors = [bad_value(path, target, "must be a relative path")] if target.startswith("/") else []
    return errors + _no_backsteps(target, path)


def _local_path(target: str, path: str) -> list[FieldError]:
    errors = descending(target, path)
    if target.startswith("..") and not target.startswith("../"):
        errors.append(bad_value(path, target, "must not start with '..'"))
    return errors
