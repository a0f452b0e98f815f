"""Every situation of the catalogue: the cause is found, and what is printed to unblock it does, under virtual time."""

from __future__ import annotations

import pytest

from podlife.cli.commands.explain.output import format_explanation
from podlife.diagnosis import find_stuck, look_at_pod
from podlife.explain import Explanation
from podlife.podgc import Settings
from podlife.testing import Cluster, virtual_time
from tests.component.explain.catalogue import CATALOGUE, name_of
from tests.component.explain.kubectl_words import filled, type_in
from tests.component.explain.situation import Situation


async def explained(cluster: Cluster, name: str, settings: Settings | None = None) -> Explanation:
    return await look_at_pod(cluster.client, cluster.clock, "default", name, settings)


@pytest.mark.parametrize("situation", CATALOGUE, ids=[each.name for each in CATALOGUE])
def test_the_cause_is_found_and_the_command_unblocks_it(situation: Situation) -> None:
    @virtual_time
    async def played() -> None:
        async with Cluster(nodes=situation.nodes, controllers=situation.makes) as cluster:
            await situation.make(cluster)
            assert not (situation.is_checked_before and await situation.is_unblocked(cluster))
            await check_the_list(cluster, situation)
            for _ in range(situation.rounds):
                await unblock(cluster, situation)
            await cluster.until(lambda: situation.is_unblocked(cluster), within=900, what="unblocked")

    played()


async def unblock(cluster: Cluster, situation: Situation) -> None:
    found = await explained(cluster, await name_of(cluster, situation), situation.settings)
    shown = format_explanation(found, "text", cluster.clock.now())
    first = found.causes[0]
    assert first.name == situation.cause, shown
    assert first.is_stuck is situation.is_stuck, shown
    assert situation.acts in {"", *(each.who for each in first.upcoming)}, shown
    assert found.unread == (), shown
    remedy = first.remedies[0]
    assert remedy.command in shown
    assert remedy.risk in shown
    await type_in(cluster.client, filled(remedy.command, situation.values))
    await cluster.settled()


async def check_the_list(cluster: Cluster, situation: Situation) -> None:
    """`podlife stuck` finds the same, and nothing that only takes its time."""
    _, stuck = await find_stuck(cluster.client, cluster.clock, "default", situation.settings)
    name = await name_of(cluster, situation)
    causes = {each.name: each.causes[0].name for each in stuck}
    assert causes.get(name) == (situation.cause if situation.is_stuck else None), causes


def test_there_are_at_least_25_situations_and_as_many_causes_as_that_takes() -> None:
    assert len(CATALOGUE) >= 25
    assert len({each.cause for each in CATALOGUE}) >= 25
