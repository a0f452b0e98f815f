"""The policy of roles and bindings, as it follows the store."""

from __future__ import annotations

from typing import Any

import pytest

from podlife.api.codec import decode_object, encode
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.authz import Attributes, RbacPolicy, RoleRef, RuleSet
from podlife.apiserver.storage import Delete, Event, EventType, Key, MemoryStore, Put, Record

GROUP = "rbac.authorization.k8s.io"
PODS = [{"verbs": ["get"], "apiGroups": [""], "resources": ["pods"]}]
JANE = UserInfo("jane", groups=("people", "system:authenticated"))
GET = Attributes("get", "", "pods", namespace="a")


class World:
    def __init__(self) -> None:
        self.store = MemoryStore()
        self.policy = RbacPolicy(self.store)

    async def put(self, plural: str, name: str, namespace: str = "", **fields: Any) -> None:
        key = Key(f"{plural}.{GROUP}", namespace, name)
        record = self.store.get(key)
        body = encode({"metadata": {"name": name}, **fields})
        await self.store.commit(Put(key, lambda _: body, record.revision if record else 0))

    async def bind(self, name: str, role: str, *subjects: str, namespace: str = "") -> None:
        kind, _, role = role.rpartition("/")
        found = [dict(zip(("kind", "name", "namespace"), each.split("/"), strict=False)) for each in subjects]
        plural = "rolebindings" if namespace else "clusterrolebindings"
        ref = {"kind": kind or "ClusterRole", "name": role}
        await self.put(plural, name, namespace, roleRef=ref, subjects=found)

    async def delete(self, plural: str, name: str, namespace: str = "") -> None:
        key = Key(f"{plural}.{GROUP}", namespace, name)
        record = self.store.get(key)
        assert record is not None
        value = record.value
        await self.store.commit(Delete(key, lambda _: value, record.revision))

    def may(self, user: UserInfo = JANE, asked: Attributes = GET) -> bool:
        return self.policy.authorize(user, asked).allowed


@pytest.fixture
async def world() -> World:
    world = World()
    await world.put("clusterroles", "reader", rules=PODS)
    return world


@pytest.mark.parametrize("subject", ["User/jane", "Group/people", "Group/system:authenticated"])
async def test_a_binding_of_the_cluster_applies_everywhere(world: World, subject: str) -> None:
    assert not world.may()
    await world.bind("b", "reader", "User/other", subject)
    assert world.may()
    assert world.may(asked=Attributes("get", "", "pods"))
    kind, _, name = subject.partition("/")
    reason = f'RBAC: allowed by ClusterRoleBinding "b" of ClusterRole "reader" to {kind} "{name}"'
    assert world.policy.authorize(JANE, GET).reason == reason


async def test_a_binding_of_a_namespace_applies_there(world: World) -> None:
    await world.put("roles", "local", "a", rules=PODS)
    await world.bind("b", "Role/local", "User/jane", namespace="a")
    assert world.may()
    assert not world.may(asked=Attributes("get", "", "pods", namespace="b"))
    assert not world.may(asked=Attributes("get", "", "pods"))
    reason = 'RBAC: allowed by RoleBinding "b/a" of Role "local" to User "jane"'
    assert world.policy.authorize(JANE, GET).reason == reason


@pytest.mark.parametrize(
    ("subject", "account"), [("ServiceAccount/robot", "a"), ("ServiceAccount/robot/b", "b")]
)
async def test_a_service_account_is_of_the_namespace_of_its_binding_or_its_own(
    world: World, subject: str, account: str
) -> None:
    await world.bind("b", "reader", subject, namespace="a")
    for namespace in ("a", "b"):
        user = UserInfo(f"system:serviceaccount:{namespace}:robot")
        assert world.may(user) is (namespace == account)


async def test_every_change_applies_to_the_next_decision(world: World) -> None:
    await world.bind("b", "reader", "User/jane")
    assert world.may()
    await world.put("clusterroles", "reader", rules=[])
    assert not world.may()
    await world.put("clusterroles", "reader", rules=PODS)
    assert world.may()
    await world.bind("b", "reader", "User/joe")
    assert not world.may()
    assert world.may(UserInfo("joe"))
    await world.delete("clusterrolebindings", "b")
    assert not world.may(UserInfo("joe"))


async def test_what_was_stored_before_applies_too(world: World) -> None:
    await world.bind("b", "reader", "User/jane", namespace="a")
    assert RbacPolicy(world.store).authorize(JANE, GET).allowed


async def test_a_binding_to_a_role_that_is_gone_says_so(world: World) -> None:
    await world.bind("b", "reader", "User/jane")
    await world.delete("clusterroles", "reader")
    decision = world.policy.authorize(JANE, GET)
    missing = f'clusterrole.{GROUP} "reader" not found'
    assert (decision.allowed, decision.reason) == (False, f"RBAC: {missing}")
    await world.bind("c", "Role/local", "Group/people", namespace="a")
    reason = world.policy.authorize(JANE, GET).reason
    assert reason == f'RBAC: [{missing}, role.{GROUP} "local" not found]'


async def test_a_message_names_a_bounded_number_of_missing_roles(world: World) -> None:
    for number in range(100):
        await world.bind(f"b{number:03}", f"gone-{number}", "User/jane")
    assert world.policy.authorize(JANE, GET).reason.count("not found") == 20


async def test_rules_are_those_of_all_roles_each_once(world: World) -> None:
    user = UserInfo("jane", groups=("people",))
    await world.bind("b", "reader", "User/jane", "Group/people")
    assert world.policy.rules_for(user, "a") == (PODS, 0, "")
    await world.bind("b", "reader", "User/jane", namespace="a")
    await world.bind("c", "gone", "User/jane", namespace="a")
    assert world.policy.rules_for(user, "a") == (PODS, 0, f'clusterrole.{GROUP} "gone" not found')


async def test_a_list_of_rules_is_bounded(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("podlife.apiserver.authz.rbac._MOST_LISTED_BYTES", 1000)
    for number in range(30):
        await world.put("clusterroles", f"r{number}", rules=PODS)
        await world.bind(f"b{number}", f"r{number}", "User/joe")
    await world.bind("c", "gone", "User/joe")
    rules, omitted, missing = world.policy.rules_for(UserInfo("joe"), "a")
    assert len(rules) + omitted == 30
    assert 0 < len(rules) < 20
    assert missing, "all bindings are still looked at"


async def test_bootstrap_objects_apply_until_they_are_stored_and_deleted(world: World) -> None:
    asked = Attributes("get", path="/apis")
    assert world.may(asked=asked)
    await world.bind("system:discovery", "system:discovery", "Group/system:authenticated")
    assert world.may(asked=asked)
    await world.delete("clusterrolebindings", "system:discovery")
    assert not world.may(asked=asked)


async def test_what_a_namespace_has_left_behind_is_forgotten(world: World) -> None:
    for number in range(10):
        await world.bind("b", "reader", "User/jane", namespace=f"n{number}")
        await world.delete("rolebindings", "b", f"n{number}")
    assert len(world.policy._scopes) < 5


async def test_a_role_is_looked_at_once_whatever_the_number_of_its_bindings(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(20):
        await world.bind(f"b{number}", "reader", "User/jane", "Group/people", namespace="a")
    looks: list[Attributes] = []
    allows = RuleSet.allows

    def counted(rules: RuleSet, asked: Attributes) -> bool:
        if any("pods" in rule.get("resources", ()) for rule in rules.rules):
            looks.append(asked)
        return allows(rules, asked)

    monkeypatch.setattr(RuleSet, "allows", counted)
    asked = Attributes("delete", "", "pods", namespace="a")
    assert not world.may(asked=asked)
    assert world.policy.missing_permissions(JANE, "a", [asked]) == [asked]
    assert len(looks) == 2


async def test_a_role_that_changes_while_it_is_compiled_is_not_brought_back(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    await world.bind("b", "reader", "User/jane")

    def decode_late(value: bytes) -> Any:
        monkeypatch.undo()
        ref = RoleRef("ClusterRole", "", "reader")
        record = Record(Key(f"clusterroles.{GROUP}", "", "reader"), 99, b'{"rules":[]}')
        world.policy._follow_role(Event(EventType.MODIFIED, record, None))
        assert world.policy.rules_of(ref) is not None
        return decode_object(value)

    monkeypatch.setattr("podlife.apiserver.authz.rbac.decode_object", decode_late)
    assert world.may(), "decided by the role as it was"
    assert not world.may()


async def test_a_user_is_costly_by_its_roles_each_once_or_by_its_bindings(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("large", "larger"):
        rules = [{**PODS[0], "resourceNames": ["x" * 150_000]}]
        await world.put("clusterroles", name, rules=rules)
    for number in range(3):
        await world.bind(f"b{number}", "large", "User/jane", namespace="a")
    assert not world.policy.is_costly(JANE, "a")
    await world.bind("c", "larger", "User/jane", namespace="a")
    assert world.policy.is_costly(JANE, "a")
    assert not world.policy.is_costly(JANE, "b")
    for number in range(20):
        await world.bind(f"d{number}", "gone", "User/joe")
    assert not world.policy.is_costly(UserInfo("joe"), "")
    monkeypatch.setattr("podlife.apiserver.authz.rbac._GRANT_BYTES", 16 * 1024)
    assert world.policy.is_costly(UserInfo("joe"), "")
