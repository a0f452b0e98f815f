"""podlife's CEL beside cel-go in kube-apiserver's environment: values, types, errors, estimated and actual cost."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from tests.kit import cel_cases
from tests.kit.real_parts import part
from tests.real.conftest import require

FUNCTIONS = Path(__file__).parents[3] / "src" / "podlife" / "api" / "cel" / "functions.tsv"


@pytest.fixture(scope="module")
def program() -> Path:
    require("cel-upstream")
    return part("cel-upstream")


def test_every_expression_is_answered_as_upstream_answers_it(program: Path) -> None:
    cases = cel_cases.cases()
    answers = cel_cases.upstream(program, cases)
    differences = {
        case["expr"]: found
        for case, theirs in zip(cases, answers, strict=True)
        if (found := cel_cases.difference(theirs, cel_cases.podlife(case)))
    }
    assert differences == {}


def test_the_recorded_answers_are_upstreams(program: Path) -> None:
    assert cel_cases.recorded() == cel_cases.upstream(program, cel_cases.cases())


def test_the_table_of_functions_is_upstreams(program: Path) -> None:
    done = subprocess.run([program, "-declarations"], check=True, capture_output=True, text=True, timeout=60)
    assert FUNCTIONS.read_text() == done.stdout


@pytest.mark.parametrize("limit", [1, 5, 13, 14, 20])
def test_the_cost_limit_stops_both_at_the_same_cost(program: Path, limit: int) -> None:
    case = {"expr": "d.l.map(x, x * 2).size() == 2", "dyn": cel_cases.DYNAMIC, "limit": limit}
    [theirs] = cel_cases.upstream(program, [case])
    ours = cel_cases.podlife(case)
    assert ours.get("error") == theirs.get("error")
    assert ours["value"] == theirs["value"]
