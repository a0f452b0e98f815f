"""The graph holds what a look at all that was seen would find, and whatever may have become garbage is looked at."""

from __future__ import annotations

from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from podlife.ownergc.graph import Graph, GraphChanges
from podlife.ownergc.views import FOREGROUND, ORPHAN, ObjectIdentity, PartialMetadata, PartialOwnerReference

UIDS = ("a", "b", "c", "d", "e")
NAMESPACES = {"a": "x", "b": "x", "c": "y", "d": "", "e": "x"}

uids = st.sampled_from(UIDS)
# Mostly right: a wrong name now and then.
references = st.lists(
    st.builds(
        lambda uid, name, block: PartialOwnerReference(
            "v1", "Thing", name or uid, uid, block_owner_deletion=block
        ),
        uids,
        st.sampled_from(("", "", "", "wrong")),
        st.sampled_from((None, True, False)),
    ),
    max_size=3,
    unique_by=lambda reference: reference.uid,
).map(tuple)
finalizers = st.sampled_from(((), (FOREGROUND,), (ORPHAN,)))


def who(uid: str) -> ObjectIdentity:
    return ObjectIdentity("Thing", "v1", NAMESPACES[uid], uid, uid)


class Following(RuleBasedStateMachine):
    def __init__(self) -> None:
        super().__init__()
        self.graph = Graph()
        self.seen: dict[str, PartialMetadata] = {}
        # Who is known to depend on whom: an owner that went has no dependents, though they still name it.
        self.links: set[tuple[str, str]] = set()

    @rule(uid=uids, owners=references, finalizers=finalizers, is_deleted=st.booleans())
    def observe(
        self,
        uid: str,
        owners: tuple[PartialOwnerReference, ...],
        finalizers: tuple[str, ...],
        is_deleted: bool,
    ) -> None:
        before = self.seen.get(uid)
        now = PartialMetadata(
            uid, NAMESPACES[uid], uid, "1", "now" if is_deleted else None, finalizers, owners
        )
        known = set(self.nodes())
        changes = self.graph.observe(who(uid), now)
        self.seen[uid] = now
        old = {owner.uid: owner for owner in before.owner_references} if before else {}
        new = {owner.uid: owner for owner in owners}
        self.links -= {(uid, each) for each in old.keys() - new.keys()}
        self.links |= {(uid, each) for each in new if old.get(each) != new[each]}
        self.check_looks(uid, before, now, known, changes)

    def check_looks(
        self,
        uid: str,
        before: PartialMetadata | None,
        now: PartialMetadata,
        known: set[str],
        changes: GraphChanges,
    ) -> None:
        old = {owner.uid: owner for owner in before.owner_references} if before else {}
        joined = {owner.uid for owner in now.owner_references if old.get(owner.uid) != owner}
        unseen = joined - known - {uid}
        assert unseen <= {*changes.delete}, "an owner that nobody has seen is verified"
        blocks = {owner.uid for owner in now.owner_references if owner.block_owner_deletion}
        freed = {each for each, owner in old.items() if owner.block_owner_deletion} - blocks
        assert freed & known <= {*changes.delete}, "an owner that nobody blocks any more looks again"
        if now.is_orphaning_dependents and not (before and before.is_orphaning_dependents):
            assert changes.orphan == [uid]
        elif now.is_deleting_dependents and not (before and before.is_deleting_dependents):
            assert {uid, *self.dependents(uid)} <= {*changes.delete}

    @rule(uid=uids)
    def lose(self, uid: str) -> None:
        if uid not in self.seen:
            return
        gone, waiting = self.dependents(uid), self.waiting_owners(uid)
        changes = self.graph.lose(who(uid))
        self.remove(uid)
        assert gone | waiting <= {*changes.delete}
        assert changes.absent == ([who(uid)] if gone else [])

    @rule(uid=uids)
    def disprove(self, uid: str) -> None:
        node = self.graph.get(uid)
        if node is None:
            return
        identity = node.identity
        matching = {each for each in self.dependents(uid) if self.names(each, identity)}
        others = {each for each in self.dependents(uid) if not self.names(each, identity)}
        was_virtual = node.is_virtual
        changes = self.graph.disprove(identity)
        assert matching <= {*changes.delete}
        if was_virtual and others:
            assert node.identity != identity, "those who call it otherwise have their turn"
            assert self.graph.get(uid) is node
        else:
            self.remove(uid)

    @rule(uid=uids)
    def drop(self, uid: str) -> None:
        if uid not in self.seen:
            return
        waiting = self.waiting_owners(uid)
        changes = self.graph.drop(uid)
        del self.seen[uid]
        self.links = {link for link in self.links if link[0] != uid}
        assert waiting - {uid} <= {*changes.delete}
        assert not changes.absent, "nobody has seen it go"

    def names(self, dependent: str, identity: ObjectIdentity) -> bool:
        is_elsewhere = identity.namespace not in ("", NAMESPACES[dependent])
        named = [owner for owner in self.seen[dependent].owner_references if owner.uid == identity.uid]
        return not is_elsewhere and all(owner.name == identity.name for owner in named)

    def remove(self, uid: str) -> None:
        self.seen.pop(uid, None)
        self.links = {link for link in self.links if uid not in link}

    def dependents(self, uid: str) -> set[str]:
        return {dependent for dependent, owner in self.links if owner == uid}

    def waiting_owners(self, uid: str) -> set[str]:
        owners = {owner for dependent, owner in self.links if dependent == uid and owner in self.seen}
        return {owner for owner in owners - {uid} if self.seen[owner].is_deleting_dependents}

    def nodes(self) -> list[str]:
        return [uid for uid in UIDS if self.graph.get(uid) is not None]

    @invariant()
    def it_holds_what_was_seen_and_whom_that_depends_on(self) -> None:
        virtual = {owner for _, owner in self.links} - self.seen.keys()
        assert {*self.nodes()} == self.seen.keys() | virtual
        assert len(self.graph) == len(self.nodes())
        for uid in self.nodes():
            node = self.graph.get(uid)
            assert node is not None
            assert node.is_virtual == (uid in virtual)
            assert node.seen is self.seen.get(uid)
            assert {*node.dependents} == self.dependents(uid)
            if not node.is_virtual:
                assert node.identity == who(uid)


TestFollowing = Following.TestCase
TestFollowing.settings = hypothesis_settings(max_examples=80, stateful_step_count=30, deadline=None)
