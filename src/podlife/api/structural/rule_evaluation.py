"""Evaluates the rules of a schema on a value, with the errors of kube-apiserver.

Everything counts against one budget of cost, as upstream does, and each evaluation against the steps that one object
may take: some rules cost nothing. A unit of cost takes 0.5 to 15 microseconds here, so the time of the thread is
bounded, too. What a rule says against a part that an update leaves as it was is a warning, unless the rule compares the
part with what it was.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from time import thread_time
from typing import Any

from podlife.api.cel import CelError, CostLimitExceededError
from podlife.api.codec import is_same
from podlife.api.field_errors import FieldError, RatchetedError, bad_value, duplicate, forbidden, required
from podlife.api.structural.fields import Budget, TooExpensiveError
from podlife.api.structural.rules import CompiledRule, RuleTree
from podlife.api.structural.values import NOWHERE, item_key, items_by_key

_COST_BUDGET = 10_000_000
# About the microseconds of the cheapest evaluation.
_STEPS_PER_RULE = 10
_MOST_SECONDS = 5.0
_LONGEST_MESSAGE_BYTES = 5 * 1024
_NO_FURTHER = "no further validation rules will be run"
_OUT_OF_BUDGET = f"failed due to running out of cost budget, {_NO_FURTHER}"


class _Change:
    """A value and what it was before."""

    __slots__ = ("_is_same", "new", "old")

    def __init__(self, new: Any, old: Any) -> None:
        self.new, self.old = new, old
        self._is_same: bool | None = None

    def is_same(self) -> bool:
        """Compared once, however many rules are violated inside of it."""
        if self._is_same is None:
            self._is_same = is_same(self.new, self.old)
        return self._is_same

    def field(self, name: str) -> _Change | None:
        old, new = self.old, self.new
        is_known = isinstance(old, dict) and isinstance(new, dict) and name in old and name in new
        return _Change(new[name], old[name]) if is_known else None


# The change of a part, if the part can be found in the old object, and of the nearest one around it that can.
_Changes = tuple[_Change | None, _Change | None]
_ALL_NEW: _Changes = (None, None)


def _is_unchanged(changes: _Changes) -> bool:
    change = changes[0] or changes[1]
    return change is not None and change.is_same()


def _field_changes(changes: _Changes, name: str) -> _Changes:
    change, around = changes
    if change is None:
        return changes
    if around is None and name in ("apiVersion", "kind"):
        return _ALL_NEW
    return change.field(name), change


class RuleEvaluation:
    """Evaluations that share a budget, and so many seconds of the thread's own time; `errors` is what they found. Made
    in the thread that evaluates."""

    def __init__(self, budget: Budget, seconds: float = _MOST_SECONDS) -> None:
        self._end = thread_time() + seconds
        self.errors: list[FieldError] = []
        self._steps = budget
        # Below zero nothing more is evaluated.
        self._left = _COST_BUDGET

    def validate(
        self, tree: RuleTree, value: Any, old: Any = None, *, path: str = "", ratchets: bool = True
    ) -> None:
        """Evaluate all rules on the value; `old` is what it was before an update. Raises TooExpensiveError."""
        changes = (_Change(value, old), None) if old is not None and ratchets else _ALL_NEW
        self._check(tree, value, old, path, changes)

    def _check(self, tree: RuleTree, value: Any, old: Any, path: str, changes: _Changes) -> bool:
        """Whether there is budget left."""
        if value is None:
            return True
        if tree.rules and not self._check_rules(tree, value, old, path, changes):
            return False
        if isinstance(value, list):
            return self._check_items(tree, value, old, path, changes)
        return not isinstance(value, dict) or self._check_fields(tree, value, old, path, changes)

    def _check_items(self, tree: RuleTree, value: list[Any], old: Any, path: str, changes: _Changes) -> bool:
        if tree.items is None:
            return True
        before = items_by_key(tree.list_keys, old)
        for index, item in enumerate(value):
            known = before.get(item_key(tree.list_keys, item)) if before else None
            inner = changes
            if changes[0] is not None:
                inner = (None if known is None else _Change(item, known), changes[0])
            if not self._check(tree.items, item, known, f"{path}[{index}]", inner):
                return False
        return True

    def _check_fields(
        self, tree: RuleTree, value: dict[str, Any], old: Any, path: str, changes: _Changes
    ) -> bool:
        before = old if isinstance(old, dict) else {}
        for name, item in value.items():
            if tree.additional is not None:
                inner, at = tree.additional, f"{path}[{name}]"
            elif (found := tree.properties.get(name)) is not None:
                inner, at = found, _below(path, name)
            else:
                continue
            if not self._check(inner, item, before.get(name), at, _field_changes(changes, name)):
                return False
        return True

    def _check_rules(self, tree: RuleTree, value: Any, old: Any, path: str, changes: _Changes) -> bool:
        at = path or NOWHERE
        if self._left <= 0:
            return self._stop(bad_value(at, tree.type, f"validation {_OUT_OF_BUDGET}"))
        variables = {"self": value}
        if old is not None and tree.uses_old:
            variables["oldSelf"] = old
        for rule in tree.rules:
            if rule.error:
                self.errors.append(bad_value(at, tree.type, f"rule compile error: {rule.error}"))
            if rule.program is None or (rule.uses_old and old is None and not rule.is_optional):
                continue
            self._steps.spend(_STEPS_PER_RULE)
            if thread_time() > self._end:
                raise TooExpensiveError("the validation rules take too long")
            failure: CelError | None = None
            is_met: Any = False
            try:
                found = rule.program.evaluate(variables | {"oldSelf": old} if rule.is_optional else variables)
                is_met, cost = found.value, found.cost
            except CelError as error:
                failure, cost = error, error.cost
            if cost > self._left:
                return self._stop(bad_value(at, tree.type, f"validation {_OUT_OF_BUDGET}"))
            self._left -= cost
            if failure is not None:
                self.errors.append(bad_value(at, tree.type, _failure_text(failure, rule)))
                if isinstance(failure, CostLimitExceededError):
                    self._left = -1
                    return False
            elif is_met is not True and not self._violated(tree, rule, value, variables, path, changes):
                return False
        return True

    def _stop(self, error: FieldError) -> bool:
        self.errors.append(error)
        self._left = -1
        return False

    def _violated(
        self,
        tree: RuleTree,
        rule: CompiledRule,
        value: Any,
        variables: dict[str, Any],
        path: str,
        changes: _Changes,
    ) -> bool:
        """Report that the rule is not met; returns whether there is budget left."""
        at = (_below(path, rule.path) if rule.path else path) or NOWHERE
        is_warning = not rule.uses_old and _is_unchanged(changes)
        message, trouble = self._message(rule, variables)
        if trouble:
            error = bad_value(at, tree.type, trouble)
            self._left = -1
        else:
            error = _error(rule, tree, at, value, message or _default_message(rule))
        self.errors.append(RatchetedError(error) if is_warning else error)
        return not trouble

    def _message(self, rule: CompiledRule, variables: dict[str, Any]) -> tuple[str, str]:
        """The text that the rule's expression gives, empty if it gives none that is usable, and why nothing more may
        be evaluated."""
        # Upstream passes an `oldSelf` that is not an optional, which such expressions cannot use.
        if rule.message is None or (rule.is_optional and rule.message.uses("oldSelf")):
            return "", ""
        failure: CelError | None = None
        text: Any = ""
        try:
            found = rule.message.evaluate(variables)
            text, cost = found.value, found.cost
        except CelError as error:
            failure, cost = error, error.cost
        if cost > self._left:
            return "", f"messageExpression evaluation {_OUT_OF_BUDGET}"
        if isinstance(failure, CostLimitExceededError):
            source = json.dumps(rule.props["messageExpression"], ensure_ascii=False)
            return "", f"{_NO_FURTHER} due to call cost exceeds limit for messageExpression: {source}"
        self._left -= cost
        text = text.strip() if isinstance(text, str) else ""
        is_usable = "\n" not in text and len(text.encode(errors="replace")) <= _LONGEST_MESSAGE_BYTES
        return text if is_usable else "", ""


def _below(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _default_message(rule: CompiledRule) -> str:
    return rule.shown if rule.props.get("message") else f"failed rule: {rule.shown}"


def _failure_text(error: CelError, rule: CompiledRule) -> str:
    text = str(error)
    if text.startswith("no such overload"):
        what = "call arguments did not match a supported operator, function or macro signature for rule"
        return f"'{text}': {what}: {rule.shown}"
    if isinstance(error, CostLimitExceededError):
        return f"'{text}': {_NO_FURTHER} due to call cost exceeds limit for rule: {rule.shown}"
    return f"{text} evaluating rule: {rule.shown}"


_BY_REASON: dict[str, Callable[[str, str], FieldError]] = {
    "FieldValueForbidden": forbidden,
    "FieldValueRequired": required,
}


def _error(rule: CompiledRule, tree: RuleTree, at: str, value: Any, detail: str) -> FieldError:
    reason = rule.props.get("reason") or "FieldValueInvalid"
    if reason in _BY_REASON:
        return _BY_REASON[reason](at, detail)
    # Objects and lists are not shown.
    is_shown = tree.type not in ("object", "array")
    if reason == "FieldValueDuplicate":
        return duplicate(at, value) if is_shown else FieldError(at, reason, "Duplicate value")
    return bad_value(at, value, detail) if is_shown else FieldError(at, reason, f"Invalid value: {detail}")
