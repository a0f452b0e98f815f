"""CronJobs, and the syntax of a schedule: five fields, or a descriptor such as `@hourly` or `@every 5m`."""

from __future__ import annotations

import re
import zoneinfo
from typing import NamedTuple

from podlife.api.codec import Object
from podlife.api.defaults.fields import fill_absent, fill_empty
from podlife.api.durations import MAX_SECONDS, parse_go_duration
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, not_supported, required
from podlife.apiserver.strategies.batch.job_spec import default_job_spec, validate_job_spec
from podlife.apiserver.strategies.core.pod.template import drop_disabled_fields
from podlife.apiserver.strategies.core.pod.warnings import name_warnings, spec_warnings
from podlife.apiserver.strategies.field_checks import non_negative, required_choice
from podlife.apiserver.strategies.object_meta import default_metadata
from podlife.apiserver.strategies.strategy import Strategy


class _Field(NamedTuple):
    least: int
    most: int
    names: dict[str, int]


_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_FIELDS = (
    _Field(0, 59, {}),
    _Field(0, 23, {}),
    _Field(1, 31, {}),
    _Field(1, 12, {name: number for number, name in enumerate(_MONTHS, 1)}),
    _Field(0, 6, {name: number for number, name in enumerate(_DAYS)}),
)
_DESCRIPTORS = ("@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly")
_POLICIES = ("Allow", "Forbid", "Replace")
_is_zone_part = re.compile(r"[A-Za-z.\-_0-9+]{1,14}").fullmatch
# A job's name is the cron job's plus a suffix of eleven characters.
_LONGEST_NAME = 52


class CronJobStrategy(Strategy):
    has_generation = True
    has_status = True

    def default(self, obj: Object) -> None:
        spec = obj.setdefault("spec", {})
        fill_empty(spec, concurrencyPolicy="Allow")
        fill_absent(spec, suspend=False, successfulJobsHistoryLimit=3, failedJobsHistoryLimit=1, schedule="")
        template = spec.setdefault("jobTemplate", {})
        default_metadata(template.setdefault("metadata", {}))
        default_job_spec(template.setdefault("spec", {}))
        obj.setdefault("status", {})

    def prepare_create(self, obj: Object) -> None:
        obj["status"] = {}
        drop_disabled_fields(obj["spec"]["jobTemplate"]["spec"]["template"]["spec"])

    def prepare_update(self, new: Object, old: Object) -> None:
        super().prepare_update(new, old)
        drop_disabled_fields(new["spec"]["jobTemplate"]["spec"]["template"]["spec"])

    def validate(self, obj: Object) -> list[FieldError]:
        spec = obj["spec"]
        errors = list(_validate_schedule(spec["schedule"]))
        errors += non_negative("spec.startingDeadlineSeconds", spec.get("startingDeadlineSeconds"))
        if (zone := spec.get("timeZone")) is not None:
            errors += _validate_time_zone(zone)
        errors += required_choice("spec.concurrencyPolicy", spec["concurrencyPolicy"], _POLICIES)
        errors += _validate_job_template(spec["jobTemplate"]["spec"])
        for field in ("successfulJobsHistoryLimit", "failedJobsHistoryLimit"):
            errors += non_negative(f"spec.{field}", spec.get(field))
        name = obj["metadata"].get("name", "")
        if len(name) > _LONGEST_NAME and not obj["metadata"].get("resourceVersion"):
            errors.append(bad_value("metadata.name", name, "must be no more than 52 characters"))
        return errors

    def warnings(self, obj: Object) -> list[str]:
        pod = obj["spec"]["jobTemplate"]["spec"]["template"]["spec"]
        return name_warnings(obj, "Pod names and hostnames") + spec_warnings(
            pod, "spec.jobTemplate.spec.template.spec"
        )


def _validate_schedule(schedule: str) -> FieldErrors:
    if not schedule:
        yield required("spec.schedule")
        return
    try:
        _check_schedule(schedule)
    except ValueError as error:
        yield bad_value("spec.schedule", schedule, str(error))
    if "TZ" in schedule:
        detail = "cannot use TZ or CRON_TZ in schedule, use timeZone field instead"
        yield bad_value("spec.schedule", schedule, detail)


def _validate_time_zone(zone: str) -> list[FieldError]:
    path = "spec.timeZone"
    if not zone:
        return [bad_value(path, zone, "timeZone must be nil or non-empty string")]
    parts = zone.split("/")
    if any(part in (".", "..") or part.startswith("-") or not _is_zone_part(part) for part in parts):
        return [bad_value(path, zone, f"unknown time zone {zone}")]
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        return [bad_value(path, zone, detail)]
    try:
        zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        # Without a time zone database no zone is known, so any is accepted.
        if zoneinfo.available_timezones():
            return [bad_value(path, zone, f"unknown time zone {zone}")]
    return []


def _validate_job_template(spec: Object) -> FieldErrors:
    path = "spec.jobTemplate.spec"
    yield from validate_job_spec(spec, path)
    if (selector := spec.get("selector")) is not None:
        yield bad_value(f"{path}.selector", selector, "`selector` will be auto-generated")
    if spec.get("manualSelector"):
        yield not_supported(f"{path}.manualSelector", True, ("nil", "false"))


def _check_schedule(schedule: str) -> None:
    """Raise ValueError in upstream's words if the schedule cannot be parsed."""
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        schedule = schedule.partition(" ")[2].strip()
    if schedule.startswith("@"):
        _check_descriptor(schedule)
        return
    parts = schedule.split()
    if len(parts) != 5:
        raise ValueError(f"expected exactly 5 fields, found {len(parts)}: [{' '.join(parts)}]")
    for part, field in zip(parts, _FIELDS, strict=True):
        for item in part.split(","):
            _check_range(item, field)


def _check_descriptor(descriptor: str) -> None:
    if descriptor in _DESCRIPTORS:
        return
    if descriptor.startswith("@every "):
        duration = descriptor.removeprefix("@every ")
        seconds = parse_go_duration(duration)
        if seconds is None or abs(seconds) >= MAX_SECONDS:
            raise ValueError(f'failed to parse duration {descriptor}: time: invalid duration "{duration}"')
        return
    raise ValueError(f"unrecognized descriptor: {descriptor}")


def _check_range(text: str, field: _Field) -> None:
    span, *steps = text.split("/")
    low, *highs = span.split("-")
    if len(highs) > 1:
        raise ValueError(f"too many hyphens: {text}")
    if low in ("*", "?"):
        start, end = field.least, field.most
    else:
        start = _number(low, field)
        end = _number(highs[0], field) if highs else start
    if len(steps) > 1:
        raise ValueError(f"too many slashes: {text}")
    step = 1
    if steps:
        step = _plain_number(steps[0])
        if not highs and low not in ("*", "?"):
            end = field.most
    if start < field.least:
        raise ValueError(f"beginning of range ({start}) below minimum ({field.least}): {text}")
    if end > field.most:
        raise ValueError(f"end of range ({end}) above maximum ({field.most}): {text}")
    if start > end:
        raise ValueError(f"beginning of range ({start}) beyond end of range ({end}): {text}")
    if step == 0:
        raise ValueError(f"step of range should be a positive number: {text}")


def _number(text: str, field: _Field) -> int:
    named = field.names.get(text.lower())
    return named if named is not None else _plain_number(text)


def _plain_number(text: str) -> int:
    sign, digits = ("-", text[1:]) if text.startswith("-") else ("", text.removeprefix("+"))
    if not digits.isascii() or not digits.isdigit() or len(digits) > 18:
        raise ValueError(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if sign and int(digits):
        raise ValueError(f"negative number (-{int(digits)}) not allowed: {text}")
    return int(digits)
