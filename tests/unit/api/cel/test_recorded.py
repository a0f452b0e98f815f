"""Expressions whose answers upstream's own evaluator gave: values, types, errors, estimated and actual cost."""

from __future__ import annotations

from typing import Any

import pytest

from tests.kit import cel_cases

RECORDED = list(zip(cel_cases.cases(), cel_cases.recorded(), strict=True))


@pytest.mark.parametrize(("case", "answer"), RECORDED, ids=[case["expr"] for case, _ in RECORDED])
def test_an_expression_is_answered_as_upstream_answers_it(
    case: dict[str, Any], answer: dict[str, Any]
) -> None:
    assert cel_cases.difference(answer, cel_cases.podlife(case)) == {}
