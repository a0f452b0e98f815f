"""Mutations of a policy: what their expressions construct, and the object after it. Pure; errors are ValueError in
upstream's words."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podlife.api.cel import Struct
from podlife.api.codec import Object
from podlife.api.fieldpath import MergeType, TypedValueError, check_typed, merge
from podlife.api.patch import PatchError, json_patch
from podlife.apiserver.admission.policies.program import Mutation, PolicyProgram
from podlife.apiserver.expressions import Evaluation

_TEST_FAILED = "test failed"
_NOT_JSON = "JSONPath valueExpression evaluated to a type that could not marshal to JSON"


def mutated(program: PolicyProgram, mutation: Mutation, names: Mapping[str, Any], kind: MergeType) -> Object:
    """The whole object, of this type, after one mutation. It may share parts with `names["object"]`."""
    if mutation.expression.program is None:
        raise ValueError(mutation.expression.problem)
    value = Evaluation(names, program.variables).value(mutation.expression)
    obj: Object = names["object"]
    if mutation.patch_type == "JSONPatch":
        return _patched(obj, value)
    return _merged(obj, value, kind)


def _patched(obj: Object, operations: Sequence[Struct]) -> Object:
    try:
        result = json_patch(obj, [_operation(each) for each in operations])
    except PatchError as error:
        why = error.cause or error.message
        if why.endswith(_TEST_FAILED):
            return obj
        raise ValueError(f"JSON Patch: {why}") from None
    if not isinstance(result, dict):
        raise ValueError("JSON Patch: the result is not an object")
    return result


def _operation(given: Struct) -> Object:
    operation: Object = {name: given.get(name, "") for name in ("op", "path")}
    if given.get("from"):
        operation["from"] = given["from"]
    if "value" in given:
        value = given["value"]
        if isinstance(value, Struct):
            _check_type_names(value)
        operation["value"] = _to_json(value, _NOT_JSON)
    return operation


def _merged(obj: Object, configuration: Struct, kind: MergeType) -> Object:
    """The object with what the configuration has, merged as by an apply, but without an owner."""
    _check_type_names(configuration)
    typed = {name: obj[name] for name in ("apiVersion", "kind")}
    config = {**_to_json(configuration, "invalid return type: *types.Err"), **typed}
    step = "convert patch object to typed object"
    try:
        check_typed(config, kind)
        if atomics := list(_atomics(config, kind, "")):
            what = f"may not mutate atomic arrays, maps or structs: {', '.join(atomics)}"
            raise ValueError(f"error applying patch: invalid ApplyConfiguration: {what}")
        step = "merge patch"
        merged: Object = merge(obj, config, kind)
    except TypedValueError as error:
        raise ValueError(f"error applying patch: failed to {step}: {error}") from None
    return merged


def _atomics(value: Any, kind: MergeType, path: str) -> Iterator[str]:
    """Paths of what a merge would replace as a whole, most likely against the author's intention."""
    if isinstance(value, dict | list) and kind.atomic:
        yield path
    if isinstance(value, dict):
        for name in value.keys() & kind.fields.keys():
            yield from _atomics(value[name], kind.fields[name], f"{path}.{name}")
    elif isinstance(value, list) and kind.element is not None:
        for index, item in enumerate(value):
            yield from _atomics(item, kind.element, f"{path}[{index}]")


def _check_type_names(value: Struct) -> None:
    """An object below a field must be constructed by the name of that field: `Object.spec` in `Object{spec: …}`."""
    problems = list(_wrong_type_names(value, value.type_name))
    if problems:
        raise ValueError("type mismatch: " + "\n".join(problems))


def _wrong_type_names(value: Any, expected: str) -> Iterator[str]:
    if isinstance(value, Struct):
        if value.type_name != expected:
            names = f'unexpected type name "{value.type_name}", expected "{expected}"'
            yield f"{names}, which matches field name path from root Object type"
        for name, item in value.items():
            yield from _wrong_type_names(item, f"{expected}.{name}")
    elif isinstance(value, list | dict):
        for item in value if isinstance(value, list) else value.values():
            yield from _wrong_type_names(item, expected)


def _to_json(value: Any, problem: str) -> Any:
    """The value as JSON; raises ValueError with the problem if there is none."""
    if value is None or isinstance(value, bool | str | float):
        return value
    if isinstance(value, int):
        return int(value)
    if isinstance(value, list):
        return [_to_json(item, problem) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: _to_json(item, problem) for key, item in value.items()}
    raise ValueError(problem)
