"""Validation of a value against its schema, with the errors of kube-apiserver (kube-openapi's validator).

On an update, errors in parts that did not change are not reported: a schema may have become stricter since the object
was stored. Parts of the old and the new object are correlated as upstream does: by field, and by key in lists of type
map.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from podlife.api.codec import is_same
from podlife.api.field_errors import FieldError, bad_value, not_supported, required, too_long, too_many
from podlife.api.structural.fields import Budget
from podlife.api.structural.formats import has_format
from podlife.api.structural.schema import Schema

NEW: Any = object()
"""The old value of a part that has none."""

# Go's path of an error that belongs to no field.
NOWHERE = "<nil>"
_INT64 = 2**63
_INT32 = 2**31
_LARGEST_FLOAT = 3.4028234663852886e38
# An error takes as long as many checks, and one empty object can lack thousands of fields.
_STEPS_PER_ERROR = 20


def validate_value(
    value: Any, schema: Schema, budget: Budget, *, old: Any = NEW, root: str = ""
) -> list[FieldError]:
    """Every error in the value. `root` is the path of the value in its object."""
    result = _Validation(budget, root).check(schema, value, "", old)
    return list(result.errors.values())


class _Result:
    """Errors by their text, which upstream reports once, and the number of checks that passed."""

    __slots__ = ("errors", "matches")

    def __init__(self) -> None:
        self.errors: dict[str, FieldError] = {}
        self.matches = 0

    def merge(self, other: _Result) -> None:
        for text, error in other.errors.items():
            self.errors.setdefault(text, error)
        self.matches += other.matches


class _Validation:
    def __init__(self, budget: Budget, root: str) -> None:
        self._budget = budget
        self._root = root

    def check(self, schema: Schema, value: Any, path: str, old: Any) -> _Result:
        result = _Result()
        self._check(schema, value, path, old, result)
        if result.errors and old is not NEW and is_same(old, value):
            result.errors = {}
        return result

    def _check(self, schema: Schema, value: Any, path: str, old: Any, result: _Result) -> None:
        self._budget.spend(1 + len(schema.required) + len(schema.enum))
        if schema.types or schema.format:
            result.matches += 1
            self._check_type(schema, value, path, result)
        if value is None:
            self._check_enum(schema, value, path, result)
            return
        if schema.any_of or schema.one_of or schema.all_of or schema.not_ is not None:
            self._check_junctors(schema, value, path, old, result)
        result.matches += 4
        if isinstance(value, str):
            self._check_text(schema, value, path, result)
        elif isinstance(value, dict):
            self._check_object(schema, value, path, old, result)
            if schema.enum:
                self._check_enum(schema, value, path, result)
            return
        elif isinstance(value, list):
            result.matches += 1
            self._check_list(schema, value, path, old, result)
        elif not isinstance(value, bool):
            result.matches += 1
            self._check_number(schema, value, path, result)
        if schema.enum:
            self._check_enum(schema, value, path, result)

    # Reports. The text is what upstream compares to report an error once.

    def _at(self, path: str) -> str:
        name = path.removeprefix(".")
        if not self._root:
            return name or NOWHERE
        return f"{self._root}.{name}" if name else self._root

    def _invalid(self, result: _Result, path: str, value: Any, text: str) -> None:
        text = f"{path} in body {text}"
        if isinstance(value, float) and _is_whole(value):
            value = int(value)
        result.errors.setdefault(text, bad_value(self._at(path), "" if value is None else value, text))

    def _wrong_type(self, result: _Result, path: str, named: str, value: str) -> None:
        text = f"{path} in body must be of type {named}: {json.dumps(value, ensure_ascii=False)}"
        error = FieldError(
            self._at(path), "FieldValueTypeInvalid", "Invalid value: ", value=value, after=f": {text}"
        )
        result.errors.setdefault(text, error)

    def _general(self, result: _Result, text: str) -> None:
        result.errors.setdefault(text, bad_value(self._root or NOWHERE, "", text))

    # Checks, in upstream's order.

    def _check_type(self, schema: Schema, value: Any, path: str, result: _Result) -> None:
        types = schema.types
        if value is None:
            if types and not schema.nullable:
                result.matches -= 1
                self._wrong_type(result, path, ",".join(types), "null")
            return
        found, format_ = _json_type(value)
        fits = found in types or (found == "integer" and "number" in types)
        fits = fits or (found == "number" and "integer" in types and float(value).is_integer())
        if fits:
            return
        if schema.format and found not in ("string", "array") and format_ != schema.format:
            result.matches -= 1
            self._wrong_type(result, path, schema.format, format_)
        elif schema.format and found in ("string", "array") and not {"number", "integer"} & set(types):
            return
        else:
            result.matches -= 1
            self._wrong_type(result, path, ",".join(types), found)

    def _check_junctors(self, schema: Schema, value: Any, path: str, old: Any, result: _Result) -> None:
        quoted = json.dumps(path, ensure_ascii=False)
        if schema.any_of:
            results = []
            for each in schema.any_of:
                results.append(self.check_part(each, value, path, old))
                if not results[-1].errors:
                    break
            if results[-1].errors:
                self._general(result, f"{quoted} must validate at least one schema (anyOf)")
                result.merge(max(results, key=lambda each: each.matches))
            else:
                result.merge(results[-1])
        if schema.one_of:
            self._check_one_of(schema, value, path, old, result)
        failed = 0
        for each in schema.all_of:
            part = self.check_part(each, value, path, old)
            failed += bool(part.errors)
            result.merge(part)
        if failed:
            none = ". None validated" if failed == len(schema.all_of) else ""
            self._general(result, f"{quoted} must validate all the schemas (allOf){none}")
        if schema.not_ is not None and not self.check_part(schema.not_, value, path, old).errors:
            self._general(result, f"{quoted} must not validate the schema (not)")

    def check_part(self, schema: Schema, value: Any, path: str, old: Any) -> _Result:
        """As `check`, for another schema of the same value, whose errors are not forgiven."""
        result = _Result()
        self._check(schema, value, path, old, result)
        return result

    def _check_one_of(self, schema: Schema, value: Any, path: str, old: Any, result: _Result) -> None:
        results = [self.check_part(each, value, path, old) for each in schema.one_of]
        valid = [each for each in results if not each.errors]
        if len(valid) == 1:
            result.merge(valid[0])
            return
        found = f"Found {len(valid)} valid alternatives" if valid else "Found none valid"
        quoted = json.dumps(path, ensure_ascii=False)
        self._general(result, f"{quoted} must validate one and only one schema (oneOf). {found}")
        if not valid:
            result.merge(max(results, key=lambda each: each.matches))

    def _check_text(self, schema: Schema, value: str, path: str, result: _Result) -> None:
        if schema.max_length is not None and len(value) > schema.max_length:
            text = f"{path} in body should be at most {schema.max_length} chars long"
            result.errors.setdefault(text, too_long(self._at(path), schema.max_length))
        elif schema.min_length is not None and len(value) < schema.min_length:
            self._invalid(result, path, value, f"should be at least {schema.min_length} chars long")
        elif schema.pattern is not None:
            # At worst a step of the automaton takes 40 ns for each of its instructions.
            self._budget.spend(len(value) * schema.pattern.programsize // 48)
            if schema.pattern.search(value) is None:
                self._invalid(result, path, value, f"should match '{schema.pattern.pattern}'")
        if schema.format and not has_format(value, schema.format):
            self._wrong_type(result, path, schema.format, value)

    def _check_number(self, schema: Schema, value: float, path: str, result: _Result) -> None:
        if (problem := _range_problem(schema, value)) and not isinstance(value, bool):
            self._general(result, f"Checked value must be of type {problem} in {path}")
        if schema.multiple_of is not None:
            self._check_multiple(schema.multiple_of, value, path, result)
        for limit, exclusive, sign, words in (
            (schema.minimum, schema.exclusive_minimum, -1, "greater"),
            (schema.maximum, schema.exclusive_maximum, 1, "less"),
        ):
            if limit is None:
                continue
            bound = int(limit) if isinstance(value, int) else limit
            difference = (value - bound) * sign
            if difference > 0 or (exclusive and difference == 0):
                equal = "" if exclusive else " or equal to"
                self._invalid(result, path, value, f"should be {words} than{equal} {_go_number(bound)}")

    def _check_multiple(self, factor: float, value: float, path: str, result: _Result) -> None:
        bound = int(factor) if isinstance(value, int) else factor
        if bound <= 0:
            text = f"factor MultipleOf declared for {path} must be positive: {_go_number(bound)}"
            result.errors.setdefault(text, bad_value(self._at(path), bound, text))
        elif (value % bound if isinstance(value, int) else not _is_whole(value / bound)) != 0:
            self._invalid(result, path, value, f"should be a multiple of {_go_number(bound)}")

    def _check_list(self, schema: Schema, value: list[Any], path: str, old: Any, result: _Result) -> None:
        if schema.items is not None:
            keys = schema.list_map_keys if schema.list_type == "map" else ()
            before = items_by_key(keys, old)
            for index, item in enumerate(value):
                known = before.get(item_key(keys, item), NEW) if before else NEW
                result.merge(self.check(schema.items, item, f"{path}[{index}]", known))
        if schema.min_items is not None and len(value) < schema.min_items:
            self._invalid(result, path, len(value), f"should have at least {schema.min_items} items")
        if schema.max_items is not None and len(value) > schema.max_items:
            text = f"{path} in body should have at most {schema.max_items} items"
            result.errors.setdefault(text, too_many(self._at(path), len(value), schema.max_items))

    def _check_enum(self, schema: Schema, value: Any, path: str, result: _Result) -> None:
        if isinstance(value, dict | list):
            self._budget.spend(len(value) * len(schema.enum))
        # Null is in no enum, even if it is listed.
        if not schema.enum or (value is not None and any(_is_same(value, each) for each in schema.enum)):
            return
        shown = [each if isinstance(each, str) else json.dumps(each) for each in schema.enum]
        text = f"{path} in body should be one of {shown}"
        result.errors.setdefault(text, not_supported(self._at(path), value, shown))

    def _check_object(
        self, schema: Schema, value: Mapping[str, Any], path: str, old: Any, result: _Result
    ) -> None:
        count = len(value)
        if schema.min_properties is not None and count < schema.min_properties:
            self._invalid(result, path, count, f"should have at least {schema.min_properties} properties")
        if schema.max_properties is not None and count > schema.max_properties:
            text = f"{path} in body should have at most {schema.max_properties} properties"
            result.errors.setdefault(text, too_many(self._at(path), count, schema.max_properties))
        before = old if isinstance(old, dict) and schema.map_type != "atomic" else {}
        for name, item in value.items():
            inner = schema.properties.get(name)
            if inner is not None:
                at = f"{path}.{name}" if path else name
            elif schema.additional is not None:
                inner, at = schema.additional, f"{path}.{name}"
            elif schema.allows_additional is False:
                text = f"{path}.{name} in body is a forbidden property"
                result.errors.setdefault(text, bad_value(self._at(path), name, text))
                continue
            else:
                continue
            result.merge(self.check(inner, item, at, before.get(name, NEW)))
        missing = [name for name in schema.required if name not in value]
        self._budget.spend(_STEPS_PER_ERROR * len(missing))
        for name in missing:
            text = f"{path}.{name} in body is required"
            result.errors.setdefault(text, required(self._at(f"{path}.{name}")))


def _json_type(value: Any) -> tuple[str, str]:
    """The type of a JSON value, and the format in which Go holds it."""
    if isinstance(value, bool):
        return "boolean", ""
    if isinstance(value, str):
        return "string", ""
    if isinstance(value, int) and -_INT64 <= value < _INT64:
        return "integer", "int64"
    if isinstance(value, int | float):
        return "number", "float64"
    return ("array", "") if isinstance(value, list) else ("object", "")


def _range_problem(schema: Schema, value: float) -> str:
    """The type and format that cannot hold the number; empty if they can."""
    if schema.types == ("integer",):
        limit = _INT32 if schema.format == "int32" else _INT64
        if _is_whole(value) and -limit <= value < limit:
            return ""
        return f"integer with format {schema.format}" if schema.format else "integer (default format)"
    if schema.types == ("number",) and schema.format == "float" and abs(value) > _LARGEST_FLOAT:
        return "number with format float"
    return ""


def _is_whole(value: float) -> bool:
    return math.isfinite(value) and (isinstance(value, int) or value.is_integer())


def _go_number(value: float) -> str:
    """As Go's %v."""
    if isinstance(value, int):
        return str(value) if -_INT64 <= value < _INT64 else f"{float(value):e}"
    if value.is_integer() and abs(value) < 1e21:
        return str(int(value))
    return repr(value)


def _is_same(value: Any, other: Any) -> bool:
    """Equality of JSON values: Python's, except that a bool never equals a number."""
    if isinstance(value, bool) or isinstance(other, bool):
        return value is other
    return bool(value == other)


def item_key(keys: Sequence[str], item: Any) -> str | None:
    """What identifies an item of a list of type map."""
    if not isinstance(item, dict):
        return None
    return json.dumps([item.get(name) for name in keys])


def items_by_key(keys: Sequence[str], old: Any) -> dict[str | None, Any]:
    """Items of the old list by their keys; none if it is not of type map."""
    if not keys or not isinstance(old, list):
        return {}
    return {item_key(keys, item): item for item in old if isinstance(item, dict)}
