"""Generated expressions over a schema, answered by upstream and by podlife: value, type, error and both costs."""

from __future__ import annotations

import os
import random
from pathlib import Path

import pytest

from tests.kit import cel_cases
from tests.kit.real_parts import part
from tests.real.cel.generator import expression
from tests.real.conftest import require

COUNT = int(os.environ.get("PODLIFE_CEL_EXPRESSIONS", "1000"))


@pytest.fixture(scope="module")
def program() -> Path:
    require("cel-upstream")
    return part("cel-upstream")


@pytest.mark.parametrize("seed", range(3))
def test_generated_expressions_are_answered_as_upstream_answers_them(program: Path, seed: int) -> None:
    chance = random.Random(seed)
    sources = [expression(chance) for _ in range(COUNT)]
    cases = [{"expr": one, "schema": cel_cases.SCHEMA, "self": cel_cases.SELF} for one in sources]
    differences = {
        case["expr"]: found
        for case, theirs in zip(cases, cel_cases.upstream(program, cases), strict=True)
        # Some functions of cel-go panic where an argument is an error; podlife reports that error.
        if not theirs.get("error", "").startswith("internal error")
        and (found := cel_cases.difference(theirs, cel_cases.podlife(case)))
    }
    assert differences == {}
