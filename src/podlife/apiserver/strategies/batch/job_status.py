"""Status of a job: counts do not decrease, and a final state is kept."""

from __future__ import annotations

from podlife.api.codec import Object
from podlife.api.field_errors import FieldError, FieldErrors, bad_value, duplicate, required
from podlife.apiserver.strategies.batch.job_spec import count_indexes
from podlife.apiserver.strategies.field_checks import non_negative

_CONDITIONS = "status.conditions"
_COUNTS = ("active", "succeeded", "failed", "ready", "terminating")


def is_true(status: Object, kind: str) -> bool:
    return any(
        condition.get("type") == kind and condition.get("status") == "True"
        for condition in status.get("conditions", ())
    )


def _conflict(text: str) -> FieldError:
    return FieldError(_CONDITIONS, "FieldValueInvalid", f"Invalid value: {text}")


def validate_job_status(new: Object, old: Object) -> FieldErrors:
    """Only errors that this write introduces count; earlier ones are ignored."""
    status, before = new.get("status") or {}, old.get("status") or {}
    for field in _COUNTS:
        yield from non_negative(f"status.{field}", status.get(field))
    yield from _validate_uncounted(status.get("uncountedTerminatedPods") or {})
    yield from _validate_conditions(status, before)
    yield from _validate_times(status, before, new.get("spec") or {})
    if _is_finished(status):
        yield from _validate_finished(status, before, new.get("spec") or {})
    yield from _validate_indexes(status, before, new.get("spec") or {})
    ready, active = status.get("ready"), status.get("active", 0)
    changed = (ready, active) != (before.get("ready"), before.get("active", 0))
    if changed and ready is not None and ready > active:
        yield bad_value("status.ready", ready, "cannot set more ready pods than active")
    yield from _validate_progress(status, before, new.get("spec") or {})


def _is_finished(status: Object) -> bool:
    return is_true(status, "Complete") or is_true(status, "Failed")


def _validate_uncounted(uncounted: Object) -> FieldErrors:
    seen: set[str] = set()
    for field in ("succeeded", "failed"):
        for index, uid in enumerate(uncounted.get(field, ())):
            at = f"status.uncountedTerminatedPods.{field}[{index}]"
            if not uid:
                yield bad_value(at, uid, "must not be empty")
            elif uid in seen:
                yield duplicate(at, uid)
            seen.add(uid)


def _validate_conditions(status: Object, before: Object) -> FieldErrors:
    complete, failed = is_true(status, "Complete"), is_true(status, "Failed")
    failing, met = is_true(status, "FailureTarget"), is_true(status, "SuccessCriteriaMet")
    newly_complete = complete != is_true(before, "Complete")
    newly_failed = failed != is_true(before, "Failed")
    if complete and failed and (newly_complete or newly_failed):
        yield _conflict("cannot set Complete=True and Failed=true conditions")
    if complete and failing and (newly_complete or not is_true(before, "FailureTarget")):
        yield _conflict("cannot set Complete=True and FailureTarget=true conditions")
    if failed and not failing and newly_failed:
        yield _conflict("cannot set Failed=True condition without the FailureTarget=true condition")
    if complete and not met and (newly_complete or is_true(before, "SuccessCriteriaMet")):
        yield _conflict("cannot set Complete=True condition without the SuccessCriteriaMet=true condition")
    if met and failed:
        yield _conflict("cannot set SuccessCriteriaMet=True and Failed=true conditions")
    if met and failing:
        yield _conflict("cannot set SuccessCriteriaMet=True and FailureTarget=true conditions")


def _validate_times(status: Object, before: Object, spec: Object) -> FieldErrors:
    path = "status.completionTime"
    started, completed = status.get("startTime"), status.get("completionTime")
    complete = is_true(status, "Complete")
    changed = completed != before.get("completionTime")
    if changed or complete != is_true(before, "Complete"):
        if completed is not None and not complete:
            detail = "cannot set completionTime when there is no Complete=True condition"
            yield bad_value(path, completed, detail)
        if completed is None and complete:
            yield required(path, "completionTime is required for Complete jobs")
    moved = started != before.get("startTime")
    # Times of one format and zone compare as text.
    if (changed or moved) and started is not None and completed is not None and completed < started:
        yield bad_value(path, completed, "must be equal to or after `startTime`")
    if changed and completed is not None and before.get("completionTime") is not None:
        yield bad_value(path, completed, "field is immutable")
    resuming = is_true(before, "Suspended") and not is_true(status, "Suspended")
    if moved and "startTime" in before and not resuming and not spec.get("suspend"):
        yield bad_value("status.startTime", started, "field is immutable for unsuspended job once set")


def _validate_finished(status: Object, before: Object, spec: Object) -> FieldErrors:
    newly = not _is_finished(before)
    active, terminating = status.get("active", 0), status.get("terminating")
    if active > 0 and (newly or active != before.get("active", 0)):
        yield bad_value("status.active", active, "active>0 is invalid for finished job")
    never_ran = spec.get("suspend") and spec.get("completions") == 0
    if newly and "startTime" not in status and not never_ran:
        yield required("status.startTime", "startTime is required for finished job")
    uncounted = status.get("uncountedTerminatedPods") or {}
    if newly and (uncounted.get("failed") or uncounted.get("succeeded")):
        yield bad_value("status.uncountedTerminatedPods", uncounted, "must be empty for finished job")
    if terminating and (newly or terminating != before.get("terminating")):
        yield bad_value("status.terminating", terminating, "terminating>0 is invalid for finished job")


def _validate_indexes(status: Object, before: Object, spec: Object) -> FieldErrors:
    completions = spec.get("completions")
    done, failed = status.get("completedIndexes", ""), status.get("failedIndexes")
    if done != before.get("completedIndexes", ""):
        yield from _validate_index_list("completedIndexes", done, completions)
        if done and spec.get("completionMode") != "Indexed":
            detail = "cannot set non-empty completedIndexes when non-indexed completion mode"
            yield bad_value("status.completedIndexes", done, detail)
    if failed is not None and failed != before.get("failedIndexes"):
        if spec.get("backoffLimitPerIndex") is None:
            detail = "cannot set non-null failedIndexes when backoffLimitPerIndex is null"
            yield bad_value("status.failedIndexes", failed, detail)
        else:
            yield from _validate_index_list("failedIndexes", failed, completions)


def _validate_index_list(field: str, text: str, completions: int | None) -> FieldErrors:
    try:
        if completions is not None:
            count_indexes(text, completions)
    except ValueError as error:
        yield bad_value(f"status.{field}", text, f"error parsing {field}: {error}")


def _validate_progress(status: Object, before: Object, spec: Object) -> FieldErrors:
    for kind in ("terminal Failed", "terminal Complete", "terminal FailureTarget", "SuccessCriteriaMet"):
        name = kind.removeprefix("terminal ")
        if is_true(before, name) and not is_true(status, name):
            yield _conflict(f"cannot disable the {kind}=True condition")
    elastic = spec.get("completionMode") == "Indexed" and spec.get("completions") == spec.get("parallelism")
    for field, is_fixed in (("failed", True), ("succeeded", not elastic)):
        count = status.get(field, 0)
        if is_fixed and count < before.get(field, 0):
            yield bad_value(f"status.{field}", count, f"cannot decrease the {field} counter")
