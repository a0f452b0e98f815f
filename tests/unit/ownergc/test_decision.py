"""What becomes of an object, for every combination of what its owners are."""

from __future__ import annotations

from itertools import product

import pytest

from podlife.ownergc.decision import DeleteObject, DropReferences, Family, Leave, OwnerState, decide
from podlife.ownergc.garbage_collector import AbsentOwnerCache
from podlife.ownergc.views import PartialMetadata, PartialOwnerReference

SOLID, ABSENT, WAITING = OwnerState.SOLID, OwnerState.ABSENT, OwnerState.WAITING
ALONE, PARENT, CIRCLE = (
    Family(),
    Family(has_dependents=True),
    Family(has_dependents=True, has_waiting_dependents=True),
)


def item(*owners: str, finalizers: tuple[str, ...] = (), deleted: str | None = None) -> PartialMetadata:
    references = tuple(PartialOwnerReference(uid=uid, name=uid) for uid in owners)
    return PartialMetadata(
        name="item", uid="i", finalizers=finalizers, owner_references=references, deletion_timestamp=deleted
    )


@pytest.mark.parametrize(
    ("standings", "family", "expected"),
    [
        pytest.param([SOLID], PARENT, Leave(), id="its owner is there"),
        pytest.param([ABSENT], ALONE, DeleteObject("Background"), id="its owner is gone"),
        pytest.param(
            [ABSENT], PARENT, DeleteObject("Background"), id="its owner is gone, its dependents come after it"
        ),
        pytest.param([WAITING], ALONE, DeleteObject("Background"), id="its owner waits for it"),
        pytest.param(
            [WAITING], PARENT, DeleteObject("Foreground"), id="its owner waits, its dependents go first"
        ),
        pytest.param(
            [WAITING],
            CIRCLE,
            DeleteObject("Foreground", unblocks=True),
            id="a dependent of its own waits, too",
        ),
        pytest.param([ABSENT], CIRCLE, DeleteObject("Background"), id="nobody waits for it in the circle"),
        pytest.param([SOLID, ABSENT], ALONE, DropReferences(("o1",)), id="one is left, one is gone"),
        pytest.param([WAITING, SOLID], ALONE, DropReferences(("o0",)), id="one is left, one waits"),
        pytest.param(
            [ABSENT, SOLID, WAITING], PARENT, DropReferences(("o0", "o2")), id="one of three is left"
        ),
        pytest.param([ABSENT, WAITING], PARENT, DeleteObject("Foreground"), id="one is gone, one waits"),
        pytest.param([SOLID, SOLID], CIRCLE, Leave(), id="both are there"),
        pytest.param([], PARENT, Leave(), id="it never had one"),
    ],
)
def test_the_fate_of_an_object_follows_its_owners(
    standings: list[OwnerState], family: Family, expected: object
) -> None:
    owners = [f"o{number}" for number in range(len(standings))]
    assert decide(item(*owners), standings, family) == expected


@pytest.mark.parametrize(
    ("finalizers", "policy"),
    [
        (("orphan",), "Orphan"),
        (("foregroundDeletion",), "Foreground"),
        (("foregroundDeletion", "orphan"), "Orphan"),
        (("somebody.else/finalizer",), "Background"),
    ],
)
def test_a_finalizer_that_is_there_already_says_how_it_is_deleted(
    finalizers: tuple[str, ...], policy: str
) -> None:
    assert decide(item("o", finalizers=finalizers), [ABSENT], ALONE) == DeleteObject(policy)


def test_what_is_being_deleted_is_left_to_go_whatever_its_owners_are() -> None:
    assert decide(item("o", deleted="2030-01-01T00:00:00Z"), [], CIRCLE) == Leave()


def test_an_owner_that_is_named_rightly_and_wrongly_keeps_both_references() -> None:
    assert decide(item("o", "o"), [SOLID, ABSENT], ALONE) == Leave()
    assert decide(item("o", "o", "gone"), [ABSENT, SOLID, ABSENT], ALONE) == DropReferences(("gone",))


def test_in_all_combinations_it_goes_exactly_when_no_owner_is_solid() -> None:
    families = (ALONE, PARENT, CIRCLE)
    for count in (1, 2, 3):
        owners = [f"o{number}" for number in range(count)]
        for standings, family in product(product(OwnerState, repeat=count), families):
            action = decide(item(*owners), standings, family)
            assert isinstance(action, DeleteObject) == (SOLID not in standings), (standings, family)
            if isinstance(action, DropReferences):
                assert action.uids == tuple(
                    uid for uid, standing in zip(owners, standings, strict=True) if standing is not SOLID
                )


# Owners that are known to be gone


def to(uid: str) -> PartialOwnerReference:
    return PartialOwnerReference("v1", "ConfigMap", "owner", uid)


def test_an_owner_is_absent_where_it_was_looked_for_and_nowhere_else() -> None:
    absent = AbsentOwnerCache()
    absent.add(to("u").identity("ns"))
    assert absent.has(to("u"), "ns")
    assert not absent.has(to("u"), "other")
    assert not absent.has(to("v"), "ns")


def test_one_without_a_namespace_is_absent_for_everybody() -> None:
    absent = AbsentOwnerCache()
    absent.add(to("u").identity(""))
    assert absent.has(to("u"), "ns")
    assert absent.has(to("u"), "")


def test_what_is_seen_again_is_absent_no_more() -> None:
    absent = AbsentOwnerCache()
    absent.add(to("u").identity("ns"))
    absent.discard(to("u").identity("ns"))
    absent.discard(to("v").identity("ns"))
    assert not absent.has(to("u"), "ns")


def test_what_was_used_longest_ago_is_forgotten_first() -> None:
    absent = AbsentOwnerCache(most=2)
    for uid in ("a", "b"):
        absent.add(to(uid).identity("ns"))
    assert absent.has(to("a"), "ns")
    absent.add(to("c").identity("ns"))
    assert [absent.has(to(uid), "ns") for uid in ("a", "b", "c")] == [True, False, True]
    assert len(absent) == 2
