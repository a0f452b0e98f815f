"""What a scenario makes of containers, images and nodes, and that it is the same every time."""

from __future__ import annotations

from itertools import islice
from typing import Any

from podlife.kubelet.hollow.scenario import NodeOutage
from podlife.kubelet.hollow.scenario_file import parse_scenario
from podlife.kubelet.hollow.script import pulling_of, script_of
from podlife.kubelet.runtime import ContainerConfig, SandboxConfig
from podlife.kubelet.runtimes.sim import Behaviour


def behaviour(text: str, name: str = "p", *, attempt: int = 0, **more: Any) -> Behaviour:
    sandbox = SandboxConfig("uid", "default", name, **more)
    return script_of(parse_scenario(text))(sandbox, ContainerConfig("app", attempt=attempt))


def test_without_a_rule_that_fits_a_container_is_an_ordinary_one() -> None:
    assert behaviour("") == behaviour("pods: [{namespaces: other, crash: 1s}]") == Behaviour()
    assert behaviour("pods: [{containers: other, crash: 1s}]") == Behaviour()


def test_the_first_rule_that_fits_counts() -> None:
    text = "pods: [{labels: app=web, start: 1s}, {start: 2s}]"
    assert behaviour(text, labels={"app": "web"}).start_seconds == 1
    assert behaviour(text).start_seconds == 2


def test_a_container_crashes_as_often_as_it_is_said_and_then_finishes() -> None:
    text = "pods: [{crash: {after: 5s, code: 3, times: 2}, finish: 60s}]"
    runs = [behaviour(text, attempt=attempt) for attempt in range(3)]
    assert [(run.run_seconds, run.exit_code) for run in runs] == [(5, 3), (5, 3), (60, 0)]


def test_a_share_of_the_pods_is_chosen_by_the_seed_alone() -> None:
    def chosen(seed: int) -> set[str]:
        text = f"seed: {seed}\npods: [{{share: 20%, crash: 1s}}]"
        names = [f"p-{number}" for number in range(200)]
        return {name for name in names if behaviour(text, name).run_seconds is not None}

    assert 20 < len(chosen(1)) < 60
    assert chosen(1) == chosen(1)
    assert chosen(1) != chosen(2)


def test_jitter_stays_within_its_bounds_and_is_the_same_for_the_same_run() -> None:
    text = "pods: [{start: {after: 2s, jitter: 3s}}]"
    drawn = [behaviour(text, f"p-{number}").start_seconds for number in range(100)]
    assert all(2 <= seconds <= 5 for seconds in drawn)
    assert len(set(drawn)) > 90
    assert behaviour(text, "p-3").start_seconds == drawn[3]


def test_an_annotation_of_the_pod_counts_more_than_the_scenario() -> None:
    said = {"sim.podlife.dev/start": "9s"}
    assert behaviour("pods: [{start: 1s}]", annotations=said).start_seconds == 9
    assert behaviour("", annotations=said).start_seconds == 9


def test_an_image_does_what_the_first_pattern_says_with_or_without_its_tag() -> None:
    text = "images: [{name: 'bad/app', error: unknown}, {name: 'slow/*', pull: 2s}]"
    pulling = pulling_of(parse_scenario(text), "sim-0")
    assert pulling("bad/app:latest") == (0, "unknown")
    assert pulling("slow/x:1") == (2, "")
    assert pulling("other:1") == (0, "")


def test_a_node_is_away_once_or_for_good_or_not_at_all() -> None:
    scenario = parse_scenario("nodes: [{names: a, at: 10s, for: 5s}, {names: b, at: 1s, what: machine}]")
    assert list(scenario.outages("a")) == [NodeOutage(10, 15)]
    assert list(scenario.outages("b")) == [NodeOutage(1, None, is_machine=True)]
    assert list(scenario.outages("c")) == []
    # One that has no end is the last.
    assert [each.end for each in parse_scenario("nodes: [{every: 100s}]").outages("a")] == [None]


def test_outages_by_chance_come_one_after_the_other_and_about_as_often_as_said() -> None:
    scenario = parse_scenario("seed: 3\nnodes: [{every: 100s, for: {after: 10s, jitter: 10s}}]")
    found = list(islice(scenario.outages("a"), 200))
    assert found == list(islice(scenario.outages("a"), 200))
    ends = [0.0, *(each.end or 0.0 for each in found)]
    gaps = [each.begin - end for each, end in zip(found, ends, strict=False)]
    assert all(gap > 0 for gap in gaps)
    assert all(10 <= (each.end or 0.0) - each.begin <= 20 for each in found)
    assert 80 < sum(gaps) / len(gaps) < 120
