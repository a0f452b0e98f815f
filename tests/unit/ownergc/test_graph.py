"""The graph of owners, event by event: what it holds, and what it says needs a look."""

from __future__ import annotations

import pytest

from podlife.ownergc.graph import Graph, GraphChanges, GraphNode
from podlife.ownergc.views import FOREGROUND, ORPHAN, ObjectIdentity, PartialMetadata, PartialOwnerReference

NOW = "2030-01-01T00:00:00Z"


def who(uid: str, namespace: str = "ns", *, kind: str = "ConfigMap", name: str = "") -> ObjectIdentity:
    return ObjectIdentity(kind, "v1", namespace, name or uid, uid)


def to(
    uid: str, *, block: bool | None = None, kind: str = "ConfigMap", name: str = ""
) -> PartialOwnerReference:
    return PartialOwnerReference("v1", kind, name or uid, uid, block_owner_deletion=block)


def see(
    graph: Graph,
    uid: str,
    *owners: PartialOwnerReference,
    namespace: str = "ns",
    finalizers: tuple[str, ...] = (),
    is_deleted: bool = False,
    kind: str = "ConfigMap",
) -> GraphChanges:
    deleted = NOW if is_deleted else None
    seen = PartialMetadata(uid, namespace, uid, "1", deleted, finalizers, owners)
    return graph.observe(who(uid, namespace, kind=kind), seen)


@pytest.fixture
def graph() -> Graph:
    return Graph()


def known(graph: Graph, uid: str) -> GraphNode:
    node = graph.get(uid)
    assert node is not None
    return node


def dependents(graph: Graph, uid: str) -> list[str]:
    return [each.identity.uid for each in graph.dependents(known(graph, uid))]


# Coming


def test_a_dependent_of_an_owner_that_was_seen_needs_no_look(graph: Graph) -> None:
    assert see(graph, "owner") == GraphChanges()
    assert see(graph, "child", to("owner")) == GraphChanges()
    assert dependents(graph, "owner") == ["child"]


def test_an_owner_that_was_never_seen_is_virtual_and_to_be_verified(graph: Graph) -> None:
    assert see(graph, "child", to("owner")) == GraphChanges(delete=["owner"])
    owner = known(graph, "owner")
    assert owner.is_virtual
    assert owner.identity == who("owner")
    # The second dependent need not ask again.
    assert see(graph, "other", to("owner")) == GraphChanges()


def test_an_owner_that_is_seen_after_its_dependent_is_virtual_no_more_and_keeps_it(graph: Graph) -> None:
    see(graph, "child", to("owner"))
    assert see(graph, "owner") == GraphChanges()
    owner = known(graph, "owner")
    assert not owner.is_virtual
    assert dependents(graph, "owner") == ["child"]


def test_an_owner_without_a_namespace_fits_dependents_of_any(graph: Graph) -> None:
    see(graph, "early", to("node", kind="Node"), namespace="one")
    assert see(graph, "node", namespace="", kind="Node") == GraphChanges()
    assert see(graph, "late", to("node", kind="Node"), namespace="two") == GraphChanges()


def test_an_owner_of_another_namespace_is_told_and_its_dependent_looked_at(graph: Graph) -> None:
    see(graph, "owner", namespace="theirs")
    changes = see(graph, "child", to("owner"))
    assert changes == GraphChanges(delete=["child"], invalid=[(who("child"), to("owner"))])


def test_an_owner_that_turns_out_to_be_in_another_namespace_is_told_then(graph: Graph) -> None:
    see(graph, "child", to("owner"))
    changes = see(graph, "owner", namespace="theirs")
    assert changes == GraphChanges(delete=["child"], invalid=[(who("child"), to("owner"))])


def test_a_reference_with_another_name_or_kind_than_its_owner_has_is_looked_at_but_not_told(
    graph: Graph,
) -> None:
    see(graph, "owner")
    assert see(graph, "a", to("owner", name="wrong")) == GraphChanges(delete=["a"])
    assert see(graph, "b", to("owner", kind="Secret")) == GraphChanges(delete=["b"])


def test_dependents_that_disagree_about_an_unseen_owner_are_looked_at(graph: Graph) -> None:
    see(graph, "a", to("owner"))
    assert see(graph, "b", to("owner"), namespace="other").delete == ["b"]
    # An owner that a cluster-scoped object named may be of a namespaced kind.
    see(graph, "cluster", to("there"), namespace="", kind="Node")
    assert see(graph, "c", to("there")).delete == ["c"]


# Changing


def test_nothing_needs_a_look_when_only_the_revision_has_changed(graph: Graph) -> None:
    see(graph, "owner")
    see(graph, "child", to("owner"))
    assert see(graph, "child", to("owner")) == GraphChanges()
    assert see(graph, "owner") == GraphChanges()


def test_a_reference_that_goes_or_stops_blocking_lets_its_owner_look_again(graph: Graph) -> None:
    for uid in ("a", "b", "c"):
        see(graph, uid)
    see(graph, "child", to("a", block=True), to("b", block=True), to("c"))
    assert see(graph, "child", to("b", block=False)).delete == ["a", "b"]
    assert (dependents(graph, "a"), dependents(graph, "b"), dependents(graph, "c")) == ([], ["child"], [])


def test_a_reference_that_comes_later_is_as_good_as_one_from_the_beginning(graph: Graph) -> None:
    see(graph, "child")
    assert see(graph, "child", to("owner")).delete == ["owner"]
    assert dependents(graph, "owner") == ["child"]


def test_a_reference_that_is_renamed_is_looked_at(graph: Graph) -> None:
    see(graph, "owner")
    see(graph, "child", to("owner"))
    assert see(graph, "child", to("owner", name="wrong")).delete == ["child"]


def test_a_virtual_owner_that_nobody_refers_to_any_more_is_forgotten(graph: Graph) -> None:
    see(graph, "child", to("owner"))
    see(graph, "child")
    assert graph.get("owner") is None
    assert len(graph) == 1


def test_deletion_in_the_foreground_lets_dependents_and_owner_be_looked_at_once(graph: Graph) -> None:
    see(graph, "owner")
    see(graph, "child", to("owner"))
    assert see(graph, "owner", finalizers=(FOREGROUND,)) == GraphChanges()
    assert see(graph, "owner", finalizers=(FOREGROUND,), is_deleted=True).delete == ["child", "owner"]
    assert see(graph, "owner", finalizers=(FOREGROUND,), is_deleted=True) == GraphChanges()


def test_deletion_that_orphans_is_for_the_other_queue_once(graph: Graph) -> None:
    see(graph, "owner")
    see(graph, "child", to("owner"))
    assert see(graph, "owner", finalizers=(ORPHAN,), is_deleted=True) == GraphChanges(orphan=["owner"])
    assert see(graph, "owner", finalizers=(ORPHAN,), is_deleted=True) == GraphChanges()


def test_an_owner_that_is_first_seen_on_its_way_out_is_looked_at_all_the_same(graph: Graph) -> None:
    see(graph, "child", to("a"), to("b"))
    assert see(graph, "a", finalizers=(FOREGROUND,), is_deleted=True).delete == ["child", "a"]
    assert see(graph, "b", finalizers=(ORPHAN,), is_deleted=True).orphan == ["b"]


def test_only_references_that_say_so_block(graph: Graph) -> None:
    see(graph, "owner")
    for uid, block in (("yes", True), ("no", False), ("unsaid", None)):
        see(graph, uid, to("owner", block=block))
    owner = known(graph, "owner")
    assert [each.identity.uid for each in graph.blocking_dependents(owner)] == ["yes"]


# Going


def test_the_dependents_of_an_owner_that_went_are_looked_at_and_it_is_known_to_be_absent(
    graph: Graph,
) -> None:
    see(graph, "owner")
    see(graph, "a", to("owner"))
    see(graph, "b", to("owner"))
    assert graph.lose(who("owner")) == GraphChanges(delete=["a", "b"], absent=[who("owner")])
    assert graph.get("owner") is None
    # Whoever had no dependents is not worth remembering.
    assert graph.lose(who("a")) == GraphChanges()
    assert graph.lose(who("a")) == GraphChanges()


def test_an_owner_that_waits_looks_again_when_a_dependent_has_gone(graph: Graph) -> None:
    see(graph, "waits", finalizers=(FOREGROUND,), is_deleted=True)
    see(graph, "stays")
    see(graph, "child", to("waits", block=True), to("stays", block=True))
    assert graph.lose(who("child")) == GraphChanges(delete=["waits"])
    assert (dependents(graph, "waits"), dependents(graph, "stays")) == ([], [])


def test_an_object_that_owns_itself_goes_without_a_trace(graph: Graph) -> None:
    see(graph, "self", to("self"))
    assert graph.lose(who("self")) == GraphChanges(delete=["self"], absent=[who("self")])
    assert len(graph) == 0


def test_a_virtual_owner_that_is_not_there_leaves_its_dependents_to_be_looked_at(graph: Graph) -> None:
    see(graph, "child", to("owner"))
    assert graph.disprove(who("owner")) == GraphChanges(delete=["child"], absent=[who("owner")])
    assert graph.get("owner") is None


def test_what_is_disproved_under_one_name_may_be_there_under_another(graph: Graph) -> None:
    """Each name that dependents give an unseen owner has its turn, in order, and from the beginning again."""
    see(graph, "a", to("owner", name="m"))
    see(graph, "b", to("owner", name="z"))
    see(graph, "c", to("owner", name="k"))
    tried = []
    for _ in range(4):
        owner = known(graph, "owner")
        asked = owner.identity
        tried.append(asked.name)
        changes = graph.disprove(asked)
        assert changes == GraphChanges(delete=[{"m": "a", "z": "b", "k": "c"}[asked.name]], absent=[asked])
    assert tried == ["m", "z", "k", "m"]


def test_dependents_in_several_namespaces_each_have_their_owner_looked_for(graph: Graph) -> None:
    see(graph, "a", to("owner"), namespace="one")
    see(graph, "b", to("owner"), namespace="two")
    changes = graph.disprove(who("owner", "one"))
    assert (changes.delete, changes.absent) == (["a"], [who("owner", "one")])
    owner = known(graph, "owner")
    assert owner.identity == who("owner", "two")


def test_an_owner_that_was_seen_elsewhere_is_not_lost_when_it_is_not_where_somebody_looked(
    graph: Graph,
) -> None:
    see(graph, "owner", namespace="theirs")
    see(graph, "child", to("owner"))
    see(graph, "kin", to("owner"), namespace="theirs")
    # It is not in this namespace, which concerns only who looks for it here.
    assert graph.disprove(who("owner")) == GraphChanges(delete=["child"], absent=[who("owner")])
    assert graph.disprove(who("owner", "theirs", name="other")) == GraphChanges()
    assert dependents(graph, "owner") == ["child", "kin"]


def test_an_owner_that_was_seen_and_is_gone_by_the_servers_word_is_removed(graph: Graph) -> None:
    see(graph, "owner")
    see(graph, "child", to("owner"))
    assert graph.disprove(who("owner")).delete == ["child"]
    assert graph.get("owner") is None


def test_what_is_no_longer_served_is_unseen_again_and_blocks_nobody(graph: Graph) -> None:
    see(graph, "top", finalizers=(FOREGROUND,), is_deleted=True)
    see(graph, "widget", to("top", block=True))
    see(graph, "child", to("widget"))
    assert graph.drop("widget") == GraphChanges(delete=["top", "widget"])
    widget = known(graph, "widget")
    assert widget.is_virtual
    assert dependents(graph, "top") == []
    # Without dependents nothing is left of it.
    assert graph.drop("child") == GraphChanges()
    assert graph.get("child") is None
    assert graph.get("widget") is None
