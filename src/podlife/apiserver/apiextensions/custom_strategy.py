"""Strategy of the instances of one version of a custom resource: its schema and its validation rules decide."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from podlife.api import schema as types
from podlife.api.codec import Object, is_same
from podlife.api.field_errors import FieldError, bad_value
from podlife.api.names import check_label_key
from podlife.api.structural import (
    NEW,
    NOWHERE,
    Budget,
    RuleEvaluation,
    RuleTree,
    Schema,
    TooExpensiveError,
    default,
    drop_nulls,
    prune,
    validate_lists,
    validate_value,
    whole_numbers,
)
from podlife.apiserver.apiextensions.embedded import coerce_embedded, validate_embedded
from podlife.apiserver.strategies.field_checks import accessed
from podlife.apiserver.strategies.strategy import Strategy
from podlife.errors import ApiError, ForbiddenError

_STANDARD_FINALIZERS = ("foregroundDeletion", "kubernetes", "orphan")
# Weight of a schema, and estimated cost of its rules, above which objects are checked off the event loop.
_COSTLY = 1_000
_COSTLY_RULES = 10_000
# Errors after which no rule is evaluated: rules rely on the types of values, and are bounded by their sizes.
_BLOCKING = frozenset(
    f"FieldValue{kind}" for kind in ("NotSupported", "Required", "TooLong", "TooMany", "TypeInvalid")
)
_UNCHECKED = (
    "some validation rules were not checked because the object was invalid; "
    "correct the existing errors to complete validation"
)
_LARGEST_INT32 = 2**31 - 1


@dataclass(frozen=True, slots=True)
class CustomResourceVersion:
    """What a strategy needs to know of one version of a definition."""

    name: str
    api_version: str
    kind: str
    schema: Schema
    # Schema of the version in which objects are stored.
    stored: Schema
    has_status: bool
    scale: Object | None
    is_terminating: bool

    def check(self, obj: Object) -> list[str]:
        """Bring an object from outside into shape; returns the unknown fields that were removed. Raises DecodeError."""
        try:
            unknown = self._check_metadata(obj)
            paths = prune(obj, self.schema, is_resource=True)
            drop_nulls(obj, self.schema)
            paths += coerce_embedded(obj, self.schema)
        except RecursionError:
            raise types.DecodeError("exceeded max depth") from None
        return [*unknown, *(f'unknown field "{path}"' for path in paths)]

    def _check_metadata(self, obj: Object) -> list[str]:
        if (metadata := obj.get("metadata")) is None:
            return []
        if not isinstance(metadata, dict):
            found = types.go_kind(metadata)
            raise types.DecodeError(f"json: cannot unmarshal {found} into Go value of type v1.ObjectMeta")
        unknown = types.check_metadata(metadata)
        return [text.replace('unknown field "', 'unknown field "metadata.', 1) for text in unknown]

    def read(self, obj: Object) -> Object:
        """A stored object as this version shows it: the schema may have changed since it was stored."""
        # Of a time when a webhook converted it.
        obj.pop("apiVersion", None)
        prune(obj, self.schema, is_resource=True)
        drop_nulls(obj, self.schema)
        default(obj, self.schema, Budget())
        return obj


class CustomResourceStrategy(Strategy):
    has_generation = True
    unconditional_update = False
    qualified_finalizers = False
    kept_by_status = (("metadata",),)

    def __init__(self, version: CustomResourceVersion, rules: RuleTree | None = None) -> None:
        self._version = version
        self._rules = rules
        self.has_status = version.has_status
        cost = 0 if rules is None else rules.cost
        self.is_costly = version.schema.weight > _COSTLY or cost > _COSTLY_RULES

    def default(self, obj: Object) -> None:
        with _Bounded():
            default(obj, self._version.schema, Budget())

    def prepare_create(self, obj: Object) -> None:
        if self._version.is_terminating:
            plural = self._version.name
            name = obj["metadata"].get("name", "")
            raise ForbiddenError(
                f'{plural} "{name}" is forbidden: '
                "create not allowed while custom resource definition is terminating"
            )
        super().prepare_create(obj)

    def has_changed(self, new: Object, old: Object) -> bool:
        one, other = (
            {field: value for field, value in obj.items() if field != "metadata"} for obj in (new, old)
        )
        return not is_same(one, other)

    def validate(self, obj: Object) -> list[FieldError]:
        # An update is validated with the object before it.
        return [] if "resourceVersion" in obj["metadata"] else self._errors(obj, None)

    def validate_update(self, new: Object, old: Object) -> list[FieldError]:
        return self._errors(new, old)

    def _errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        version = self._version
        whole, before = self._typed(obj), NEW if old is None else self._typed(old)
        with _Bounded():
            errors = validate_value(whole, version.schema, Budget(), old=before)
        errors += self._scale_errors(obj, "specReplicasPath", "statusReplicasPath", "labelSelectorPath")
        errors += validate_embedded(obj, version.schema)
        errors += self._list_errors(obj, old)
        return errors + self._rule_errors(whole, None if old is None else before, errors)

    def validate_status_update(self, new: Object, old: Object) -> list[FieldError]:
        errors: list[FieldError] = []
        status = self._version.schema.properties.get("status")
        if "status" in new and status is not None:
            with _Bounded():
                errors = validate_value(
                    new["status"], status, Budget(), old=old.get("status", NEW), root="status"
                )
        errors += self._scale_errors(new, "statusReplicasPath", "labelSelectorPath")
        errors += self._list_errors(new, old)
        return errors + self._rule_errors(self._typed(new), self._typed(old), errors)

    def _list_errors(self, obj: Object, old: Object | None) -> list[FieldError]:
        """None if there were some before: who updates the object may not have caused them."""
        errors = list(validate_lists(obj, self._version.schema))
        return [] if errors and old is not None and any(validate_lists(old, self._version.schema)) else errors

    def _typed(self, obj: Object) -> Object:
        return {"apiVersion": self._version.api_version, "kind": self._version.kind, **obj}

    def _rule_errors(self, obj: Object, old: Object | None, errors: list[FieldError]) -> list[FieldError]:
        if self._rules is None:
            return []
        if any(error.reason in _BLOCKING for error in errors):
            return [bad_value(NOWHERE, None, _UNCHECKED)]
        evaluation = RuleEvaluation(Budget())
        with _Bounded():
            evaluation.validate(self._rules, obj, old)
        return evaluation.errors

    def canonicalize(self, obj: Object) -> None:
        # Those of the metadata have their types already.
        parts = {name: value for name, value in obj.items() if name != "metadata"}
        whole_numbers(parts)
        obj |= parts
        if self._version.stored is not self._version.schema:
            prune(obj, self._version.stored, is_resource=True)
        # An apply can bring nulls that validation allows, and that no reader sees.
        drop_nulls(obj, self._version.stored)

    def warnings(self, obj: Object) -> list[str]:
        found: list[str] = []
        for name in sorted(set(obj["metadata"].get("finalizers") or ())):
            shown = f'metadata.finalizers: "{name}"'
            found += [f"{shown}: {problem}" for problem in check_label_key(name)]
            if "/" not in name and name not in _STANDARD_FINALIZERS:
                path = " including a path (/)" if "." in name else ""
                found.append(
                    f"{shown}: prefer a domain-qualified finalizer name{path} to avoid accidental conflicts with other "
                    "finalizer writers"
                )
        return found

    def _scale_errors(self, obj: Object, *fields: str) -> list[FieldError]:
        errors: list[FieldError] = []
        for field in fields if self._version.scale is not None else ():
            path = (self._version.scale or {}).get(field)
            if path:
                is_text = field == "labelSelectorPath"
                errors += _check_text_at(obj, path) if is_text else _check_number_at(obj, path)
        return errors


def _check_number_at(obj: Object, path: str) -> list[FieldError]:
    value, problem = accessed(obj, path, int)
    if problem:
        return [bad_value(path, 0, problem)]
    if value is not None and value < 0:
        return [bad_value(path, value, "should be a non-negative integer")]
    if value is not None and value > _LARGEST_INT32:
        return [bad_value(path, value, f"should be less than or equal to {_LARGEST_INT32}")]
    return []


def _check_text_at(obj: Object, path: str) -> list[FieldError]:
    _, problem = accessed(obj, path, str)
    return [bad_value(path, "", problem)] if problem else []


class _Bounded:
    """Turns work that exceeds its budget into a 413."""

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if isinstance(error, TooExpensiveError):
            raise ApiError(
                f"Request entity too large: {error}", code=413, reason="RequestEntityTooLarge"
            ) from None
