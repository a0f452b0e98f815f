"""Volumes of a pod, their mounts and raw block devices in a container.

Sources that a node without cloud drivers can serve are checked as upstream does; for the others only that there is
exactly one source.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    FieldErrors,
    bad_value,
    duplicate,
    forbidden,
    not_found,
    required,
)
from podlife.api.names import check_dns_label, check_dns_subdomain
from podlife.api.quantity import parse_nanos
from podlife.apiserver.strategies.core.persistent_volumes import validate_claim_template
from podlife.apiserver.strategies.core.pod.env import (
    VOLUME_FIELDS,
    validate_field_ref,
    validate_resource_field_ref,
)
from podlife.apiserver.strategies.field_checks import (
    check_at,
    check_backsteps,
    one_of,
    require_at,
    required_choice,
)

PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_MODE_RULE = "must be a number between 0 and 0777 (octal), both inclusive"
_HOST_PATH_TYPES = frozenset(
    {"", "BlockDevice", "CharDevice", "Directory", "DirectoryOrCreate", "File", "FileOrCreate", "Socket"}
)
_PROPAGATIONS = frozenset({"Bidirectional", "HostToContainer", "None"})
_RECURSIVE = frozenset({"Disabled", "Enabled", "IfPossible"})
_SHORTEST_TOKEN_SECONDS, _LONGEST_TOKEN_SECONDS = 600, 1 << 32


def validate_volumes(
    volumes: Sequence[Object], path: str, pod_name: str
) -> tuple[dict[str, Object], list[FieldError]]:
    """Return the valid volumes by name, and the errors of the others."""
    known: dict[str, Object] = {}
    errors: list[FieldError] = []
    for index, volume in enumerate(volumes):
        name = volume.get("name", "")
        found = list(_validate_volume(volume, f"{path}[{index}]", pod_name))
        if not name:
            found.append(required(f"{path}[{index}].name"))
        elif check_dns_label(name):
            found += check_at(f"{path}[{index}].name", name, check_dns_label)
        if name in known:
            found.append(duplicate(f"{path}[{index}].name", name))
        if found:
            errors += found
        else:
            known[name] = volume
    return known, errors


def _validate_volume(volume: Object, path: str, pod_name: str) -> FieldErrors:
    sources = sorted((kind for kind in volume if kind != "name"), key=_rank)
    if not sources:
        yield required(path, "must specify a volume type")
        return
    if check := _SOURCES.get(sources[0]):
        yield from check(volume[sources[0]], f"{path}.{sources[0]}")
    for kind in sources[1:]:
        yield forbidden(f"{path}.{kind}", "may not specify more than 1 volume type")
    if "ephemeral" in volume and pod_name and volume.get("name"):
        claim = f"{pod_name}-{volume['name']}"
        for problem in check_dns_subdomain(claim):
            yield bad_value(f"{path}.name", volume["name"], f'PVC name "{claim}": {problem}')


def _validate_empty_dir(source: Object, path: str) -> FieldErrors:
    size = source.get("sizeLimit")
    if size is not None and parse_nanos(size) < 0:
        yield forbidden(f"{path}.sizeLimit", "SizeLimit field must be a valid resource quantity")


def _validate_host_path(source: Object, path: str) -> FieldErrors:
    target = source.get("path", "")
    if not target:
        yield required(f"{path}.path")
        return
    yield from check_at(f"{path}.path", target, check_backsteps)
    yield from one_of(f"{path}.type", source.get("type", ""), _HOST_PATH_TYPES)


def _validate_mode(path: str, mode: int | None) -> list[FieldError]:
    return [] if mode is None or 0 <= mode <= 0o777 else [bad_value(path, mode, _MODE_RULE)]


def _validate_files(source: Object, path: str, name_field: str) -> FieldErrors:
    if not source.get(name_field):
        yield required(f"{path}.{name_field}")
    yield from _validate_mode(f"{path}.defaultMode", source.get("defaultMode"))
    for index, item in enumerate(source.get("items", ())):
        yield from _validate_item(item, f"{path}.items[{index}]")


def _validate_item(item: Object, path: str) -> FieldErrors:
    if not item.get("key"):
        yield required(f"{path}.key")
    yield from require_at(f"{path}.path", item.get("path", ""), _check_local_path)
    yield from _validate_mode(f"{path}.mode", item.get("mode"))


def _validate_downward(source: Object, path: str) -> FieldErrors:
    yield from _validate_mode(f"{path}.defaultMode", source.get("defaultMode"))
    for item in source.get("items", ()):
        yield from _validate_downward_item(item, path)


def _validate_downward_item(item: Object, path: str) -> FieldErrors:
    yield from require_at(f"{path}.path", item.get("path", ""), _check_local_path)
    field, resource = item.get("fieldRef"), item.get("resourceFieldRef")
    if field is not None:
        yield from validate_field_ref(field, f"{path}.fieldRef", VOLUME_FIELDS)
        if resource is not None:
            detail = "fieldRef and resourceFieldRef can not be specified simultaneously"
            yield bad_value(path, "resource", detail)
    elif resource is not None:
        yield from validate_resource_field_ref(resource, f"{path}.resourceFieldRef", needs_container=True)
    else:
        yield required(path, "one of fieldRef and resourceFieldRef is required")
    yield from _validate_mode(f"{path}.mode", item.get("mode"))


def _validate_projected(source: Object, path: str) -> FieldErrors:
    yield from _validate_mode(f"{path}.defaultMode", source.get("defaultMode"))
    taken: set[str] = set()
    for index, projection in enumerate(source.get("sources", ())):
        at = f"{path}.sources[{index}]"
        for kind in ("secret", "configMap"):
            if (files := projection.get(kind)) is not None:
                yield from _validate_files(files, f"{at}.{kind}", "name")
                yield from _claim_paths(files.get("items", ()), taken, path, files.get("name", ""))
        if (downward := projection.get("downwardAPI")) is not None:
            for item in downward.get("items", ()):
                yield from _validate_downward_item(item, f"{at}.downwardAPI")
                yield from _claim_paths([item], taken, path, item.get("path", ""))
        if (token := projection.get("serviceAccountToken")) is not None:
            yield from _validate_token(token, f"{at}.serviceAccountToken", path)
        if len(projection) > 1:
            yield forbidden(at, "may not specify more than 1 volume type per source")


def _claim_paths(items: Sequence[Object], taken: set[str], path: str, shown: str) -> FieldErrors:
    for item in items:
        if target := item.get("path", ""):
            if target in taken:
                yield bad_value(path, shown, "conflicting duplicate paths")
            taken.add(target)


def _validate_token(token: Object, path: str, volume_path: str) -> FieldErrors:
    seconds, at = token.get("expirationSeconds", 3600), f"{path}.expirationSeconds"
    if seconds < _SHORTEST_TOKEN_SECONDS:
        yield bad_value(at, seconds, "may not specify a duration less than 10 minutes")
    if seconds > _LONGEST_TOKEN_SECONDS:
        yield bad_value(at, seconds, "may not specify a duration larger than 2^32 seconds")
    yield from require_at(f"{volume_path}.path", token.get("path", ""), _check_local_path)


def _validate_claim(source: Object, path: str) -> FieldErrors:
    if not source.get("claimName"):
        yield required(f"{path}.claimName")


def _validate_nfs(source: Object, path: str) -> FieldErrors:
    yield from (required(f"{path}.{field}") for field in ("server", "path") if not source.get(field))
    if not (target := source.get("path", "")).startswith("/"):
        yield bad_value(f"{path}.path", target, "must be an absolute path")


def _validate_csi(source: Object, path: str) -> FieldErrors:
    yield from require_at(
        f"{path}.driver", source.get("driver", ""), lambda driver: check_dns_subdomain(driver.lower())
    )


def _validate_ephemeral(source: Object, path: str) -> FieldErrors:
    if (template := source.get("volumeClaimTemplate")) is None:
        yield required(f"{path}.volumeClaimTemplate")
    else:
        yield from validate_claim_template(template, f"{path}.volumeClaimTemplate")


def _validate_image(source: Object, path: str) -> FieldErrors:
    if not source.get("reference"):
        yield required(f"{path}.reference")
    yield from required_choice(f"{path}.pullPolicy", source.get("pullPolicy", ""), PULL_POLICIES)


_SOURCES: dict[str, Callable[[Object, str], FieldErrors]] = {
    "emptyDir": _validate_empty_dir,
    "hostPath": _validate_host_path,
    "secret": partial(_validate_files, name_field="secretName"),
    "nfs": _validate_nfs,
    "persistentVolumeClaim": _validate_claim,
    "downwardAPI": _validate_downward,
    "configMap": partial(_validate_files, name_field="name"),
    "projected": _validate_projected,
    "csi": _validate_csi,
    "ephemeral": _validate_ephemeral,
    "image": _validate_image,
}
_ORDER = list(_SOURCES)


def _rank(kind: str) -> int:
    # Of several sources upstream accepts the first in its own order and rejects the rest.
    return _ORDER.index(kind) if kind in _SOURCES else len(_ORDER)


def _check_descending(target: str) -> list[str]:
    absolute = ["must be a relative path"] if target.startswith("/") else []
    return absolute + check_backsteps(target)


def _check_local_path(target: str) -> list[str]:
    leaves = target.startswith("..") and not target.startswith("../")
    return _check_descending(target) + ["must not start with '..'"] * leaves


def validate_mounts(container: Object, volumes: dict[str, Object], path: str) -> FieldErrors:
    """Mounts and raw devices of one container."""
    mounts, devices = container.get("volumeMounts", ()), container.get("volumeDevices", ())
    device_names = {device.get("name", "") for device in devices}
    device_paths = {device.get("devicePath", "") for device in devices}
    seen: set[str] = set()
    for index, mount in enumerate(mounts):
        name, target = mount.get("name", ""), mount.get("mountPath", "")
        # The usual mount, without building its path.
        if name in volumes and target and target not in seen and not devices and len(mount) == 2:
            seen.add(target)
            continue
        at = f"{path}.volumeMounts[{index}]"
        if not name:
            yield required(f"{at}.name")
        if name not in volumes:
            yield not_found(f"{at}.name", name)
        if not target:
            yield required(f"{at}.mountPath")
        if target in seen:
            yield bad_value(f"{at}.mountPath", target, "must be unique")
        seen.add(target)
        if name in device_names:
            yield bad_value(f"{at}.name", name, "must not already exist in volumeDevices")
        if target in device_paths:
            yield bad_value(f"{at}.mountPath", target, "must not already exist as a path in volumeDevices")
        yield from _validate_mount_options(mount, container, at, f"{path}.volumeMounts")
    if devices:
        yield from _validate_devices(devices, mounts, volumes, f"{path}.volumeDevices")


def _validate_mount_options(mount: Object, container: Object, path: str, list_path: str) -> FieldErrors:
    # Upstream reports these at the list, not at the mount.
    sub_path, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if sub_path:
        yield from check_at(f"{list_path}.subPath", sub_path, _check_descending)
    if expression:
        if sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            yield bad_value(f"{path}.subPathExpr", expression, detail)
        yield from check_at(f"{list_path}.subPathExpr", expression, _check_descending)
    propagation = mount.get("mountPropagation")
    yield from one_of(f"{list_path}.mountPropagation", propagation, _PROPAGATIONS)
    privileged = (container.get("securityContext") or {}).get("privileged")
    if propagation == "Bidirectional" and not privileged:
        detail = "Bidirectional mount propagation is available only to privileged containers"
        yield forbidden(f"{list_path}.mountPropagation", detail)
    mode, at = mount.get("recursiveReadOnly"), f"{list_path}.recursiveReadOnly"
    yield from one_of(at, mode, _RECURSIVE)
    if mode in ("Enabled", "IfPossible"):
        if not mount.get("readOnly"):
            yield forbidden(at, "may only be specified when readOnly is true")
        if propagation not in (None, "None"):
            yield forbidden(at, "may only be specified when mountPropagation is None or not specified")


def _validate_devices(
    devices: Sequence[Object], mounts: Sequence[Object], volumes: dict[str, Object], path: str
) -> FieldErrors:
    mounted = {mount.get("name", "") for mount in mounts}
    mount_paths = {mount.get("mountPath", "") for mount in mounts}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        at = f"{path}[{index}]"
        name, target = device.get("name", ""), device.get("devicePath", "")
        yield from _validate_device_name(name, names, volumes.get(name), f"{at}.name")
        if not target:
            yield required(f"{at}.devicePath")
        if target in paths:
            yield bad_value(f"{at}.devicePath", target, "must be unique")
        if check_backsteps(target):
            yield bad_value(f"{at}.devicePath", target, "can not contain backsteps ('..')")
        else:
            paths.add(target)
        if name in mounted:
            yield bad_value(f"{at}.name", name, "must not already exist in volumeMounts")
        if target in mount_paths:
            yield bad_value(f"{at}.devicePath", target, "must not already exist as a path in volumeMounts")
        names.add(name)


def _validate_device_name(name: str, names: set[str], volume: Object | None, path: str) -> FieldErrors:
    if not name:
        yield required(path)
    if name and name in names:
        yield bad_value(path, name, "must be unique")
    if volume is None:
        yield not_found(path, name)
    elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
        detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        yield bad_value(path, name, detail)
