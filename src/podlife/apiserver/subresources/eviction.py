"""POST `pods/<name>/eviction`: a delete that consults the disruption budgets first. The EV- rules.

Upstream writes the budget, the pod's condition and the deletion one after the other and can stop between any two.
Here the locks of the pod and of its budget are held from the decision to the last write, so no other request
conflicts with an eviction half way, and upstream's retries (EV-06 to EV-09, EV-20) are not needed. Everything that
can reject the eviction is checked before the first write.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from podlife.api import status
from podlife.api.codec import Object, decode_object, encode, format_time
from podlife.api.field_errors import bad_value, invalid
from podlife.api.labels import selector_matches
from podlife.apiserver.admission import Operation
from podlife.apiserver.registry import Registry, RequestScope, response
from podlife.apiserver.registry.delete import delete_record
from podlife.apiserver.registry.field_managers import track_own
from podlife.apiserver.registry.graceful_deletion import DeleteOptions, check_options, check_preconditions
from podlife.apiserver.registry.metadata import adopt_namespace
from podlife.apiserver.registry.object_codec import encoder
from podlife.apiserver.registry.request_body import bad_request, read_typed
from podlife.apiserver.registry.webhook_admission import WebhookAdmission, fixed_view
from podlife.apiserver.registry.worker_threads import offload
from podlife.apiserver.resource_table import STORED
from podlife.apiserver.storage import Change, Key, Put, Record
from podlife.errors import ApiError, ForbiddenError, TooManyRequestsError
from podlife.wire import Response

_BUDGETS = "poddisruptionbudgets.policy"
_BUDGET_ROW = next(row for row in STORED if row.key == _BUDGETS)
_MAX_DISRUPTED_PODS = 2000
_REFUSED = "Cannot evict pod as it would violate the pod's disruption budget."
_TOO_MANY_BUDGETS = (
    "This pod has more than one PodDisruptionBudget, which the eviction subresource does not support."
)


async def evict(scope: RequestScope) -> Response:
    dry_run = scope.dry_run("CreateOptions")
    eviction = await offload(lambda: _read_eviction(scope), scope.request.body)
    scope.registry.admission.admit(scope.admission(Operation.CREATE, subresource="eviction"))
    webhooks = WebhookAdmission.of(
        scope,
        Operation.CREATE,
        dry_run=dry_run,
        subresource="eviction",
        views=fixed_view("policy/v1", "Eviction"),
    )
    if webhooks is not None:
        eviction = await webhooks.mutate(eviction)
    options = _read_options(scope, eviction)
    if webhooks is not None:
        # As upstream, the deletion that follows is not reviewed.
        await webhooks.validate(eviction)
    held: set[Key] = set()
    while True:
        async with scope.registry.store.locked(scope.key, *held):
            record = scope.find()
            budgets = await _concerned_budgets(scope, decode_object(record.value))
            concerned = {each.key for each in budgets}
            if concerned <= held:
                answer = await _evict_locked(scope, record, budgets, options)
                return Response(201, encode(answer), headers=response.headers(scope))
        # A budget that matches the pod only now must be locked before it is used: start over, since locks are taken
        # together.
        held = concerned


def _read_eviction(scope: RequestScope) -> Object:
    eviction = read_typed(scope, "Eviction", "policy/v1", also=("policy/v1beta1",))
    adopt_namespace(scope, eviction.setdefault("metadata", {}))
    return eviction


def _read_options(scope: RequestScope, body: Object) -> DeleteOptions:
    if body.get("metadata", {}).get("name", "") != scope.name:
        raise bad_request("name in URL does not match name in Eviction object")  # EV-02: the names must match
    options = DeleteOptions.from_object(body.get("deleteOptions") or {})
    if options.ignore_store_errors:
        field = "deleteOptions.ignoreStoreReadErrorWithClusterBreakingPotential"
        why = "can not be set for pod eviction, try after removing the option"
        # EV-03: not for evictions
        raise invalid("Eviction", "policy", scope.name, [bad_value(field, True, why)])
    # EV-04: dry run may be requested in the query, in the options, or in both alike.
    asked = tuple(scope.request.query.all("dryRun"))
    if options.dry_run and asked and options.dry_run != asked:
        shown = f"[{' '.join(asked)}] and [{' '.join(options.dry_run)}]"
        raise ApiError(f"Non-matching dry-run options in request and content: {shown}", code=500, reason="")
    return replace(options, dry_run=options.dry_run or asked)


async def _evict_locked(
    scope: RequestScope, record: Record, budgets: Sequence[Record], options: DeleteOptions
) -> Object:
    pod = decode_object(record.value)
    now = format_time(scope.registry.clock.now())
    if len(budgets) > 1:
        # EV-11: the subresource supports one budget per pod
        raise ApiError(_TOO_MANY_BUDGETS, code=500, reason="")
    spent = [change for each in budgets if (change := _spend_budget(pod, each, now)) is not None]
    # Whatever would reject the delete is checked before anything is written: a budget is not spent for nothing.
    check_options(options)
    check_preconditions(pod["metadata"], options, kind="Pod")
    if not options.is_dry_run:
        record, options = await _write(scope.registry, record, pod, spent, options)
    await delete_record(scope, record, options)
    return {**status.success(), "code": 201}


def _ignores_budgets(pod: Object) -> bool:
    """EV-05: a pod that has finished, has not started or is already terminating needs no budget."""
    phase = pod.get("status", {}).get("phase", "")
    return phase in ("Succeeded", "Failed", "Pending") or "deletionTimestamp" in pod["metadata"]


async def _concerned_budgets(scope: RequestScope, pod: Object) -> Sequence[Record]:
    """EV-12: the budgets that select the pod. Many budgets, or long selectors, are matched in a worker thread."""
    if _ignores_budgets(pod):
        return []
    labels = pod["metadata"].get("labels") or {}

    def matches(record: Record) -> bool:
        # Validated when it was written; validation takes 40 times as long as matching.
        selector = decode_object(record.value).get("spec", {}).get("selector")
        return selector is not None and selector_matches(selector, labels)

    budgets = scope.registry.store.list(_BUDGETS, scope.namespace)
    return await offload(lambda: list(filter(matches, budgets)), *[record.value for record in budgets])


def _spend_budget(pod: Object, record: Record, now: str) -> Change | None:
    """Return the budget less one disruption, or None if none is needed; raises if none is allowed."""
    budget = decode_object(record.value)
    if not _is_ready(pod) and _frees_unready(budget):
        return None  # EV-18: an unready pod does not count as healthy, so the budget loses nothing
    _check_budget(budget)
    state = budget["status"]
    state["disruptionsAllowed"] -= 1
    if state["disruptionsAllowed"] == 0:
        _update_allowed_condition(budget, now)
    state.setdefault("disruptedPods", {})[pod["metadata"]["name"]] = now
    track_own(_BUDGET_ROW, "status", budget, decode_object(record.value), now)
    return Put(record.key, encoder(budget), expected=record.revision)


def _is_ready(pod: Object) -> bool:
    conditions = pod.get("status", {}).get("conditions", [])
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


def _frees_unready(budget: Object) -> bool:
    if budget.get("spec", {}).get("unhealthyPodEvictionPolicy") == "AlwaysAllow":
        return True
    state = budget.get("status", {})
    desired = state.get("desiredHealthy", 0)
    return bool(state.get("currentHealthy", 0) >= desired > 0)


def _check_budget(budget: Object) -> None:
    """EV-13 to EV-16: reject the eviction if the budget allows no disruption."""
    name, state = budget["metadata"]["name"], budget.setdefault("status", {})
    if state.get("observedGeneration", 0) < budget["metadata"].get("generation", 0):
        raise _refused(f"The disruption budget {name} is still being processed by the server.", retry=10)
    allowed = state.setdefault("disruptionsAllowed", 0)
    if allowed < 0:
        raise _forbidden(name, "pdb disruptions allowed is negative")
    if len(state.get("disruptedPods", {})) > _MAX_DISRUPTED_PODS:
        raise _forbidden(
            name, "DisruptedPods map too big - too many evictions not confirmed by PDB controller"
        )
    if allowed == 0:
        raise _refused(_why_none_allowed(name, state))


def _why_none_allowed(name: str, state: Object) -> str:
    """EV-14: the first reason that applies. Counts are not trusted while the budget's controller could not sync."""
    current, desired = state.get("currentHealthy", 0), state.get("desiredHealthy", 0)
    conditions = state.get("conditions", [])
    found: Object = next((each for each in conditions if each["type"] == "DisruptionAllowed"), {})
    message = found.get("message", "") if found.get("status") == "False" else ""
    if message and found.get("reason") == "SyncFailed":
        return f"The disruption budget {name} does not allow evicting pods currently because it failed sync: {message}"
    if current <= desired:
        return f"The disruption budget {name} needs {desired} healthy pods and has {current} currently"
    if message:
        return f"The disruption budget {name} does not allow evicting pods currently ({found['reason']}): {message}"
    return f"The disruption budget {name} does not allow evicting pods currently"


def _refused(cause: str, *, retry: int = 0) -> ApiError:
    details: dict[str, Any] = {"causes": [{"reason": "DisruptionBudget", "message": cause}]}
    if retry:
        details["retryAfterSeconds"] = retry
    return TooManyRequestsError(_REFUSED, details=details)


def _forbidden(name: str, why: str) -> ApiError:
    return ForbiddenError(
        f'poddisruptionbudget.policy "{name}" is forbidden: {why}',
        details={"name": name, "group": "policy", "kind": "poddisruptionbudget"},
    )


def _update_allowed_condition(budget: Object, now: str) -> None:
    """EV-17: an exhausted budget says so at once, before its controller does."""
    wanted = {
        "type": "DisruptionAllowed",
        "status": "False",
        "reason": "InsufficientPods",
        "message": "",
        "observedGeneration": budget["status"].get("observedGeneration", 0),
        "lastTransitionTime": now,
    }
    _set_condition(budget["status"].setdefault("conditions", []), wanted)


def _set_condition(conditions: list[Object], wanted: Object) -> bool:
    """Add or replace a condition, which keeps its transition time unless its status changes; returns whether anything
    changed."""
    found = next((each for each in conditions if each["type"] == wanted["type"]), None)
    if found is None:
        conditions.append(wanted)
        return True
    before = dict(found)
    if found["status"] == wanted["status"]:
        wanted["lastTransitionTime"] = found.get("lastTransitionTime", wanted["lastTransitionTime"])
    found.update(wanted)
    return bool(found != before)


async def _write(
    registry: Registry, record: Record, pod: Object, spent: Sequence[Change], options: DeleteOptions
) -> tuple[Record, DeleteOptions]:
    """Write budget and condition together, or neither. A requested resourceVersion moves along with this write."""
    changes = list(spent)
    if _mark_disrupted(pod, format_time(registry.clock.now())):
        changes.append(Put(record.key, encoder(pod), expected=record.revision))
    for written in await registry.store.commit(*changes):
        if written.key == record.key:
            record = written
    if options.resource_version is not None:
        options = replace(options, resource_version=str(record.revision))
    return record, options


def _mark_disrupted(pod: Object, now: str) -> bool:
    """EV-21: record the disruption in the pod's status; returns False if it was recorded already."""
    condition = {
        "type": "DisruptionTarget",
        "status": "True",
        "reason": "EvictionByEvictionAPI",
        "message": "Eviction API: evicting",
        "lastProbeTime": None,
        "lastTransitionTime": now,
    }
    return _set_condition(pod.setdefault("status", {}).setdefault("conditions", []), condition)
