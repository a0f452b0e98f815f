"""`podlife gc policy`: what it prints of a policy, where, and how it ends."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from podlife.api.codec import Object
from podlife.cli.app import app
from podlife.cli.commands.gc.options import PolicyOptions
from podlife.errors import ConfigError
from podlife.podgc.policy.parse import load_policy
from tests.kit.objects import ended, pod, stored
from tests.kit.real_parts import ROOT

HEAD = "apiVersion: podlife.dev/v1\nkind: PodGCPolicy\n"
RULE = "rules:\n- {name: failed, select: {phase: [Failed]}, ttlAfterFinished: 10m}\n"


@pytest.fixture
def good(tmp_path: Path) -> Path:
    return written(tmp_path / "good.yaml", RULE)


@pytest.fixture
def bad(tmp_path: Path) -> Path:
    return written(tmp_path / "bad.yaml", "rule: []\nguards: {perPass: 0}\n")


def written(path: Path, text: str) -> Path:
    path.write_text(HEAD + text)
    return path


def run(*arguments: str | Path, given: str = "") -> tuple[int, str, str]:
    """Exit code, standard output, standard error; what is raised goes on."""
    result = CliRunner().invoke(app, ["gc", "policy", *map(str, arguments)], input=given)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.exit_code, result.stdout, result.stderr


def test_good_files_have_a_line_each_and_bad_ones_a_line_for_each_mistake(good: Path, bad: Path) -> None:
    code, said, complained = run("check", good, bad, "-", given=HEAD + "guards: {observeOnly: true}\n")
    assert code == 1
    assert said == f"{good}: valid: 1 rule\n-: valid: 0 rules; observe-only\n"
    first, second = complained.splitlines()
    assert first == f"{bad}:3:1: unknown field rule: did you mean rules?"
    assert second.startswith(f"{bad}:4:19: guards.perPass: must be at least 1, got 0: ")


def test_files_that_are_all_good_end_with_0(good: Path) -> None:
    assert run("check", good)[0] == 0


def test_what_comes_in_on_standard_input_is_called_so() -> None:
    code, _, complained = run("check", "-", given="a: 1\n")
    assert code == 1
    assert complained.splitlines()[-1].startswith("<stdin>:1:1: ")


def test_rules_that_are_off_are_counted(tmp_path: Path) -> None:
    path = written(tmp_path / "p.yaml", RULE.replace("name: failed", "name: failed, enabled: false"))
    assert run("check", path)[1] == f"{path}: valid: 1 rule, 1 of them off\n"


def test_a_policy_is_shown_in_words_and_in_full(good: Path, tmp_path: Path) -> None:
    words = "rule failed: ended pods in phase Failed in every namespace go 10m after their end"
    for arguments in ((good,), ("--policy", good)):
        code, said, _ = run("show", *arguments)
        assert code == 0
        assert words in said.splitlines()
    as_json = json.loads(run("show", good, "-o", "json")[1])
    as_yaml = run("show", good, "-o", "yaml")[1]
    assert yaml.safe_load(as_yaml) == as_json
    assert as_json["upstream"]["terminated"] == {"enabled": True, "threshold": 12_500}
    again = tmp_path / "again.yaml"
    again.write_text(as_yaml)
    assert load_policy(again).rules[0].ttl_seconds == 600


def test_what_the_file_leaves_to_the_flags_is_the_flags(good: Path) -> None:
    flags = ("--terminated-pod-gc-threshold", "7", "--collect", "terminated,orphaned")
    upstream = json.loads(run("show", good, *flags, "-o", "json")[1])["upstream"]
    assert upstream["terminated"] == {"enabled": True, "threshold": 7}
    assert [key for key, value in upstream.items() if value["enabled"]] == ["terminated", "orphaned"]


def test_the_file_may_be_named_by_the_environment(good: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PODLIFE_GC_POLICY", str(good))
    assert "rule failed: " in run("show")[1]


def test_without_a_file_upstreams_policy_is_shown() -> None:
    code, said, _ = run("show")
    assert code == 0
    assert [line.partition(":")[0] for line in said.splitlines()] == [
        "upstream/terminated",
        "upstream/out-of-service",
        "upstream/orphaned",
        "upstream/unscheduled",
    ]


@pytest.mark.parametrize("command", [("show",), ("test", "--pods", "/dev/null")])
def test_a_policy_with_mistakes_is_neither_shown_nor_tried(command: tuple[str, ...], bad: Path) -> None:
    code, said, complained = run(*command, bad)
    assert (code, said) == (1, "")
    assert f"{bad}:3:1: unknown field rule: did you mean rules?" in complained.splitlines()


def test_who_acts_by_a_policy_with_mistakes_is_told_of_all_of_them(bad: Path) -> None:
    result = CliRunner().invoke(app, ["gc", "sweep", "--yes", "--policy", str(bad)])
    assert result.exit_code == 1
    assert len(result.stderr.splitlines()) == 2


def test_a_file_never_collects_what_the_flags_leave_out(tmp_path: Path) -> None:
    text = "upstream: {terminated: {enabled: false}, unscheduled: {enabled: true}}\n"
    path = written(tmp_path / "p.yaml", text)
    settings = PolicyOptions(policy=path, collect=["orphaned,terminated"]).settings()
    assert settings.collect == {"orphaned"}


def test_the_schema_is_printed() -> None:
    published = (ROOT / "docs" / "policy.schema.json").read_text(encoding="utf-8")
    assert run("schema")[1] == published


# Trying it out


def failed(name: str, at: datetime) -> Object:
    made = pod(name, nodeName="n1", status={"phase": "Failed", "containerStatuses": [ended(1, at)]})
    return {"kind": "Pod", **stored(made, "team", creationTimestamp="2030-01-01T00:00:00Z")}


PODS = [
    failed(name, datetime(2030, 1, 1, 1, minute, tzinfo=UTC)) for name, minute in (("old", 0), ("new", 30))
]
NOW = ("--now", "2030-01-01T01:35:00Z")


@pytest.fixture
def pods(tmp_path: Path) -> Path:
    path = tmp_path / "pods.json"
    path.write_text(json.dumps({"kind": "List", "items": PODS}))
    return path


def test_what_would_go_is_shown_with_its_rule(good: Path, pods: Path) -> None:
    code, said, _ = run("test", good, "--pods", pods, *NOW, "-o", "json")
    assert code == 0
    (victim,) = json.loads(said)["victims"]
    assert (victim["name"], victim["rule"], victim["reason"]) == ("old", "failed", "expired")
    table = run("test", good, "--pods", pods, *NOW)[1]
    assert "1 pod to collect now" in table


def test_what_guards_hold_back_is_told_and_is_on_the_list_all_the_same(good: Path, pods: Path) -> None:
    good.write_text(f"{HEAD}{RULE}guards: {{shareOfNamespace: 1%, shareAtLeast: 0}}\n")
    shown = json.loads(run("test", good, "--pods", pods, *NOW, "-o", "json")[1])
    assert shown["victims"] == []
    assert len(shown["heldBack"]) == 1
    assert run("test", good, "--pods", pods, *NOW, "-o", "list")[1] == "team/old failed\n"


@pytest.mark.parametrize("form", ["PodList", "List", "YAML", "one"])
def test_pods_come_in_any_form_that_kubectl_prints(form: str, good: Path) -> None:
    bare = [{key: value for key, value in each.items() if key != "kind"} for each in PODS]
    text = {
        "PodList": json.dumps({"kind": "PodList", "items": bare}),
        "List": json.dumps({"kind": "List", "items": PODS}),
        "YAML": yaml.safe_dump({"kind": "List", "items": PODS}),
        "one": json.dumps(PODS[0]),
    }[form]
    assert run("test", good, "--pods", "-", *NOW, "-o", "list", given=text)[1] == "team/old failed\n"


def test_a_pod_that_is_in_two_files_counts_once(good: Path, pods: Path) -> None:
    shown = run("test", good, "--pods", pods, "--pods", pods, *NOW)[1]
    assert "1 pod to collect now" in shown


@pytest.mark.parametrize(
    "arguments", [("show", ""), ("test", "", "--pods", "-"), ("test", "-", "--expect", "")]
)
def test_the_name_of_a_variable_that_is_not_set_is_no_other_policy_and_no_success(
    arguments: tuple[str, ...],
) -> None:
    code, said, complained = run(*arguments)
    assert (code, said) == (2, "")
    assert "is empty: give it a value" in complained


def test_what_is_not_in_the_file_is_told_and_taken_to_be_there(good: Path, pods: Path) -> None:
    complained = run("test", good, "--pods", pods, *NOW)[2]
    assert complained.splitlines() == [
        f"podlife: no nodes in {pods}: assuming that the nodes of all pods exist and are ready",
        f"podlife: no namespaces in {pods}: assuming that those of all pods exist, without labels",
    ]


def test_namespaces_in_the_file_count_with_their_labels(tmp_path: Path, pods: Path) -> None:
    rule = RULE.replace("phase: [Failed]", "namespaces: {labels: clean=yes}")
    policy = written(tmp_path / "labels.yaml", rule)
    others = tmp_path / "others.json"
    for value, gone in (("yes", "team/old failed\n"), ("no", "")):
        namespace = {"kind": "Namespace", "metadata": {"name": "team", "labels": {"clean": value}}}
        others.write_text(json.dumps({"items": [namespace, {"kind": "Node", "metadata": {"name": "n1"}}]}))
        code, said, complained = run("test", policy, "--pods", pods, "--pods", others, *NOW, "-o", "list")
        assert (code, said, complained) == (0, gone, "")


def expecting(text: str, tmp_path: Path, good: Path, pods: Path) -> tuple[int, str]:
    expected = tmp_path / "expected.txt"
    expected.write_text(text)
    code, said, _ = run("test", good, "--pods", pods, *NOW, "--expect", expected)
    return code, said.replace(str(expected), "expected.txt")


def test_what_is_as_expected_ends_with_0(tmp_path: Path, good: Path, pods: Path) -> None:
    listed = run("test", good, "--pods", pods, *NOW, "-o", "list")[1]
    for text in (listed, "# by any rule\n\nteam/old   # the one of yesterday\n"):
        assert expecting(text, tmp_path, good, pods) == (
            0,
            "As expected by expected.txt: 1 pod would be deleted.\n",
        )


def test_what_is_not_as_expected_is_shown_and_ends_with_1(tmp_path: Path, good: Path, pods: Path) -> None:
    assert expecting("", tmp_path, good, pods) == (1, "+ team/old failed\n")
    assert expecting("team/old other\n", tmp_path, good, pods) == (1, "- team/old other\n+ team/old failed\n")
    assert expecting("team/old\nteam/new\n", tmp_path, good, pods) == (1, "- team/new\n")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        (
            "a b c\n",
            "expected.txt:1:1: invalid line 'a b c': expected NAMESPACE/NAME [RULE]",
        ),
        ("\nteam/a\nteam/a x\n", "expected.txt:3:1: duplicate pod team/a"),
    ],
)
def test_an_expectation_that_cannot_be_read_is_one_line(
    text: str, told: str, tmp_path: Path, good: Path, pods: Path
) -> None:
    with pytest.raises(ConfigError) as caught:
        expecting(text, tmp_path, good, pods)
    assert str(caught.value) == f"{tmp_path}/{told}"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "has no objects: expected the output of `kubectl get pods -A -o json`"),
        ("[", "is neither JSON nor YAML: "),
        ('{"items": []}', "no pods found: expected the output of `kubectl get pods -A -o json`"),
        ('{"kind": "Pod", "metadata": {"name": 3}}', "invalid object: "),
        ('{"kind": "Pod"}', "invalid object: "),
        ('{"kind": "List", "items": [3]}', "no pods found: "),
    ],
)
def test_pods_that_cannot_be_read_are_one_line(text: str, told: str, good: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        run("test", good, "--pods", "-", given=text)
    assert told in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_time_that_is_none_is_a_wrong_use(good: Path) -> None:
    code, _, complained = run("test", good, "--now", "tomorrow")
    assert code == 2
    assert "'tomorrow': expected RFC 3339, such as 2030-01-01T00:00:00Z" in " ".join(complained.split())
