"""Which names a definition gets, and its conditions: the decisions of upstream's naming and establishing controllers.

Pure: takes the definitions of one group, changes the status of one of them.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from podlife.api.codec import Object
from podlife.apiserver.strategies.apiextensions.definitions import set_condition
from podlife.apiserver.strategies.apiextensions.validation import approval, has_condition

_ACCEPTED = "the initial names have been accepted"


def settle(crd: Object, others: Iterable[Object], now: datetime) -> None:
    """Bring status.acceptedNames and the conditions up to date. `others` are all other definitions."""
    status, spec = crd["status"], crd["spec"]
    reason, message = approval(spec["group"], crd["metadata"].get("annotations") or {})
    if reason:
        value = "True" if reason == "ApprovedAnnotation" else "False"
        set_condition(status, "KubernetesAPIApprovalPolicyConformant", value, reason, message, now)
    if spec["names"] != status.get("acceptedNames"):
        _settle_names(crd, others, now)
    if has_condition(crd, "NamesAccepted") and not has_condition(crd, "Established"):
        set_condition(status, "Established", "True", "InitialNamesAccepted", _ACCEPTED, now)


def _settle_names(crd: Object, others: Iterable[Object], now: datetime) -> None:
    status, wanted = crd["status"], crd["spec"]["names"]
    resources, kinds = _taken(crd["spec"]["group"], others)
    accepted = dict(status.get("acceptedNames") or {})
    reason = message = ""
    for field, title, taken in (
        ("plural", "Plural", resources),
        ("singular", "Singular", resources),
        ("shortNames", "ShortNames", resources),
        ("kind", "Kind", kinds),
        ("listKind", "ListKind", kinds),
    ):
        problems = _conflicts(wanted.get(field), accepted.get(field), taken)
        if problems:
            reason = f"{title}Conflict"
            message = problems[0] if len(problems) == 1 else f"[{', '.join(problems)}]"
        else:
            _copy(field, wanted, accepted)
    _copy("categories", wanted, accepted)
    status["acceptedNames"] = accepted
    if reason:
        set_condition(status, "NamesAccepted", "False", reason, message, now)
        if not has_condition(crd, "Established"):
            set_condition(status, "Established", "False", "NotAccepted", "not all names are accepted", now)
    else:
        set_condition(status, "NamesAccepted", "True", "NoConflicts", "no conflicts found", now)


def _copy(field: str, wanted: Object, accepted: Object) -> None:
    if field in wanted:
        accepted[field] = wanted[field]
    else:
        accepted.pop(field, None)


def _taken(group: str, others: Iterable[Object]) -> tuple[set[str], set[str]]:
    """Names and kinds that other definitions of the group have been given."""
    resources: set[str] = set()
    kinds: set[str] = set()
    for other in others:
        if other["spec"]["group"] == group:
            names = other.get("status", {}).get("acceptedNames") or {}
            resources |= {
                names.get("plural", ""),
                names.get("singular", ""),
                *(names.get("shortNames") or ()),
            }
            kinds |= {names.get("kind", ""), names.get("listKind", "")}
    return resources, kinds


def _conflicts(
    wanted: str | list[str] | None, accepted: str | list[str] | None, taken: set[str]
) -> list[str]:
    if isinstance(wanted, list):
        new = [name for name in wanted if name not in (accepted or ())]
    else:
        new = [wanted] if wanted is not None and wanted != accepted else []
    return [f'"{name}" is already in use' for name in new if name in taken]
