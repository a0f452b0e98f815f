"""The same states of a cluster, given to kube-controller-manager's collector and to ours, end the same."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.kit.real_parts import kube_apiserver
from tests.real.conftest import require
from tests.real.differential.compare import differences_between
from tests.real.differential.differences import PARITY
from tests.real.podgc.differences import BEGIN, DIFFERENCES, END, parity_table
from tests.real.podgc.runs import Pair
from tests.real.podgc.state_table import STATES
from tests.real.podgc.states import State, World


@pytest.fixture(scope="module")
def pair(parts_folder: Path) -> Iterator[Pair]:
    """Servers of their own: a collector would find what other tests have left."""
    require("etcd", "kube-apiserver", "kube-controller-manager")
    folder = parts_folder / "podgc"
    with kube_apiserver(folder / "theirs") as theirs, kube_apiserver(folder / "ours") as ours:
        yield Pair(theirs, ours, folder)


@pytest.mark.parametrize(
    ("world", "state"), [pytest.param(world, state, id=state.name) for world, state in STATES]
)
def test_both_collectors_leave_the_same(world: World, state: State, pair: Pair) -> None:
    left = pair.left(world)
    found = differences_between(left.theirs[state.name], left.ours[state.name])
    known = DIFFERENCES.get(state.name)
    complaint = known.complaint(found) if known is not None else "differs" if found else ""
    if complaint:
        pytest.fail("\n".join([f"{state.name}: {complaint}", *map(str, found)]), pytrace=False)


def test_the_table_holds_at_least_25_states_with_names_of_their_own() -> None:
    assert len({state.name for _, state in STATES}) == len(STATES) >= 25


def test_every_listed_difference_names_a_state_of_the_table() -> None:
    assert DIFFERENCES.keys() <= {state.name for _, state in STATES}


def test_parity_page_shows_the_listed_differences() -> None:
    shown = PARITY.read_text().split(BEGIN)[1].split(END)[0].strip()
    assert shown == parity_table(), "run: python -m tests.real.podgc"
