"""CronJobs; `podlife.api.cron` has the syntax of their schedules."""

from __future__ import annotations

import re
import zoneinfo

from podlife.api.codec import Object
from podlife.api.cron import load_zone, parse_schedule
from podlife.api.defaults.fields import fill_absent, fill_empty
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, not_supported, required
from podlife.apiserver.strategies.batch.job_spec import default_job_spec, validate_job_spec
from podlife.apiserver.strategies.core.pod.template import drop_disabled_fields
from podlife.apiserver.strategies.core.pod.warnings import name_warnings, spec_warnings
from podlife.apiserver.strategies.field_checks import non_negative, required_choice
from podlife.apiserver.strategies.object_meta import default_metadata
from podlife.apiserver.strategies.strategy import Strategy

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
        parse_schedule(schedule)
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
    errors = []
    if zone.lower() == "local":
        detail = "timeZone must be an explicit time zone as defined in https://www.iana.org/time-zones"
        errors.append(bad_value(path, zone, detail))
    try:
        if zone != "Local":
            load_zone(zone)
    except ValueError as error:
        # Without a time zone database no zone is known, so any is accepted.
        if zoneinfo.available_timezones():
            errors.append(bad_value(path, zone, str(error)))
    return errors


def _validate_job_template(spec: Object) -> FieldErrors:
    path = "spec.jobTemplate.spec"
    yield from validate_job_spec(spec, path)
    if (selector := spec.get("selector")) is not None:
        yield bad_value(f"{path}.selector", selector, "`selector` will be auto-generated")
    if spec.get("manualSelector"):
        yield not_supported(f"{path}.manualSelector", True, ("nil", "false"))
