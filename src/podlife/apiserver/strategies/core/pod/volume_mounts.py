"""Volume mounts and raw block devices of a container."""

from __future__ import annotations

from collections.abc import Sequence

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, bad_value, forbidden, not_found, not_supported, required
from podlife.apiserver.strategies.core.pod.volumes import descending
from podlife.apiserver.strategies.field_checks import with_backsteps

_PROPAGATIONS = frozenset({"Bidirectional", "HostToContainer", "None"})
_RECURSIVE = frozenset({"Disabled", "Enabled", "IfPossible"})


def validate_mounts(container: Object, volumes: dict[str, Object], path: str) -> list[FieldError]:
    """Mounts and raw devices of one container."""
    mounts, devices = container.get("volumeMounts", ()), container.get("volumeDevices", ())
    errors: list[FieldError] = []
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
            errors.append(required(f"{at}.name"))
        if name not in volumes:
            errors.append(not_found(f"{at}.name", name))
        if not target:
            errors.append(required(f"{at}.mountPath"))
        if target in seen:
            errors.append(bad_value(f"{at}.mountPath", target, "must be unique"))
        seen.add(target)
        if name in device_names:
            errors.append(bad_value(f"{at}.name", name, "must not already exist in volumeDevices"))
        if target in device_paths:
            detail = "must not already exist as a path in volumeDevices"
            errors.append(bad_value(f"{at}.mountPath", target, detail))
        errors += _validate_mount_options(mount, container, at, f"{path}.volumeMounts")
    if devices:
        errors += _validate_devices(devices, mounts, volumes, f"{path}.volumeDevices")
    return errors


def _validate_mount_options(mount: Object, container: Object, path: str, list_path: str) -> list[FieldError]:
    # Upstream reports these at the list, not at the mount.
    errors: list[FieldError] = []
    sub_path, expression = mount.get("subPath", ""), mount.get("subPathExpr", "")
    if sub_path:
        errors += descending(sub_path, f"{list_path}.subPath")
    if expression:
        if sub_path:
            detail = "subPathExpr and subPath are mutually exclusive"
            errors.append(bad_value(f"{path}.subPathExpr", expression, detail))
        errors += descending(expression, f"{list_path}.subPathExpr")
    propagation = mount.get("mountPropagation")
    if propagation is not None:
        if propagation not in _PROPAGATIONS:
            errors.append(not_supported(f"{list_path}.mountPropagation", propagation, _PROPAGATIONS))
        privileged = (container.get("securityContext") or {}).get("privileged")
        if propagation == "Bidirectional" and not privileged:
            detail = "Bidirectional mount propagation is available only to privileged containers"
            errors.append(forbidden(f"{list_path}.mountPropagation", detail))
    if "recursiveReadOnly" in mount:
        errors += _validate_recursive(mount, propagation, f"{list_path}.recursiveReadOnly")
    return errors


def _validate_recursive(mount: Object, propagation: str | None, path: str) -> list[FieldError]:
    mode = mount["recursiveReadOnly"]
    if mode not in _RECURSIVE:
        return [not_supported(path, mode, _RECURSIVE)]
    errors: list[FieldError] = []
    if mode != "Disabled":
        if not mount.get("readOnly"):
            errors.append(forbidden(path, "may only be specified when readOnly is true"))
        if propagation not in (None, "None"):
            detail = "may only be specified when mountPropagation is None or not specified"
            errors.append(forbidden(path, detail))
    return errors


def _validate_devices(
    devices: Sequence[Object], mounts: Sequence[Object], volumes: dict[str, Object], path: str
) -> list[FieldError]:
    errors: list[FieldError] = []
    mounted = {mount.get("name", "") for mount in mounts}
    mount_paths = {mount.get("mountPath", "") for mount in mounts}
    names: set[str] = set()
    paths: set[str] = set()
    for index, device in enumerate(devices):
        at = f"{path}[{index}]"
        name, target = device.get("name", ""), device.get("devicePath", "")
        errors += _validate_device_name(name, names, volumes.get(name), f"{at}.name")
        if not target:
            errors.append(required(f"{at}.devicePath"))
        if target in paths:
            errors.append(bad_value(f"{at}.devicePath", target, "must be unique"))
        if with_backsteps(target):
            errors.append(bad_value(f"{at}.devicePath", target, "can not contain backsteps ('..')"))
        else:
            paths.add(target)
        if name in mounted:
            errors.append(bad_value(f"{at}.name", name, "must not already exist in volumeMounts"))
        if target in mount_paths:
            detail = "must not already exist as a path in volumeMounts"
            errors.append(bad_value(f"{at}.devicePath", target, detail))
        names.add(name)
    return errors


def _validate_device_name(name: str, names: set[str], volume: Object | None, path: str) -> list[FieldError]:
    errors = [] if name else [required(path)]
    if name and name in names:
        errors.append(bad_value(path, name, "must be unique"))
    if volume is None:
        errors.append(not_found(path, name))
    elif "persistentVolumeClaim" not in volume and "ephemeral" not in volume:
        detail = "can only use volume source type of PersistentVolumeClaim or Ephemeral for block mode"
        errors.append(bad_value(path, name, detail))
    return errors
