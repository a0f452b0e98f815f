"""Any expression over any JSON value ends in a value or in a CelError, within its budget."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from podlife.api import cel
from tests.kit import cel_cases

TABLE = [case["expr"] for case in cel_cases.cases()]
FUNCTIONS = [
    "size",
    "string",
    "int",
    "type",
    "dyn",
    "quantity",
    "ip",
    "cidr",
    "url",
    "semver",
    "isIP",
    "duration",
]
MEMBERS = [
    *("size", "sum", "max", "isSorted", "distinct", "sort", "reverse", "first", "flatten", "join", "trim"),
    *(
        "orValue",
        "hasValue",
        "value",
        "contains",
        "startsWith",
        "matches",
        "split",
        "replace",
        "find",
        "indexOf",
    ),
]
json_values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**63), 2**63 - 1) | st.floats() | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=8,
)
leaves = st.one_of(
    st.sampled_from(
        ["x", "d", "x.a", "d[0]", "true", "null", "1", "2u", "1.5", "'a'", "b'a'", "[]", "{}", "[1, 2]"]
    ),
    st.integers(-(2**63), 2**63 - 1).map(str),
    st.text(max_size=4).map(lambda text: json.dumps(text, ensure_ascii=False)),
)


def larger(inner: st.SearchStrategy[str]) -> st.SearchStrategy[str]:
    operators = st.sampled_from(["+", "-", "*", "/", "%", "==", "!=", "<", ">=", "&&", "||", "in"])
    macros = st.sampled_from(["all", "exists", "exists_one", "map", "filter", "sortBy", "optMap"])
    two = st.sampled_from(
        ["all", "exists", "existsOne", "transformList", "transformMap", "transformMapEntry"]
    )
    return st.one_of(
        st.tuples(inner, operators, inner).map(lambda parts: f"({parts[0]} {parts[1]} {parts[2]})"),
        st.tuples(inner, inner, inner).map(lambda parts: f"({parts[0]} ? {parts[1]} : {parts[2]})"),
        st.tuples(inner, macros, inner).map(lambda parts: f"{parts[0]}.{parts[1]}(x, {parts[2]})"),
        st.tuples(inner, two, inner).map(lambda parts: f"{parts[0]}.{parts[1]}(x, d, {parts[2]})"),
        st.tuples(inner, inner).map(lambda parts: f"{parts[0]}[{parts[1]}]"),
        st.tuples(inner, inner).map(lambda parts: f"{parts[0]}[?{parts[1]}]"),
        st.tuples(inner, inner).map(lambda parts: f"[dyn({parts[0]}), dyn({parts[1]})]"),
        st.tuples(inner, inner).map(lambda parts: f"{{{parts[0]}: {parts[1]}}}"),
        st.tuples(st.sampled_from(FUNCTIONS), inner).map(lambda parts: f"{parts[0]}({parts[1]})"),
        st.tuples(inner, st.sampled_from(MEMBERS), st.lists(inner, max_size=2)).map(
            lambda parts: f"{parts[0]}.{parts[1]}({', '.join(parts[2])})"
        ),
        st.tuples(inner, inner).map(lambda parts: f"'%s %d'.format([{parts[0]}, {parts[1]}])"),
        inner.map(lambda part: f"!{part}"),
        inner.map(lambda part: f"-{part}"),
        inner.map(lambda part: f"has({part}.a)"),
        inner.map(lambda part: f"{part}.?a"),
    )


expressions = st.one_of(st.recursive(leaves, larger, max_leaves=12), st.sampled_from(TABLE))


@given(expressions, json_values, json_values, st.integers(0, 20_000))
def test_any_expression_ends_in_a_value_or_in_a_cel_error(source: str, x: Any, d: Any, limit: int) -> None:
    environment = cel.Environment({"x": cel.DYN, "d": cel.DYN})
    try:
        program = cel.compile(source, environment)
    except cel.CelError:
        return
    estimated = program.estimated_cost()
    assert 0 <= estimated.least <= 2**64 - 1
    assert 0 <= estimated.most <= 2**64 - 1
    try:
        done = program.evaluate({"x": x, "d": d}, limit)
    except cel.CelError:
        return
    assert done.cost <= limit


@given(expressions, json_values)
def test_a_program_gives_the_same_answer_again(source: str, x: Any) -> None:
    try:
        program = cel.compile(source, cel.Environment({"x": cel.DYN, "d": cel.DYN}))
        first = program.evaluate({"x": x, "d": 1}, 10_000)
    except cel.CelError:
        return
    again = program.evaluate({"x": x, "d": 1}, 10_000)
    assert (repr(again.value), again.cost) == (repr(first.value), first.cost)


@given(
    st.sampled_from([case for case in cel_cases.cases() if "schema" in case]),
    json_values,
    st.sampled_from(list(cel_cases.SELF)),
)
def test_a_value_that_breaks_its_schema_is_a_cel_error(case: dict[str, Any], broken: Any, name: str) -> None:
    made = cel.schema_type(case["schema"])
    assert made is not None
    try:
        program = cel.compile(case["expr"], cel.Environment({"self": made}))
        program.evaluate({"self": {**case["self"], name: broken}}, 100_000)
    except cel.CelError:
        pass
