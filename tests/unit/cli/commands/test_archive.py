"""`podlife archive`, and the flags of an archive: what is shown of a folder, and what is wrong said in one line."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import msgspec
import pytest
import yaml

from podlife.cli.archive_options import ArchiveOptions, ArchiveTarget, parse_target
from podlife.clock import ManualClock, SystemClock
from podlife.diagnosis import with_archived
from podlife.explain import Explanation
from podlife.podgc.archive import ArchiveLimits, Entry, FolderArchive, Header, Log, LogSettings
from tests.unit.cli.conftest import Refused, Run

UIDS = [f"0c2f0dd4-0f0b-4a9b-9a54-5f4a4a6a000{number}" for number in range(4)]
SECOND = "2030-01-01T00:00:0"
LONG = ".".join(["a" * 60] * 4)


@pytest.fixture(autouse=True)
def default_archive(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PODLIFE_ARCHIVE", str(tmp_path / "archive"))


def entry(name: str, uid: str, *, hours_ago: float = 1, namespace: str = "default") -> Entry:
    at = SystemClock().now() - timedelta(hours=hours_ago)
    header = Header(
        namespace=namespace,
        name=name,
        uid=uid,
        archived_at=at,
        reason="orphaned",
        why="node n1 no longer exists",
        rule="nodes",
        phase="Failed",
        node="n1",
        problems=("log of side: 404 no node",),
    )
    metadata = {"name": name, "namespace": namespace, "uid": uid, "managedFields": [{"manager": "kubelet"}]}
    events = (
        {"reason": "Killing", "type": "Normal", "message": "late\nr", "lastTimestamp": f"{SECOND}2Z"},
        {"reason": "Started", "type": "Normal", "message": "first", "lastTimestamp": f"{SECOND}1Z"}
        | {"source": {"component": "kubelet"}},
    )
    logs = (
        Log(container="setup", kind="init", text="ready"),
        Log(container="main", is_previous=True, text="crash\n", is_cut=True),
        Log(container="main", text="again\n"),
        Log(container="side", problem="404 no node"),
    )
    return Entry(header, {"kind": "Pod", "metadata": metadata, "status": {"phase": "Failed"}}, events, logs)


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """Two of one name, an older one of another namespace, and one with a very long name."""
    folder = tmp_path / "archive"
    made = FolderArchive(folder, ArchiveLimits(), clock=ManualClock())
    made.folder.open(SystemClock().now())

    async def fill() -> None:
        await made.put(entry("web-0", UIDS[0], hours_ago=3))
        await made.put(entry("web-0", UIDS[1], hours_ago=2))
        await made.put(entry("job", UIDS[2], hours_ago=50, namespace="batch"))
        await made.put(entry(LONG, UIDS[3]))
        await made.close()

    asyncio.run(fill())
    return folder


def test_a_list_has_the_newest_first_for_people_and_for_programs(run: Run, archive: Path) -> None:
    table = run("archive", "list")
    assert (table.code, table.err) == (0, "")
    header, *rows = [line.split() for line in table.out.splitlines()]
    assert header == ["NAMESPACE", "NAME", "ARCHIVED", "REASON", "PHASE", "NODE", "SIZE", "UID"]
    assert [(row[1], row[2][:2], row[4], row[-1]) for row in rows] == [
        (LONG, "1h", "orphaned", UIDS[3]),
        ("web-0", "2h", "orphaned", UIDS[1]),
        ("web-0", "3h", "orphaned", UIDS[0]),
        ("job", "2d", "orphaned", UIDS[2]),
    ]
    names = run("archive", "list", "-o", "name").out.splitlines()
    assert names == [f"default/pod/{LONG}", "default/pod/web-0", "default/pod/web-0", "batch/pod/job"]
    found = json.loads(run("archive", "list", "-o", "json", "-n", "batch").out)
    assert [(each["uid"], each["why"], each["bytes"] > 0) for each in found] == [
        (UIDS[2], "node n1 no longer exists", True)
    ]


def test_a_list_since_and_of_a_namespace_leaves_out_the_rest(run: Run, archive: Path) -> None:
    assert run("archive", "list", "--since", "150m", "-o", "name").out.count("\n") == 2
    said = run("archive", "list", "-n", "nobody")
    assert (said.code, said.out) == (0, "No entries found.\n")


def test_the_newest_of_a_name_is_shown_and_the_others_are_named(run: Run, archive: Path) -> None:
    said = run("archive", "show", "pod/web-0")
    assert said.code == 0
    assert yaml.safe_load(said.out)["metadata"] == {"name": "web-0", "namespace": "default", "uid": UIDS[1]}
    assert said.out.startswith("# Archived at 20")
    assert "orphaned (rule nodes): node n1 no longer exists\n# Also archived: 2 events" in said.out
    assert "# Missing: log of side: 404 no node\n" in said.out
    assert said.err == f"podlife: this is the newest of 2; by their UIDs: {UIDS[0]}\n"


def test_a_pod_is_found_by_what_the_list_calls_it(run: Run, archive: Path) -> None:
    for name in run("archive", "list", "-A", "-o", "name").out.splitlines():
        assert run("archive", "show", name).code == 0
    assert "invalid pod name or UID" in run("archive", "show", "batch/job").err


def test_nothing_is_said_of_an_archive_that_is_not_there(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    """A variable that is set to nothing is none, as a flag that is left out."""
    monkeypatch.setenv("PODLIFE_ARCHIVE", "")
    assert "requires --archive" in run("gc", "run", "--archive-max-age=1h").err


def test_a_pod_is_found_by_its_uid_and_by_a_name_too_long_for_a_file(run: Run, archive: Path) -> None:
    said = run("archive", "show", UIDS[0], "-o", "json", "--show-managed-fields")
    assert json.loads(said.out)["metadata"]["managedFields"] == [{"manager": "kubelet"}]
    assert json.loads(said.out)["metadata"]["uid"] == UIDS[0]
    assert json.loads(run("archive", "show", LONG, "-o", "json").out)["metadata"]["name"] == LONG
    assert run("archive", "show", LONG[:-1]).code == 1


def test_logs_are_shown_with_whose_they_are(run: Run, archive: Path) -> None:
    assert run("archive", "show", "job", "--logs").out == (
        "==> setup (init) <==\nready\n\n"
        "==> main, before its restart, truncated <==\ncrash\n\n"
        "==> main <==\nagain\n\n"
        "==> side: 404 no node <==\n"
    )
    assert run("archive", "show", "job", "--logs", "-c", "setup").out == "ready\n"
    found = json.loads(run("archive", "show", "job", "--logs", "-c", "main", "-o", "json").out)
    assert [each["text"] for each in found] == ["crash\n", "again\n"]
    said = run("archive", "show", "job", "--logs", "-c", "nobody")
    assert (said.code, said.err) == (
        1,
        "podlife: container nobody has no log; choose from main, setup, side\n",
    )


def test_events_are_shown_the_oldest_first(run: Run, archive: Path) -> None:
    rows = [line.split() for line in run("archive", "show", "job", "--events").out.splitlines()]
    assert rows == [
        ["TIME", "TYPE", "REASON", "FROM", "COUNT", "MESSAGE"],
        ["2030-01-01T00:00:01Z", "Normal", "Started", "kubelet", "1", "first"],
        ["2030-01-01T00:00:02Z", "Normal", "Killing", "-", "1", "late", "r"],
    ]
    found = yaml.safe_load(run("archive", "show", "job", "--events", "-o", "yaml").out)
    assert [each["reason"] for each in found] == ["Started", "Killing"]


def test_what_others_wrote_does_nothing_to_a_terminal_and_the_manifest_stays_yaml(
    run: Run, tmp_path: Path
) -> None:
    """Reasons of nodes, and events of whoever may write them."""
    plain = entry("web-0", UIDS[0])
    header = msgspec.structs.replace(plain.header, problems=("log of c: \x1b[2J\n\x07no",))
    events = ({"reason": "Bad\x1b[2J", "message": "\x1b]0;me\x07"},)
    # Letters that are not seen and turn what is written after them.
    turned = {"metadata": {**plain.pod["metadata"], "annotations": {"note": "left\u202eright"}}}
    made = FolderArchive(tmp_path / "archive", ArchiveLimits(), clock=SystemClock())
    made.open()
    asyncio.run(made.put(Entry(header, {**plain.pod, **turned}, events, plain.logs)))
    asyncio.run(made.close())
    shown, told = run("archive", "show", "web-0").out, run("archive", "show", "web-0", "--events").out
    assert "\x1b" not in shown + told
    assert "\u202e" not in shown
    assert yaml.safe_load(shown)["metadata"]["annotations"]["note"] == "left\u202eright"
    assert "# Missing: log of c: \\x1b[2J \\x07no\n" in shown
    assert yaml.safe_load(shown)["metadata"]["name"] == "web-0"


def test_a_damaged_entry_is_reported_and_the_rest_is_shown(run: Run, archive: Path) -> None:
    path = archive / "default" / f"web-0_{UIDS[1]}.jsonl.gz"
    path.write_bytes(path.read_bytes()[:50])
    listed = run("archive", "list", "-o", "name")
    assert listed.code == 1
    assert listed.out.count("\n") == 3
    assert listed.err == f"podlife: cannot read entry {path}: it was cut short\n"
    shown = run("archive", "show", UIDS[1])
    assert (shown.code, shown.out) == (1, "")
    assert shown.err == f"podlife: cannot show entry {path}: it was cut short\n"
    # The header may be whole where the rest is not.
    other = archive / "batch" / f"job_{UIDS[2]}.jsonl.gz"
    other.write_bytes(other.read_bytes()[:-20])
    shown = run("archive", "show", "job")
    assert (shown.code, shown.out, shown.err.count("\n")) == (1, "", 1)
    assert "cut short" in shown.err


def test_a_name_in_two_namespaces_is_asked_back_about(run: Run, archive: Path) -> None:
    made = FolderArchive(archive, ArchiveLimits(), clock=ManualClock())
    asyncio.run(made.put(entry("job", UIDS[0], namespace="other")))
    said = run("archive", "show", "job")
    assert (said.code, said.err) == (
        1,
        "podlife: job is in several namespaces, batch, other: choose one with -n\n",
    )
    assert run("archive", "show", "job", "-n", "batch").code == 0


async def test_explain_tells_what_was_kept_of_a_pod_that_is_gone(archive: Path) -> None:
    gone = Explanation("Pod", "web-0", "default", stage="gone")
    found = await with_archived(gone, ArchiveTarget(archive))
    assert [each.what.rpartition("; ")[2] for each in found.timeline] == [
        f"`podlife archive show {uid} --archive {archive}`" for uid in UIDS[:2]
    ]
    assert "orphaned: node n1 no longer exists" in found.timeline[0].what
    for other in (replace(gone, namespace="batch"), replace(gone, name="web")):
        assert await with_archived(other, ArchiveTarget(archive)) == other
    # One that cannot be read does not keep the rest from being told.
    [path] = archive.glob(f"*/*{UIDS[1]}*")
    path.write_bytes(b"no")
    found = await with_archived(gone, ArchiveTarget(archive))
    assert (len(found.timeline), len(found.unread)) == (1, 1)
    found = await with_archived(gone, ArchiveTarget(archive / "none"))
    assert found.unread == (
        f"no archive in {archive / 'none'}: set its directory with --archive or PODLIFE_ARCHIVE",
    )


def test_prune_removes_what_is_older_and_says_how_much(run: Run, archive: Path) -> None:
    said = run("archive", "prune", "--older-than", "24h", "--dry-run")
    assert said.out.startswith("1 entry (")
    assert run("archive", "list", "-o", "name").out.count("\n") == 4
    said = run("archive", "prune", "--older-than", "24h")
    assert said.out.startswith("1 entry removed (")
    assert ", 3 left (" in said.out
    assert run("archive", "prune").out.startswith("0 entries removed (0), 3 left (")
    assert run("archive", "prune", "--older-than", "0s").out.startswith("3 entries removed (")
    assert run("archive", "list", "-o", "name").out == ""


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["archive", "list", "-o", "xml"], "unknown output format 'xml'; choose from table, json, name"),
        (["archive", "show", "web", "-o", "table"], "choose from yaml, json"),
        (["archive", "list", "-n", "a_b"], "invalid namespace name 'a_b'"),
        (["archive", "list", "--since", "yesterday"], "invalid duration 'yesterday'"),
        (["archive", "list", "--since=-1h"], "age must not be negative"),
        (["archive", "show"], "NAME|UID is missing"),
        (["archive", "show", "../etc"], "invalid pod name or UID '../etc'"),
        (["archive", "show", "web", "-c", "main"], "-c requires --logs"),
        (["archive", "show", "web", "--logs", "--events"], "exclude each other"),
        (["archive", "list", "--archive", "gs://bucket"], "expected a folder or s3://BUCKET/PREFIX"),
        (["archive", "list", "--archive", "s3://"], "expected a folder or s3://BUCKET/PREFIX"),
        (["archive", "list", "--archive", "s3://b/x"], "expected a folder or s3://BUCKET/PREFIX"),
        (["archive", "list", "--archive", "s3://bucket/../x"], "the prefix must be printable ASCII"),
        (["gc", "sweep", "--yes", "--archive", "/a", "--archive-max-size", "much"], "invalid size 'much'"),
        (["gc", "sweep", "--yes", "--archive", "/a", "--archive-max-size", "0"], "invalid size '0'"),
        (["gc", "sweep", "--yes", "--archive", "/a", "--archive-max-age=-1h"], "age must not be negative"),
        (["gc", "run", "--archive", "/a", "--archive-log-lines=-1"], "expected a whole number from 0"),
        (["archive", "prune", "--older-than", "2w"], "expected 336h"),
        (["gc", "run", "--archive", "/a", "--archive-max-age", "30d"], "expected 720h"),
        (["archive", "list", "-A", "-n", "shop"], "exclude each other"),
        (["archive", "show", "shop/pod/web", "-n", "other"], "is not in namespace other: leave out -n"),
        (["gc", "run", "--archive=s3://bucket", "--archive-max-size=1Gi"], "applies to folders only"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(refused: Refused, arguments: list[str], words: str) -> None:
    assert words in refused(*arguments)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["archive", "list"], "no archive in"),
        (["archive", "prune"], "no archive in"),
        (["archive", "list", "--archive", "/dev/null"], "cannot read archive /dev/null: Not a directory"),
        (["archive", "prune", "--archive", "s3://bucket/x"], "use a lifecycle rule of the bucket"),
        (["archive", "list", "--archive", "s3://bucket/x"], "no AWS credentials found"),
        (
            ["gc", "sweep", "--yes", "--archive", "s3://bucket/x", "-s", "https://127.0.0.1:1"],
            "no AWS credentials found: set AWS_ACCESS_KEY_ID",
        ),
        (
            ["gc", "sweep", "--yes", "--archive", "/dev/null/x", "-s", "https://127.0.0.1:1"],
            "not a directory",
        ),
        (["gc", "run", "--archive", "/dev/null/x", "-s", "https://127.0.0.1:1"], "not a directory"),
    ],
)
def test_what_cannot_be_used_is_one_line_and_exit_code_1(
    run: Run, arguments: list[str], words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_PROFILE", "AWS_WEB_IDENTITY_TOKEN_FILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", os.devnull)
    monkeypatch.setenv("AWS_CONFIG_FILE", os.devnull)
    said = run(*arguments)
    assert (said.code, said.out, said.err.count("\n")) == (1, "", 1), said.err
    assert words in said.err


@pytest.mark.parametrize(
    "arguments",
    [["archive", "list"], ["archive", "show", "web"], ["gc", "sweep", "--yes", "-s", "https://127.0.0.1:1"]],
)
def test_a_bucket_without_its_library_is_one_line_that_says_what_to_install(
    run: Run, arguments: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "aiobotocore.config", None)
    for name in ("s3", "s3_client"):
        monkeypatch.delitem(sys.modules, f"podlife.podgc.archive.{name}", raising=False)
    said = run(*arguments, "--archive", "s3://bucket/x")
    assert (said.code, said.out) == (1, "")
    assert said.err.endswith("needs aiobotocore, which is not installed: install podlife[s3]\n")
    assert said.err.count("\n") == 1


def test_without_a_name_it_is_a_folder_of_the_user_s(
    monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path
) -> None:
    monkeypatch.delenv("PODLIFE_ARCHIVE")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    assert f"no archive in {tmp_path}/podlife/archive:" in run("archive", "list").err


def test_the_defaults_of_the_flags_are_those_of_the_archive() -> None:
    assert ArchiveOptions().archiving() is None
    archiving = ArchiveOptions("/a").archiving()
    assert archiving is not None
    assert ArchiveLimits(archiving.most_bytes, archiving.most_age_seconds) == ArchiveLimits()
    assert archiving.log_lines == LogSettings().lines


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("/a/b", ArchiveTarget(Path("/a/b"))),
        ("s3://bucket", ArchiveTarget(bucket="bucket")),
        ("s3://my.bucket/a//b/", ArchiveTarget(bucket="my.bucket", prefix="a/b")),
    ],
)
def test_a_target_is_a_folder_or_a_bucket(text: str, target: ArchiveTarget) -> None:
    assert parse_target(text) == target
