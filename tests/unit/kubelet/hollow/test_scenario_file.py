"""A scenario as it is written: what is taken, and how mistakes are told."""

from __future__ import annotations

from pathlib import Path

import pytest

from podlife.errors import ConfigError
from podlife.kubelet.hollow.scenario import Conduct, Crash, ImageRule, NodeRule, Stop, Wait
from podlife.kubelet.hollow.scenario_file import annotated, load_scenario, parse_scenario

WHOLE = """\
seed: 7
pods:
- labels: app=web,tier!=db
  share: 10%
  crash: {after: 30s, jitter: 10s, code: 2, times: 3}
- namespaces: [batch, later]
  containers: app
  start: 1m30s
  finish: {after: 500ms}
  stop: never
  output: [hello, world]
images:
- {name: "broken.example/*", error: manifest unknown}
- {name: "slow/*", pull: {after: 2s, jitter: 3s}}
nodes:
- {names: sim-1*, share: 0.5, at: 2m, for: 5m}
- {every: 1h, for: 30, what: machine}
"""


def test_everything_that_can_be_said_is_taken() -> None:
    scenario = parse_scenario(WHOLE)
    crashing, batch = scenario.pods
    assert scenario.seed == 7
    assert str(crashing.labels) == "app=web,tier!=db"
    assert crashing.share == 0.1
    assert crashing.conduct == Conduct(crash=Crash(Wait(30, 10), code=2, times=3))
    assert (batch.namespaces, batch.containers) == (("batch", "later"), ("app",))
    assert batch.conduct == Conduct(
        start=Wait(90), finish=Wait(0.5), stop=Stop(after=None), output=("hello", "world")
    )
    assert scenario.images == (
        ImageRule("broken.example/*", error="manifest unknown"),
        ImageRule("slow/*", Wait(2, 3)),
    )
    assert scenario.nodes == (
        NodeRule(("sim-1*",), 0.5, at=Wait(120), lasts=Wait(300)),
        NodeRule(every_seconds=3600, lasts=Wait(30), is_machine=True),
    )


def test_an_empty_file_is_a_scenario_in_which_nothing_happens() -> None:
    assert parse_scenario("") == parse_scenario("# nothing\n") == parse_scenario("{}")


def test_a_container_that_runs_out_of_memory_ends_as_one_that_was_killed() -> None:
    (rule,) = parse_scenario("pods: [{crash: {after: 1s, out-of-memory: true}}]").pods
    assert rule.conduct.crash == Crash(Wait(1), code=137, is_out_of_memory=True)


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("pods:\n- strat: 2s\n", r"line 2: unknown field pods\[0\]\.strat: did you mean start\?"),
        ("pods:\n- start: 2s\n  start: 3s\n", r"line 3: duplicate field pods\[0\]\.start"),
        ("pods:\n-\n  start: soon\n", r"line 3: pods\[0\]\.start must be a duration such as 40s"),
        ("pods:\n- start: -2s\n", r"line 2: pods\[0\]\.start must be a duration"),
        ("pods: [{crash: {code: 0}}]", r"pods\[0\]\.crash\.code must be a whole number from 1 to 255"),
        ("pods: [{crash: {code: 99999999999999999999999}}]", r"must be a whole number from 1 to 255"),
        ("pods: [{crash: {code: one}}]", r"must be a whole number from 1 to 255"),
        ("pods: [{share: 120%}]", r"pods\[0\]\.share must be a share such as 0\.25 or 25%"),
        ("pods: [{labels: 'a b'}]", r"pods\[0\]\.labels is not a valid label selector"),
        ("pods: {start: 2s}", r"pods must be a list"),
        ("pods: [2s]", r"pods\[0\] must be a mapping with namespaces, labels"),
        ("pods: [{message: [a]}]", r"pods\[0\]\.message must be a string"),
        ("pods: [{crash: {out-of-memory: perhaps}}]", r"must be true or false"),
        ("images: [{error: no}]", r"line 1: images\[0\] needs name"),
        ("nodes: [{for: 1m}]", r"nodes\[0\] needs either at \(once\) or every"),
        ("nodes: [{at: 1m, every: 1m}]", r"nodes\[0\] needs either at \(once\) or every"),
        ("nodes: [{every: 0}]", r"nodes\[0\]\.every must be greater than zero"),
        ("nodes: [{at: 1s, what: both}]", r"must be agent \(silent\) or machine \(off\)"),
        ("[a]", r"line 1: this must be a mapping with seed, pods, images, nodes"),
        ("pods:\n  - a: [\n", r"line 3: invalid YAML"),
        ("seed: 1\n---\nseed: 2\n", r"invalid YAML"),
        ("seed: -1", r"seed must be a whole number of 0 or more"),
        ("[" * 500, r"invalid YAML"),
        (r'seed: "\UFFFFFFFF"', r"line 1: invalid YAML: number out of range"),
    ],
)
def test_a_mistake_is_told_with_its_line(text: str, told: str) -> None:
    with pytest.raises(ConfigError, match=told) as caught:
        parse_scenario(text)
    assert "\n" not in str(caught.value)


def test_all_mistakes_of_a_file_are_told_at_once(tmp_path: Path) -> None:
    path = tmp_path / "scenario.yaml"
    path.write_text("seed: x\npods:\n- start: y\n- finish: z\n")
    with pytest.raises(ConfigError, match=r"scenario\.yaml: line 1: .*; line 3: .*; line 4: "):
        load_scenario(path)


def test_a_file_that_cannot_be_read_is_told_in_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"cannot read .*: No such file"):
        load_scenario(tmp_path / "none")
    (tmp_path / "binary").write_bytes(b"\xff\xfe")
    with pytest.raises(ConfigError, match="UTF-8"):
        load_scenario(tmp_path / "binary")
    (tmp_path / "large").write_bytes(b"#" * (2 << 20))
    with pytest.raises(ConfigError, match="exceeds the maximum size"):
        load_scenario(tmp_path / "large")


def test_what_a_pod_says_of_itself_replaces_what_the_scenario_says() -> None:
    conduct = Conduct(start=Wait(5), crash=Crash(Wait(1)))
    said = {"sim.podlife.dev/crash": "{after: 3s, code: 9}", "other.example/crash": "x"}
    assert annotated(conduct, said, "app") == Conduct(start=Wait(5), crash=Crash(Wait(3), code=9))


def test_what_a_pod_says_of_some_containers_is_not_for_the_others() -> None:
    said = {"sim.podlife.dev/start": "3s", "sim.podlife.dev/containers": "[app, db]"}
    assert annotated(Conduct(), said, "app") == Conduct(start=Wait(3))
    assert annotated(Conduct(), said, "proxy") == Conduct()


@pytest.mark.parametrize(
    ("annotation", "text", "told"),
    [
        ("strat", "2s", r"unknown annotation sim\.podlife\.dev/strat: choose from start, crash"),
        ("start", "soon", r"annotation sim\.podlife\.dev/start: start must be a duration"),
        ("crash", "{", r"annotation sim\.podlife\.dev/crash: .*invalid YAML"),
        ("crash", "[" * 1001, r"annotation sim\.podlife\.dev/crash exceeds 1000 characters"),
    ],
)
def test_an_annotation_that_says_nothing_sensible_is_told_by_its_name(
    annotation: str, text: str, told: str
) -> None:
    with pytest.raises(ConfigError, match=told):
        annotated(Conduct(), {f"sim.podlife.dev/{annotation}": text}, "app")
