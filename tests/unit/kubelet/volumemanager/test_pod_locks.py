from __future__ import annotations

import pytest

from podlife.kubelet.volumemanager.pod_locks import PodLocks


async def test_a_failure_is_told_and_the_turn_goes_on() -> None:
    turns = PodLocks(in_threads=True)

    def fail() -> None:
        raise OSError("full")

    for _ in range(2):
        with pytest.raises(OSError, match="full"):
            async with turns.take("uid") as turn:
                await turn.run(fail)
    assert turns._busy == {}


async def test_different_pods_do_not_wait_for_each_other() -> None:
    turns = PodLocks(in_threads=False)
    async with turns.take("one"), turns.take("two") as turn:
        assert await turn.run(lambda: 1) == 1
