"""What a tenant writes takes no more time, memory and stack than its cost limit stands for."""

from __future__ import annotations

import pytest

from podlife.api import cel

DYNAMIC = cel.Environment({"x": cel.DYN})


def run(source: str, limit: int = cel.PER_CALL_LIMIT, **variables: object) -> object:
    return cel.compile(source, DYNAMIC).evaluate(variables, limit).value


@pytest.mark.parametrize(
    "source",
    [
        pytest.param("[[1]]" + ".map(l, l + l)" * 60 + ".size()", id="a list that doubles"),
        pytest.param("['a']" + ".map(s, s + s)" * 60 + ".size()", id="a string that doubles"),
        pytest.param("[[1]]" + ".map(l, [l, l])" * 60 + " == x", id="a shared list compared as a tree"),
        pytest.param("lists.range(1000000000).size()", id="a range of a billion"),
        pytest.param("x.replace('', x).replace('', x).size()", id="replacements that multiply"),
        pytest.param("lists.range(100000).distinct().size()", id="a quadratic function"),
        pytest.param(
            "lists.range(1000).all(a, lists.range(1000).all(b, lists.range(1000).all(c, true)))",
            id="nested loops",
        ),
        pytest.param(
            "'%s'.format([" + "[[1]]" + ".map(l, [l, l])" * 40 + "])", id="a shared list printed as a tree"
        ),
        pytest.param("[[1]]" + ".map(l, [l, l])" * 40, id="a shared list returned as a tree"),
    ],
)
def test_growth_that_is_cheap_to_write_ends_at_the_limit(source: str) -> None:
    shared: list[object] = [1]
    for _ in range(60):
        shared = [shared, shared]
    value = "a" * 10_000 if "replace" in source else [shared]
    with pytest.raises(cel.CostLimitExceededError, match="operation cancelled: actual cost limit exceeded"):
        run(source, x=value)


@pytest.mark.parametrize(
    "source",
    [
        "(" * 5000 + "1" + ")" * 5000,
        "[" * 5000 + "]" * 5000,
        "1" + "+1" * 5000,
        "x" + ".a" * 5000,
        "x" + "[0]" * 5000,
        "true ? 1 : " * 5000 + "1",
        "f(" * 5000 + ")" * 5000,
        "{1:" * 5000 + "1" + "}" * 5000,
    ],
    ids=lambda source: source[:12],
)
def test_nesting_beyond_the_bound_is_an_error_of_the_expression(source: str) -> None:
    with pytest.raises(cel.CelError, match="expression recursion limit exceeded"):
        cel.compile(source, DYNAMIC)


def test_long_chains_of_logic_and_signs_are_no_nesting() -> None:
    assert run("true" + " && true" * 5000) is True
    assert run("!" * 1000 + "true") is True


def test_nesting_at_the_bound_is_evaluated() -> None:
    assert run("(" * 50 + "1" + ")" * 50) == 1
    assert run("1" + "+1" * 200) == 201


def test_a_source_beyond_the_limit_of_upstream_is_refused_with_its_message() -> None:
    with pytest.raises(
        cel.CelError, match="expression code point size exceeds limit: size: 100001, limit 100000"
    ):
        cel.compile("1" * 100_001, DYNAMIC)


def test_a_pattern_that_would_backtrack_for_ages_runs_in_linear_time() -> None:
    assert run("x.matches('^(a+)+$')", x="a" * 50_000 + "b") is False


def test_matches_with_a_large_automaton_end_at_the_limit() -> None:
    with pytest.raises(cel.CostLimitExceededError):
        run("lists.range(100).all(i, !x.matches('[ab]*a[ab]{1000}$'))", x="b" * 20_000)


def test_finding_that_reads_to_the_end_for_every_match_ends_at_the_limit() -> None:
    with pytest.raises(cel.CostLimitExceededError):
        run("x.findAll('a.*b|a').size()", x="a" * 100_000)


def test_a_pattern_whose_automaton_is_too_large_is_an_error() -> None:
    with pytest.raises(cel.CelError):
        cel.compile("'a'.matches('((a{100}){100}){100}')", DYNAMIC)


def test_a_value_that_is_too_deep_is_an_error() -> None:
    deep: list[object] = []
    for _ in range(5000):
        deep = [deep]
    with pytest.raises(cel.CelError, match="maximum depth"):
        run("x == x", x=deep)


def test_operators_absorb_errors_but_not_the_end_of_the_budget() -> None:
    assert run("1 / 0 == 1 || true") is True
    with pytest.raises(cel.CostLimitExceededError):
        run("lists.range(1000).all(i, i >= 0) || true", 100)


def test_a_result_within_the_limit_says_what_it_cost() -> None:
    done = cel.compile("[1, 2, 3].map(i, i * 2)", DYNAMIC).evaluate({}, 1000)
    assert done == cel.Evaluation([2, 4, 6], 43)
