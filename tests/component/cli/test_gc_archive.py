"""`podlife gc sweep --archive`, as a user runs it: what goes is kept, what cannot be kept stays."""

from __future__ import annotations

import json
from pathlib import Path

from podlife.client import EVENTS, Client
from tests.component.cli.commands import podlife
from tests.component.cli.conftest import Server
from tests.kit.gc_states import States

SWEEP = ("gc", "sweep", "--yes", "--terminated-pod-gc-threshold", "1", "--quarantine", "0s")


def kept(folder: Path) -> set[str]:
    return {path.name.partition("_")[0] for path in folder.glob("*/*.jsonl.gz")}


async def everything(states: States) -> None:
    await states.terminated("done-0", "done-1")
    await states.orphaned("orphan")
    await states.out_of_service("stuck")
    await states.pod("alive")


async def test_a_sweep_keeps_what_it_deletes_and_the_archive_shows_it(
    states: States, server: Server, tmp_path: Path
) -> None:
    await everything(states)
    before = await states.get("orphan")
    result = await podlife(*SWEEP, "--archive", str(tmp_path / "kept"), *server.admin)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("3 pods deleted (1 terminated, 1 out-of-service, 1 orphaned)")
    assert await states.names() == {"alive", "done-1"}
    assert kept(tmp_path / "kept") == {"done-0", "orphan", "stuck"}
    shown = await podlife(
        "archive",
        "show",
        "orphan",
        "-o",
        "json",
        "--show-managed-fields",
        PODLIFE_ARCHIVE=str(tmp_path / "kept"),
    )
    assert (shown.code, shown.err) == (0, "")
    assert json.loads(shown.out) == before, "as it was before it was marked"
    logs = await podlife("archive", "show", "orphan", "--logs", "--archive", str(tmp_path / "kept"))
    assert logs.out.startswith("==> main: "), "its node is gone: the reason stands in place of its log"


async def test_a_full_archive_keeps_the_pods_and_says_so_in_the_summary_an_event_and_the_exit_code(
    states: States, client: Client, server: Server, tmp_path: Path
) -> None:
    await everything(states)
    flags = ["--archive", str(tmp_path / "kept"), "--archive-max-size", "1"]
    result = await podlife(*SWEEP, *flags, *server.admin)
    assert (result.code, result.out) == (1, "Nothing was deleted.\n")
    [line] = result.err.splitlines()
    assert line.startswith("podlife: 3 pods not deleted (")
    assert f"archive {tmp_path / 'kept'} is full (limit 1, no entry is older than 720h)" in line
    assert await states.names() == {"alive", "done-0", "done-1", "orphan", "stuck"}
    assert (await states.get("stuck"))["status"]["phase"] == "Running", "nor was it marked"
    events = (await client.list_all(EVENTS, states.namespace)).items
    told = {each["involvedObject"]["name"] for each in events if each["reason"] == "PodNotCollected"}
    assert told == {"done-0", "orphan", "stuck"}
