"""Which rule of an audit policy applies to a request, and errors for invalid files."""

from __future__ import annotations

from pathlib import Path

import pytest

from podlife.apiserver.audit import DEFAULT_POLICY, AuditPolicy, Level, load_policy, read_policy
from podlife.apiserver.audit.log_backend import policy_of
from podlife.apiserver.authn import ANONYMOUS, UserInfo
from podlife.apiserver.authz import Attributes
from podlife.apiserver.settings import ApiServerSettings
from podlife.errors import ConfigError
from tests.kit.real_parts import ROOT

JANE = UserInfo("jane", groups=("people", "system:authenticated"))
HEAD = "apiVersion: audit.k8s.io/v1\nkind: Policy\n"


def policy(rule: str) -> AuditPolicy:
    return read_policy(f"{HEAD}rules: [{rule}]".encode(), "policy.yaml")


def is_recorded(rule: str, asked: Attributes, user: UserInfo | None = JANE) -> bool:
    return policy(rule).config(user, asked).level is not Level.NONE


def pods(verb: str = "delete", subresource: str = "", **more: str) -> Attributes:
    namespace, name = more.get("namespace", "default"), more.get("name", "web")
    path = f"/api/v1/namespaces/{namespace}/pods/{name}"
    return Attributes(verb, "", "pods", subresource, namespace, name, path)


@pytest.mark.parametrize(
    ("rule", "expected"),
    [
        ("{level: Metadata}", True),
        ("{level: Metadata, users: [jane]}", True),
        ("{level: Metadata, users: [joe]}", False),
        ("{level: Metadata, userGroups: [people, others]}", True),
        ("{level: Metadata, userGroups: [others]}", False),
        ("{level: Metadata, verbs: [delete]}", True),
        ("{level: Metadata, verbs: [create]}", False),
        ("{level: Metadata, namespaces: [default]}", True),
        ('{level: Metadata, namespaces: [""]}', False),
        ('{level: Metadata, resources: [{group: ""}]}', True),
        ("{level: Metadata, resources: [{group: apps}]}", False),
        ('{level: Metadata, resources: [{group: "", resources: [pods]}]}', True),
        ('{level: Metadata, resources: [{group: "", resources: ["*"]}]}', True),
        ('{level: Metadata, resources: [{group: "", resources: [pods/status]}]}', False),
        ('{level: Metadata, resources: [{group: "", resources: ["pods/*"]}]}', True),
        ('{level: Metadata, resources: [{group: "", resources: ["*/status"]}]}', False),
        ('{level: Metadata, resources: [{group: "", resources: [pods], resourceNames: [web]}]}', True),
        ('{level: Metadata, resources: [{group: "", resources: [pods], resourceNames: [other]}]}', False),
        ('{level: Metadata, nonResourceURLs: ["*"]}', False),
    ],
)
def test_a_rule_matches_a_resource_as_upstream_does(rule: str, *, expected: bool) -> None:
    assert is_recorded(rule, pods()) is expected


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        ("pods", False),
        ("pods/status", True),
        ("*/status", True),
        ("*/log", False),
        ("pods/*", True),
        ("nodes/*", False),
        ("*", True),
    ],
)
def test_a_subresource_is_matched_only_where_it_is_named(resource: str, *, expected: bool) -> None:
    rule = f'{{level: Metadata, resources: [{{group: "", resources: ["{resource}"]}}]}}'
    assert is_recorded(rule, pods("update", "status")) is expected


@pytest.mark.parametrize(
    ("url", "path", "expected"),
    [
        ("/metrics", "/metrics", True),
        ("/metrics", "/metrics/x", False),
        ("/livez*", "/livez/ping", True),
        ("*", "/anything", True),
        ("/apis/*", "/apis", False),
    ],
)
def test_a_path_is_matched_whole_or_by_its_beginning(url: str, path: str, *, expected: bool) -> None:
    asked = Attributes("get", path=path)
    assert is_recorded(f'{{level: Metadata, nonResourceURLs: ["{url}"]}}', asked) is expected


def test_a_rule_for_users_matches_nobody_whose_name_is_not_known() -> None:
    assert not is_recorded("{level: Metadata, users: [jane]}", pods(), None)
    assert not is_recorded("{level: Metadata, userGroups: [people]}", pods(), None)
    assert is_recorded("{level: Metadata}", pods(), None)


def test_a_namespace_counts_as_being_in_itself() -> None:
    asked = Attributes("delete", "", "namespaces", namespace="team", name="team")
    assert is_recorded("{level: Metadata, namespaces: [team]}", asked)


def test_the_first_rule_that_matches_decides_and_without_one_nothing_is_recorded() -> None:
    found = policy("{level: None, verbs: [get]}, {level: Request, verbs: [get, delete]}")
    assert found.config(JANE, pods("get")).level is Level.NONE
    assert found.config(JANE, pods("delete")).level is Level.REQUEST
    assert found.config(JANE, pods("patch")).level is Level.NONE


def test_stages_that_the_policy_and_a_rule_omit_add_up() -> None:
    text = f"{HEAD}omitStages: [RequestReceived]\nomitManagedFields: true\nrules:\n"
    text += "- {level: Metadata, omitStages: [Panic], verbs: [get]}\n- {level: Metadata, omitManagedFields: false}"
    found = read_policy(text.encode(), "policy.yaml")
    first, second = (found.config(JANE, pods(verb)) for verb in ("get", "delete"))
    assert (first.omit_stages, first.omit_managed_fields) == (frozenset({"RequestReceived", "Panic"}), True)
    assert (second.omit_stages, second.omit_managed_fields) == (frozenset({"RequestReceived"}), False)


@pytest.mark.parametrize(
    ("text", "place", "problem"),
    [
        (f"{HEAD}rules: [{{level: Metdata}}]", "rules[0].level", "'Metdata'"),
        (f"{HEAD}rules: [{{level: None}}, {{verbs: [get]}}]", "rules[1]", "level"),
        (f"{HEAD}rules: [{{level: Metadata, verb: [get]}}]", "rules[0]", "`verb`"),
        (f"{HEAD}rules: [{{level: None, omitStages: [Never]}}]", "rules[0].omitStages", "'Never'"),
        (f"{HEAD}rules: []", "rules", "at least one"),
        ("apiVersion: v1\nkind: Policy\nrules: [{level: None}]", "", "audit.k8s.io/v1"),
        (f"{HEAD}rules: [{{level: None, nonResourceURLs: [metrics]}}]", "nonResourceURLs[0]", "'metrics'"),
        (
            f"{HEAD}rules: [{{level: None, nonResourceURLs: [/a], namespaces: [b]}}]",
            "nonResourceURLs",
            "both",
        ),
        (f"{HEAD}rules: [{{level: None, resources: [{{group: apps/v1}}]}}]", "resources[0].group", "apps/v1"),
        (f"{HEAD}rules: [{{level: None, resources: [{{resourceNames: [a]}}]}}]", "resourceNames", "requires"),
        (f"{HEAD}rules: [", "line 4", "parsing"),
        ("", "", "object"),
    ],
)
def test_a_file_that_is_no_policy_is_one_line_with_the_place(
    tmp_path: Path, text: str, place: str, problem: str
) -> None:
    file = tmp_path / "policy.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as refused:
        load_policy(file)
    message = str(refused.value)
    assert message.startswith(f"audit policy {file}: ")
    assert place in message
    assert problem in message
    assert "\n" not in message


def test_a_file_that_is_not_there_is_one_line(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="No such file"):
        load_policy(tmp_path / "absent.yaml")


@pytest.mark.parametrize(
    ("asked", "user", "level"),
    [
        (pods("get"), JANE, Level.NONE),
        (pods("delete"), JANE, Level.REQUEST),
        (pods("delete"), UserInfo("system:node:n", groups=("system:nodes",)), Level.REQUEST),
        (pods("delete"), UserInfo("system:kube-controller-manager"), Level.REQUEST),
        (pods("create", "eviction"), JANE, Level.REQUEST),
        (pods("create"), JANE, Level.METADATA),
        (pods("create"), UserInfo("system:kube-controller-manager"), Level.NONE),
        (pods("patch", "status"), JANE, Level.NONE),
        (Attributes("create", "", "events", namespace="default"), JANE, Level.NONE),
        (Attributes("update", "coordination.k8s.io", "leases", namespace="x", name="y"), JANE, Level.NONE),
    ],
)
def test_the_default_policy_records_what_people_write_and_every_deletion(
    asked: Attributes, user: UserInfo, level: Level
) -> None:
    assert read_policy(DEFAULT_POLICY.encode(), "default").config(user, asked).level is level


def test_the_page_has_the_default_policy_to_the_letter() -> None:
    assert f"```yaml\n{DEFAULT_POLICY}```" in (ROOT / "docs" / "audit.md").read_text(encoding="utf-8")


def test_a_sender_without_credentials_is_not_recorded_by_the_default_policy_and_else_as_upstream() -> None:
    default = policy_of(ApiServerSettings())
    assert default.config(None, pods()).level is Level.NONE
    assert default.config(ANONYMOUS, pods("create")).level is Level.NONE
    assert default.config(JANE, pods()).level is Level.REQUEST
    assert is_recorded("{level: Metadata}", pods(), None)
    assert not is_recorded('{level: Metadata, userGroups: ["system:unauthenticated"]}', pods(), None)
