"""Security contexts of pods and containers. Windows options are not validated."""

from __future__ import annotations

import re

from podlife.api.codec import Object
from podlife.api.field_errors import (
    FieldError,
    FieldErrors,
    bad_value,
    duplicate,
    forbidden,
    not_supported,
    required,
    too_long,
)
from podlife.apiserver.strategies.field_checks import (
    at_most_int32,
    check_at,
    check_backsteps,
    containers_of,
    one_of,
)

_PROFILES = ("Localhost", "RuntimeDefault", "Unconfined")
_CHOICES = (
    ("fsGroupChangePolicy", frozenset({"Always", "OnRootMismatch"})),
    ("supplementalGroupsPolicy", frozenset({"Merge", "Strict"})),
    ("seLinuxChangePolicy", frozenset({"MountOption", "Recursive"})),
)
_SYSCTL = r"([a-z0-9]([-_a-z0-9]*[a-z0-9])?[\./])*[a-z0-9]([-_a-z0-9]*[a-z0-9])?"
_is_sysctl = re.compile(_SYSCTL).fullmatch
_IPC_SYSCTLS = ("kernel.shm", "kernel.msg", "kernel.sem", "fs.mqueue.")
_LONGEST_SYSCTL = 253
_LONGEST_PROFILE = 4095
_NOT_ON_WINDOWS = "cannot be set for a windows pod"
_LINUX_POD_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "fsGroup",
    "fsGroupChangePolicy",
    "sysctls",
    "runAsUser",
    "runAsGroup",
    "supplementalGroups",
    "supplementalGroupsPolicy",
    "seLinuxChangePolicy",
)
_LINUX_CONTAINER_FIELDS = (
    "appArmorProfile",
    "seLinuxOptions",
    "seccompProfile",
    "capabilities",
    "readOnlyRootFilesystem",
    "privileged",
    "allowPrivilegeEscalation",
    "procMount",
    "runAsUser",
    "runAsGroup",
)


def validate_pod_security(context: Object, spec: Object, path: str) -> FieldErrors:
    for field in ("fsGroup", "runAsUser", "runAsGroup"):
        yield from at_most_int32(f"{path}.{field}", context.get(field))
    for index, group in enumerate(context.get("supplementalGroups") or ()):
        yield from at_most_int32(f"{path}.supplementalGroups[{index}]", group)
    if spec.get("shareProcessNamespace") and spec.get("hostPID"):
        detail = "ShareProcessNamespace and HostPID cannot both be enabled"
        yield bad_value(f"{path}.shareProcessNamespace", True, detail)
    yield from _validate_sysctls(context.get("sysctls") or [], spec, f"{path}.sysctls")
    for field, choices in _CHOICES:
        yield from one_of(f"{path}.{field}", context.get(field), choices)
    yield from _validate_profiles(context, path)


def _validate_sysctls(settings: list[Object], spec: Object, path: str) -> FieldErrors:
    seen: set[str] = set()
    for index, setting in enumerate(settings):
        name, at = setting.get("name", ""), f"{path}[{index}].name"
        if not name:
            yield required(at)
        elif len(name) > _LONGEST_SYSCTL or not _is_sysctl(name):
            detail = f"must have at most {_LONGEST_SYSCTL} characters and match regex ^{_SYSCTL}$"
            yield bad_value(at, name, detail)
        elif name in seen:
            yield duplicate(at, name)
        seen.add(name)
        dotted = name.replace("/", ".")
        if spec.get("hostNetwork") and dotted.startswith("net."):
            yield bad_value(at, name, "may not be specified when 'hostNetwork' is true")
        elif spec.get("hostIPC") and dotted.startswith(_IPC_SYSCTLS):
            yield bad_value(at, name, "may not be specified when 'hostIPC' is true")


def _validate_profiles(context: Object, path: str) -> FieldErrors:
    if (seccomp := context.get("seccompProfile")) is not None:
        yield from _validate_seccomp(seccomp, f"{path}.seccompProfile")
    if (profile := context.get("appArmorProfile")) is not None:
        yield from _validate_app_armor(profile, f"{path}.appArmorProfile")


def _validate_profile_type(profile: Object, path: str, field: str) -> list[FieldError]:
    if not (kind := profile.get("type", "")):
        return [required(f"{path}.type", f"type is required when {field} is set")]
    return one_of(f"{path}.type", kind, _PROFILES)


def _validate_seccomp(profile: Object, path: str) -> FieldErrors:
    yield from _validate_profile_type(profile, path, "seccompProfile")
    target, at = profile.get("localhostProfile"), f"{path}.localhostProfile"
    if profile.get("type") != "Localhost":
        if target is not None:
            shown = {"Type": profile.get("type", ""), "LocalhostProfile": target}
            yield bad_value(at, shown, "can only be set when seccomp type is Localhost")
    elif target is None:
        yield required(at, "must be set when seccomp type is Localhost")
    elif target.startswith("/"):
        yield bad_value(at, target, "must be a relative path")
    else:
        yield from check_at(at, target, check_backsteps)


def _validate_app_armor(profile: Object, path: str) -> list[FieldError]:
    errors = _validate_profile_type(profile, path, "appArmorProfile")
    target, at = profile.get("localhostProfile"), f"{path}.localhostProfile"
    if profile.get("type") == "Localhost":
        if not target:
            errors.append(required(at, "must be set when AppArmor type is Localhost"))
        elif target != target.strip():
            errors.append(bad_value(at, target, "must not be padded with whitespace"))
        if target and len(target) > _LONGEST_PROFILE:
            errors.append(too_long(at, _LONGEST_PROFILE))
    elif target is not None and not errors:
        errors.append(bad_value(at, target, "can only be set when AppArmor type is Localhost"))
    return errors


def validate_container_security(context: Object, path: str, host_users: bool) -> FieldErrors:
    for field in ("runAsUser", "runAsGroup"):
        yield from at_most_int32(f"{path}.{field}", context.get(field))
    mount = context.get("procMount")
    yield from one_of(f"{path}.procMount", mount, ("Default", "Unmasked"))
    if host_users and mount == "Unmasked":
        yield bad_value(f"{path}.procMount", mount, "`hostUsers` must be false to use `Unmasked`")
    if context.get("allowPrivilegeEscalation") is False:
        if context.get("privileged"):
            detail = "cannot set `allowPrivilegeEscalation` to false and `privileged` to true"
            yield bad_value(path, context, detail)
        if "CAP_SYS_ADMIN" in ((context.get("capabilities") or {}).get("add") or ()):
            detail = "cannot set `allowPrivilegeEscalation` to false and `capabilities.Add` CAP_SYS_ADMIN"
            yield bad_value(path, context, detail)
    yield from _validate_profiles(context, path)


def validate_operating_system(spec: Object, path: str) -> FieldErrors:
    """`spec.os`, and what may not be set for that system."""
    name = spec["os"].get("name", "")
    if name not in ("linux", "windows"):
        yield not_supported(f"{path}.os", name, ("linux", "windows")) if name else required(f"{path}.os.name")
        return
    contexts = [(spec.get("securityContext") or {}, f"{path}.securityContext")]
    for container, at in containers_of(spec, path):
        contexts.append((container.get("securityContext") or {}, f"{at}.securityContext"))
    if name == "linux":
        for context, at in contexts:
            if "windowsOptions" in context:
                yield forbidden(f"{at}.windowsOptions", "windows options cannot be set for a linux pod")
        return
    for field in ("hostUsers", "hostPID", "hostIPC", "shareProcessNamespace"):
        if spec.get(field) is not None:
            yield forbidden(f"{path}.{field}", _NOT_ON_WINDOWS)
    for index, (context, at) in enumerate(contexts):
        fields = _LINUX_CONTAINER_FIELDS if index else _LINUX_POD_FIELDS
        yield from (forbidden(f"{at}.{field}", _NOT_ON_WINDOWS) for field in fields if field in context)
