"""What the benchmarks of simulated pods and of an idle agent make of their figures."""

from __future__ import annotations

import os

from bench.idle_agent import Idleness, _descendants, judge
from bench.idle_agent import Size as IdleSize
from bench.processes import Cost
from bench.sim import Life, Size, compare


def life(start: float, end: float) -> Life:
    return Life(start, end, Cost(20.0, 100.0), 60.0)


def test_as_fast_as_kwok_misses_nothing_however_long_telling_of_ends_takes() -> None:
    table = compare(Size(), life(20.0, 20.0), life(20.0, 20.0), life(20.0, 40.0))
    assert table.missed == []
    assert "with ends told: all Running after 20.0 s, all gone 40.0 s" in str(table)


def test_the_whole_life_counts_and_not_one_half_of_it() -> None:
    assert compare(Size(), life(20, 20), life(21, 18), life(1, 1)).missed == []
    assert compare(Size(), life(20, 20), life(18, 23), life(1, 1)).missed == ["lives/s"]


def test_an_idle_agent_may_use_a_hundredth_of_a_core_with_its_supervisors() -> None:
    assert judge(IdleSize(), Idleness(60.0, 0.4, 0.19, 70.0, 10.0)).missed == []
    assert judge(IdleSize(), Idleness(60.0, 0.4, 0.3, 70.0, 10.0)).missed == ["% of a core"]


def test_what_is_below_a_process_is_found_and_nothing_else() -> None:
    assert os.getpid() in _descendants(os.getppid())
    assert os.getppid() not in _descendants(os.getpid())
