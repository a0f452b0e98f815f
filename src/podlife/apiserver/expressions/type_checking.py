"""Checks the expressions of a ValidatingAdmissionPolicy against the schemas of the kinds that it is about.

Upstream's kube-controller-manager writes the result into the policy's status; it warns, and decides nothing. Pure.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from podlife.api.cel import DYN, CelType, schema_type
from podlife.api.codec import Object
from podlife.apiserver.expressions.compiler import ExpressionCompiler
from podlife.apiserver.expressions.environment import Declarations

MOST_TYPES = 10
_REFERENCE = "#/components/schemas/"


def object_type(document: Object, group: str, version: str, kind: str) -> CelType:
    """The type of a kind in an OpenAPI document of version 3; dynamic if it has none."""
    named: Mapping[str, Object] = document.get("components", {}).get("schemas", {})
    meant = {"group": group, "version": version, "kind": kind}
    for schema in named.values():
        if meant in schema.get("x-kubernetes-group-version-kind", ()):
            return schema_type(_resolved(schema, named), is_resource=True, name=kind) or DYN
    return DYN


def _resolved(schema: Object, named: Mapping[str, Object], within: frozenset[str] = frozenset()) -> Object:
    """The schema without references; one to a schema that contains it is an object without fields."""
    found = dict(schema)
    for part in found.pop("allOf", ()) if "$ref" not in schema else ():
        found = {**part, **found}
    if name := found.get("$ref", "").removeprefix(_REFERENCE):
        if name in within or name not in named:
            return {"type": "object"}
        return _resolved(named[name], named, within | {name})
    if "type" not in found and "oneOf" in found:
        # A number or a text: a quantity, a port.
        return {"x-kubernetes-int-or-string": True}
    for place in ("items", "additionalProperties"):
        if isinstance(found.get(place), dict):
            found[place] = _resolved(found[place], named, within)
    if "properties" in found:
        fields = found["properties"].items()
        found["properties"] = {field: _resolved(below, named, within) for field, below in fields}
    return found


def expression_warnings(spec: Object, types: Sequence[tuple[str, CelType]], params: CelType) -> list[Object]:
    """What is wrong with validations and their messages, for each of the types, which come with their names."""
    found: list[Object] = []
    compilers = [(name, _compiler(spec, each, params)) for name, each in types]
    for index, rule in enumerate(spec.get("validations") or ()):
        for field in ("expression", "messageExpression"):
            problems = list(_problems(rule[field], compilers)) if rule.get(field) else []
            if problems:
                place = f"spec.validations[{index}].{field}"
                found.append({"fieldRef": place, "warning": "\n".join(problems)})
    return found


def _compiler(spec: Object, object_type: CelType, params_type: CelType) -> ExpressionCompiler:
    """One that knows the policy's variables, where objects have this type."""
    has_params = spec.get("paramKind") is not None
    compiler = ExpressionCompiler(
        Declarations(has_params=has_params, variables={}, object_type=object_type, params_type=params_type)
    )
    for variable in spec.get("variables") or ():
        compiler.add_variable(variable.get("name", ""), variable.get("expression", ""))
    return compiler


def _problems(source: str, compilers: Sequence[tuple[str, ExpressionCompiler]]) -> Iterator[str]:
    for name, compiler in compilers:
        problem = compiler.compile(source).problem.removeprefix("compilation failed: ")
        if problem:
            yield f"{name}: {problem}\n"


def rules_to_check(spec: Object) -> Iterator[tuple[list[str], list[str], list[str]]]:
    """Groups, versions and resources of the rules that name all of them, sorted."""
    constraints: Mapping[str, Any] = spec.get("matchConstraints") or {}
    for rule in constraints.get("resourceRules") or ():
        groups, versions = (sorted(rule.get(field) or ()) for field in ("apiGroups", "apiVersions"))
        resources = sorted(each for each in rule.get("resources") or () if not set(each) & set("*/"))
        if not any("*" in name for name in (*groups, *versions)):
            yield groups, versions, resources
