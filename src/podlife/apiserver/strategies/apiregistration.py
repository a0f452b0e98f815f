"""APIServices: groups and versions that another API server serves."""

from __future__ import annotations

from datetime import datetime

from podlife.api.codec import Object, format_time
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, not_supported, required
from podlife.api.names import check_dns_label_1035, check_dns_subdomain, check_path_segment
from podlife.apiserver.strategies.field_checks import PORT_RANGE, check_at, show_times
from podlife.apiserver.strategies.strategy import Strategy, keep_field

_HTTPS = 443
_STATUSES = ("True", "False", "Unknown")
_KEPT_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")


class APIServiceStrategy(Strategy):
    has_status = True
    unconditional_update = False

    @staticmethod
    def validate_name(name: str, *, prefix: bool = False) -> list[str]:
        # `validate` compares it with group and version.
        return []

    def default(self, obj: Object) -> None:
        if (service := obj["spec"].get("service")) is not None:
            service.setdefault("port", _HTTPS)
        show_times(obj["status"], "lastTransitionTime")

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}
        if "service" not in obj["spec"]:
            created = obj["metadata"]["creationTimestamp"]
            obj["status"]["conditions"] = [available_condition("True", "Local", _LOCAL, created)]

    def validate(self, obj: Object) -> list[FieldError]:
        return [*_validate_name(obj), *_validate_spec(obj["spec"])]

    def prepare_status_update(self, new: Object, old: Object) -> None:
        super().prepare_status_update(new, old)
        for field in _KEPT_METADATA:
            keep_field(new["metadata"], old["metadata"], field)

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        return [
            not_supported(f"status.conditions[{index}].status", condition["status"], _STATUSES)
            for index, condition in enumerate(new["status"].get("conditions") or ())
            if condition["status"] not in _STATUSES
        ]


_LOCAL = "Local APIServices are always available"


def available_condition(status: str, reason: str, message: str, time: str | datetime) -> Object:
    return {
        "type": "Available",
        "status": status,
        "lastTransitionTime": time if isinstance(time, str) else format_time(time),
        "reason": reason,
        "message": message,
    }


def _validate_name(obj: Object) -> FieldErrors:
    name, spec = obj["metadata"].get("name", ""), obj["spec"]
    wanted = f"{spec.get('version', '')}.{spec.get('group', '')}"
    problems = check_path_segment(name)
    if not problems and name != wanted:
        problems = [f'must be `spec.version+"."+spec.group`: "{wanted}"']
    yield from (bad_value("metadata.name", name, problem) for problem in problems)


def _validate_spec(spec: Object) -> FieldErrors:
    group, version = spec.get("group", ""), spec.get("version", "")
    if group:
        yield from check_at("spec.group", group, check_dns_subdomain)
    elif version != "v1":
        yield required("spec.group", "only v1 may have an empty group and it better be legacy kube")
    yield from check_at("spec.version", version, check_dns_label_1035)
    for field, most in (("groupPriorityMinimum", 20_000), ("versionPriority", 1000)):
        if not 0 < spec[field] <= most:
            yield bad_value(f"spec.{field}", spec[field], f"must be positive and less than {most}")
    bundle, is_insecure = spec.get("caBundle", ""), spec.get("insecureSkipTLSVerify", False)
    if (service := spec.get("service")) is None:
        if bundle:
            shown = f"{len(bundle) * 3 // 4 - bundle[-2:].count('=')} bytes"
            yield bad_value("spec.caBundle", shown, "local APIServices may not have a caBundle")
        if is_insecure:
            detail = "local APIServices may not have insecureSkipTLSVerify"
            yield bad_value("spec.insecureSkipTLSVerify", True, detail)
        return
    for field in ("namespace", "name"):
        if not service.get(field):
            yield required(f"spec.service.{field}")
    if not 1 <= service["port"] <= 65535:
        yield bad_value("spec.service.port", service["port"], f"port is not valid: {PORT_RANGE}")
    if is_insecure and bundle:
        yield bad_value("spec.insecureSkipTLSVerify", True, "may not be true if caBundle is present")
