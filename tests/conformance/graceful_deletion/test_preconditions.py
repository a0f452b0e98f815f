"""What a delete may insist on, what its options may say, and in which order that is looked at."""

from __future__ import annotations

from typing import Any

import pytest

from tests.conformance.graceful_deletion.world import World

OTHER = "99999999-9999-9999-9999-999999999999"
BAD_OPTIONS: list[dict[str, Any]] = [
    {"propagationPolicy": "Orphan", "orphanDependents": True},
    {"propagationPolicy": "Slowly"},
    {"dryRun": ["Some"]},
]


@pytest.mark.parametrize("more", [{}, {"dryRun": ["All"]}], ids=["for real", "dry run"])
async def test_delete_that_means_another_uid_is_refused(world: World, more: dict[str, Any]) -> None:
    """GD-40."""
    created = await world.pod()
    answer = await world.delete("p", preconditions={"uid": OTHER}, **more)
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert answer.message == (
        f'Operation cannot be fulfilled on Pod "p": the UID in the precondition ({OTHER}) does not match the UID '
        f"in record ({created['metadata']['uid']}). The object might have been deleted and then recreated"
    )
    assert await world.get("p") == created


async def test_delete_that_means_another_version_is_refused(world: World) -> None:
    """GD-41."""
    old = await world.pod()
    current = await world.report("p", phase="Running")
    version = old["metadata"]["resourceVersion"]
    answer = await world.delete("p", preconditions={"resourceVersion": version})
    assert (answer.code, answer.body["reason"]) == (409, "Conflict")
    assert answer.message == (
        f'Operation cannot be fulfilled on Pod "p": the ResourceVersion in the precondition ({version}) does not '
        f"match the ResourceVersion in record ({current['metadata']['resourceVersion']}). "
        "The object might have been modified"
    )
    assert await world.get("p") == current


async def test_zero_grace_with_the_right_version_succeeds_although_the_mark_makes_a_new_one(
    world: World,
) -> None:
    """GD-43."""
    created = await world.pod()
    version = created["metadata"]["resourceVersion"]
    answer = await world.delete("p", gracePeriodSeconds=0, preconditions={"resourceVersion": version})
    assert answer.code == 200
    assert await world.is_gone("p")
    assert [seen.type for seen in await world.events(created)] == ["MODIFIED", "DELETED"]


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=["both propagations", "unknown propagation", "dry run"])
async def test_options_that_make_no_sense_are_refused(world: World, options: dict[str, Any]) -> None:
    """GD-44."""
    created = await world.pod()
    answer = await world.delete("p", **options)
    assert (answer.code, answer.body["reason"]) == (422, "Invalid")
    assert answer.body["details"]["group"] == "meta.k8s.io"
    assert answer.body["details"]["kind"] == "DeleteOptions"
    assert await world.get("p") == created


@pytest.mark.parametrize("options", BAD_OPTIONS, ids=["both propagations", "unknown propagation", "dry run"])
async def test_bad_options_are_told_before_the_object_is_looked_for(
    world: World, options: dict[str, Any]
) -> None:
    """GD-45: over HTTP the options are looked at first of all; only behind that comes the 404."""
    assert (await world.delete("missing", **options)).code == 422
    assert (await world.delete("missing")).code == 404


async def test_missing_object_is_told_before_its_preconditions(world: World) -> None:
    """GD-45."""
    assert (await world.delete("missing", preconditions={"uid": OTHER})).code == 404


async def test_options_come_before_uid_and_uid_before_version(world: World) -> None:
    """GD-45."""
    created = await world.pod()
    neither = {"uid": OTHER, "resourceVersion": "1"}
    assert (await world.delete("p", preconditions=neither, propagationPolicy="Slowly")).code == 422
    assert "the UID in the precondition" in (await world.delete("p", preconditions=neither)).message
    only_version = {"uid": created["metadata"]["uid"], "resourceVersion": "1"}
    answer = await world.delete("p", preconditions=only_version)
    assert (answer.code, "the ResourceVersion in the precondition" in answer.message) == (409, True)
    assert await world.get("p") == created


async def test_preconditions_come_before_the_grace_is_looked_at(world: World) -> None:
    """GD-45: also where the grace would have changed nothing."""
    await world.pod()
    marked = (await world.delete("p", gracePeriodSeconds=20)).body
    assert (await world.delete("p", gracePeriodSeconds=20, preconditions={"uid": OTHER})).code == 409
    assert await world.get("p") == marked
