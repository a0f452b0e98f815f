"""What a policy file says, and what is said about one that is wrong: where, what, and what to write instead."""

from __future__ import annotations

import os
import zoneinfo
from datetime import time
from pathlib import Path

import pytest

from podlife.api.selectors import parse_label_selector
from podlife.errors import ConfigError
from podlife.podgc import Reason
from podlife.podgc.policy.model import (
    Guards,
    Keep,
    KeepOrder,
    OwnerWait,
    Per,
    Policy,
    Protection,
    Rule,
    Selector,
    Window,
)
from podlife.podgc.policy.parse import PolicyError, load_policy, read_policy, read_policy_bytes
from tests.unit.podgc.policy.parse.mistakes import LIMIT, MISTAKES, rule

HEAD = "apiVersion: podlife.dev/v1\nkind: PodGCPolicy\n"

WHOLE = """
upstream:
  terminated: {enabled: true, threshold: 500}
  outOfService: {enabled: false}
  orphaned: {quarantine: 1m30s}
protect:
  namespaces: [kube-system, "prod-*"]
  labels: ["podlife.dev/keep=true", "tier in (gold)"]
  annotations: ["example.com/hold", "example.com/state=frozen"]
rules:
  - name: evicted
    select:
      phase: [Failed]
      reason: [Evicted, "OutOf*"]
    ttlAfterFinished: 10m
  - name: jobs
    select:
      namespaces: {names: ["team-*"], labels: "env!=prod"}
      labels: "app in (a, b)"
      ownerKind: [Job, none]
      node: ["gpu-*"]
      exitCode: [1, 137]
    exclude:
      - labels: "debug=true"
    keep: {count: 5, per: owner, orderBy: creation}
    ttlAfterFinished: 1d
    collectWhen: any
    waitForOwner: 10m
    enabled: false
  - name: stuck
    select: {namespaces: [ci]}
    exclude: {node: [n1]}
    maxTerminating: 15m
guards:
  perMinute: 100
  perPass: 500
  shareOfNamespace: 50%
  shareOfCluster: 12.5%
  shareAtLeast: 3
  windows:
    - {days: [Mon-Wed, Sat], from: "22:00", to: "06:00", timezone: Europe/Berlin}
    - {days: [Sat-Mon], to: "24:00"}
  observeOnly: true
"""


def mistakes(text: str) -> list[str]:
    """Without the name of the file."""
    with pytest.raises(PolicyError) as caught:
        read_policy(HEAD + text, "p.yaml")
    lines = str(caught.value).splitlines()
    assert all(line.startswith("p.yaml:") for line in lines)
    return [line.removeprefix("p.yaml:") for line in lines]


def test_everything_that_can_be_said_is_read() -> None:
    jobs = Selector(
        namespaces=("team-*",),
        namespace_labels=parse_label_selector("env!=prod"),
        labels=parse_label_selector("app in (a,b)"),
        owner_kinds=("Job", "none"),
        nodes=("gpu-*",),
        exit_codes=frozenset((1, 137)),
    )
    assert read_policy(HEAD + WHOLE, "p.yaml") == Policy(
        rules=(
            Rule(
                "evicted",
                Selector(phases=("Failed",), reasons=("Evicted", "OutOf*")),
                ttl_seconds=600,
                line=13,
            ),
            Rule(
                "jobs",
                jobs,
                (Selector(labels=parse_label_selector("debug=true")),),
                Keep(5, Per.OWNER, KeepOrder.CREATION),
                86_400,
                is_either=True,
                wait_for_owner=OwnerWait(600),
                is_on=False,
                line=18,
            ),
            Rule(
                "stuck",
                Selector(namespaces=("ci",)),
                (Selector(nodes=("n1",)),),
                max_terminating_seconds=900,
                line=32,
            ),
        ),
        protection=Protection(
            ("kube-system", "prod-*"),
            (parse_label_selector("podlife.dev/keep=true"), parse_label_selector("tier in (gold)")),
            (("example.com/hold", None), ("example.com/state", "frozen")),
        ),
        guards=Guards(
            100,
            500,
            0.5,
            0.125,
            3,
            (
                Window(frozenset((0, 1, 2, 5)), time(22), time(6), "Europe/Berlin"),
                Window(frozenset((5, 6, 0))),
            ),
            True,
        ),
        collect=frozenset(Reason) - {Reason.OUT_OF_SERVICE},
        threshold=500,
        quarantine_seconds=90,
    )


def test_a_file_that_says_nothing_more_is_upstreams_policy() -> None:
    assert read_policy(HEAD, "p") == Policy()
    assert read_policy(HEAD + "rules: []\n", "p") == Policy()


def test_json_is_a_policy_too() -> None:
    text = '{"apiVersion": "podlife.dev/v1", "kind": "PodGCPolicy", "rules": [{"name": "a", "keep": {"count": 0}}]}'
    assert read_policy(text, "p").rules == (Rule("a", keep=Keep(0), line=1),)


@pytest.mark.parametrize(("text", "told"), MISTAKES)
def test_what_is_wrong_is_told_with_its_place_and_what_to_write(text: str, told: str) -> None:
    found = mistakes(text)
    assert any(line.startswith(told) for line in found), found


def test_phases_that_have_not_ended_go_with_a_limit_for_terminating_pods() -> None:
    text = rule("maxTerminating: 1h, select: {phase: [Running]}")
    assert read_policy(HEAD + text, "p").rules[0].selector.phases == ("Running",)


def test_two_rules_of_one_name_are_refused_with_both_lines() -> None:
    text = "rules:\n- {name: a, select: {node: [x]}, keep: {count: 1}}\n- {name: a, keep: {count: 1}}"
    assert mistakes(text) == ["5:10: duplicate rule name a, first in line 4"]


def test_a_rule_that_an_earlier_one_leaves_nothing_is_refused() -> None:
    text = "rules:\n- {name: all, keep: {count: 1}}\n- {name: b, select: {phase: [Failed]}, keep: {count: 1}}"
    (told,) = mistakes(text)
    assert told.startswith("5:3: rule b never applies: rule all in line 4 selects all of its pods: ")


@pytest.mark.parametrize("off", ["all", "b"])
def test_a_rule_that_is_off_takes_nothing_and_needs_nothing(off: str) -> None:
    text = "rules:\n- {name: all, keep: {count: 1}}\n- {name: b, select: {phase: [Failed]}, keep: {count: 1}}"
    read_policy(HEAD + text.replace(f"name: {off}", f"name: {off}, enabled: false"), "p")


@pytest.mark.parametrize("names", ["[prod-a]", "['prod-a*']", "{names: [prod-a], labels: a=b}"])
def test_a_rule_for_a_protected_namespace_is_refused_with_both_lines(names: str) -> None:
    text = (
        f"protect:\n  namespaces: ['prod-*']\nrules: [{{name: a, {LIMIT}, select: {{namespaces: {names}}}}}]"
    )
    (told,) = mistakes(text)
    assert told.startswith("5:")
    assert "rule a selects the protected namespace 'prod-a" in told
    assert told.endswith("line 4 protects 'prod-*'; remove one of the two")


def test_a_rule_for_more_than_what_is_protected_is_no_mistake() -> None:
    text = f"protect: {{namespaces: [prod-a]}}\nrules: [{{name: a, {LIMIT}, select: {{namespaces: ['prod-*']}}}}]"
    assert read_policy(HEAD + text, "p").rules[0].name == "a"


def test_all_mistakes_are_told_at_once_in_the_order_of_the_file() -> None:
    found = mistakes("guards: {perPass: 0, x: 1}\nrules: 3\nz: 1")
    assert [line.split(": ")[0] for line in found] == ["3:19", "3:22", "4:8", "5:1"]


def test_at_most_twenty_are_told_and_the_rest_counted() -> None:
    found = mistakes("\n".join(f"x{number}: 1" for number in range(23)))
    assert len(found) == 21
    assert found[-1] == " and 3 more errors"


def test_apiversion_and_kind_must_be_there_and_right() -> None:
    with pytest.raises(ConfigError) as caught:
        read_policy("apiVersion: v1\nrules: []", "p")
    assert str(caught.value).splitlines() == [
        "p:1:1: missing required field kind: write kind: PodGCPolicy",
        "p:1:13: unsupported apiVersion 'v1': expected podlife.dev/v1",
    ]


@pytest.mark.parametrize("text", ["", "# nothing\n", "---\n"])
def test_an_empty_file_is_no_policy(text: str) -> None:
    with pytest.raises(PolicyError, match=r"^p:1:"):
        read_policy(text, "p")


def test_a_system_without_time_zones_is_told_to_get_them(monkeypatch: pytest.MonkeyPatch) -> None:
    def nowhere(name: str) -> None:
        raise zoneinfo.ZoneInfoNotFoundError(name)

    monkeypatch.setattr(zoneinfo, "ZoneInfo", nowhere)
    monkeypatch.setattr(zoneinfo, "available_timezones", set)
    for window in ("{timezone: Europe/Berlin}", "{days: [Mon]}"):
        (told,) = mistakes(f"guards: {{windows: [{window}]}}")
        assert "this system has no time zones at all; install the package tzdata" in told


# Files


def test_a_file_is_read_through_the_link_that_a_config_map_makes(tmp_path: Path) -> None:
    (tmp_path / "..data").mkdir()
    (tmp_path / "..data" / "policy.yaml").write_text(HEAD)
    (tmp_path / "policy.yaml").symlink_to("..data/policy.yaml")
    assert load_policy(tmp_path / "policy.yaml") == Policy()


def test_a_byte_order_mark_is_no_mistake() -> None:
    assert read_policy_bytes(b"\xef\xbb\xbf" + HEAD.encode(), "p") == Policy()


def refused(path: Path) -> str:
    with pytest.raises(PolicyError) as caught:
        load_policy(path)
    return str(caught.value)


def test_what_is_no_file_or_none_of_ours_is_refused(tmp_path: Path) -> None:
    assert refused(tmp_path) == f"{tmp_path}: is a directory"
    gone = tmp_path / "gone"
    assert refused(gone) == f"{gone}: cannot read file: No such file or directory"
    # Nobody writes to it: it must not be waited for.
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    assert refused(pipe) == f"{pipe}: not a regular file"
    loop = tmp_path / "loop"
    loop.symlink_to("loop")
    assert refused(loop).startswith(f"{loop}: cannot read file: Too many levels of symbolic links")
    assert "invalid file name" in refused(Path("a\0b"))


def test_a_file_that_is_too_large_is_refused_unread(tmp_path: Path) -> None:
    large = tmp_path / "large"
    large.write_text(HEAD + "#" * (1 << 20))
    assert refused(large) == f"{large}: file exceeds the maximum size (1 MiB)"


def test_a_file_in_another_encoding_is_refused_with_its_place(tmp_path: Path) -> None:
    latin = tmp_path / "latin"
    latin.write_bytes(b"a: b\n# gr\xfc\xdfe\n")
    assert refused(latin) == f"{latin}:2:5: invalid UTF-8: save the file as UTF-8"


def test_aliases_upon_aliases_are_refused_before_anything_is_made_of_them() -> None:
    lines = ["a0: &a0 [x, x]", *(f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 30))]
    assert any("replace *a0 with its value" in line for line in mistakes("\n".join(lines)))


def test_what_is_more_than_a_policy_ever_has_is_refused() -> None:
    many = "".join(f"- {{name: r{number}, keep: {{count: 1}}}}\n" for number in range(1001))
    assert mistakes(f"rules:\n{many}") == [
        "4:1: rules: 1001 rules exceed the maximum (1000): use patterns for many names"
    ]
    (told,) = mistakes(f"x: [{'a,' * 50_000}]")
    assert told.endswith("policy exceeds the maximum of 50000 values")
