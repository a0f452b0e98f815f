"""What the benchmark of ReplicaSets makes of its figures."""

from __future__ import annotations

import os

from bench.processes import Cost, most_per_second
from bench.replicaset import Scaling, Size, compare, replica_set


def scaling(seconds: float, cpu_seconds: float, peak_mb: float) -> Scaling:
    return Scaling(seconds - 0.1, seconds, Cost(0.5, 40.0), Cost(cpu_seconds, peak_mb), 10.0)


def test_as_fast_and_as_frugal_as_was_aimed_for_misses_nothing() -> None:
    table = compare(Size(), scaling(10.9, 3.0, 133), scaling(7.2, 3.0, 88))
    assert table.missed == []
    assert "459" in str(table)
    assert "0.5 s to start and 2.5 s to scale" in str(table)


def test_each_figure_is_held_against_its_own_goal() -> None:
    theirs = scaling(10.0, 3.0, 132)
    assert compare(Size(), theirs, scaling(7.0, 3.0, 88)).missed == ["pods/s"]
    assert compare(Size(), theirs, scaling(6.0, 3.1, 88)).missed == ["CPU s"]
    assert compare(Size(), theirs, scaling(6.0, 3.0, 89)).missed == ["peak MB"]


def test_the_replica_set_selects_its_own_template() -> None:
    spec = replica_set(7)["spec"]
    assert isinstance(spec, dict)
    assert spec["replicas"] == 7
    assert spec["selector"]["matchLabels"] == spec["template"]["metadata"]["labels"]


def test_what_the_servers_take_bounds_what_any_client_can_do() -> None:
    cores = len(os.sched_getaffinity(0))
    text = most_per_second(10.0, 5000)
    assert "2.00 ms" in text
    assert f"{cores * 500}/s at most" in text
