"""Every request of the table, sent to kube-apiserver v1.36 and to ours, is answered the same."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.kit.real_parts import Server
from tests.real.differential.areas import AREAS
from tests.real.differential.compare import AreaRun
from tests.real.differential.differences import BEGIN, DIFFERENCES, END, PARITY, parity_table
from tests.real.differential.steps import Step
from tests.real.differential.target import Target

STEPS = [step for area in AREAS for step in area.steps]


@pytest.fixture(scope="module")
def runs(kube: Server, podlife_server: Server) -> Iterator[dict[str, AreaRun]]:
    real, ours = Target(kube), Target(podlife_server)
    yield {area.name: AreaRun(area, real, ours) for area in AREAS}
    real.close()
    ours.close()


@pytest.mark.parametrize("step", STEPS, ids=lambda step: step.id)
def test_both_servers_answer_the_same(step: Step, runs: dict[str, AreaRun]) -> None:
    outcome = runs[step.area].outcome(step)
    assert step.code in (0, outcome.real["code"]), "the table is wrong about the real server"
    found = outcome.differences
    known = DIFFERENCES.get(step.id)
    complaint = known.complaint(found) if known is not None else "differs" if found else ""
    if complaint:
        lines = [f"{step.method} {step.path}: {complaint}", *(str(one) for one in found)]
        pytest.fail("\n".join(lines), pytrace=False)


def test_the_table_holds_at_least_300_requests_with_names_of_their_own() -> None:
    assert len({step.id for step in STEPS}) == len(STEPS) >= 300


def test_every_listed_difference_names_a_step_of_the_table() -> None:
    assert DIFFERENCES.keys() <= {step.id for step in STEPS}


def test_parity_page_shows_the_listed_differences() -> None:
    shown = PARITY.read_text().split(BEGIN)[1].split(END)[0].strip()
    assert shown == parity_table(), "run: python -m tests.real.differential --write-parity"
