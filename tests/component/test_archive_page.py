"""docs/archive.md: what it tells people to type, typed in order on a cluster whose pods really ran, does what it says.

Changed on the way: a threshold that two pods exceed, a home of the test's, and a bucket of the test's with its keys.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shlex
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest

from podlife.client import EVENTS, PODS, Client, Flags, ListOptions, load
from tests.component.podgc.s3_server import BUCKET, S3Server, serving_s3
from tests.kit.real_parts import ROOT
from tests.kit.up_process import UpProcess, running_up

PAGE = (ROOT / "docs" / "archive.md").read_text(encoding="utf-8")
SECONDS = 300.0

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="processes as pods need Linux")


def blocks(language: str = "") -> list[str]:
    found = re.findall(r"^```(\w*)\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE)
    return [text for name, text in found if name == language]


class Reader:
    """Somebody with an empty home who types what they read, line by line, in one shell."""

    def __init__(self, up: UpProcess, home: Path) -> None:
        self.home = home
        path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
        self._environment = {
            "PATH": path,
            "HOME": str(home),
            "KUBECONFIG": str(up.kubeconfig),
            "COLUMNS": "200",
        }
        self._exports: list[str] = []

    async def type(self, line: str) -> str:
        if line.startswith("export "):
            self._exports.append(line)
            return ""
        text = "\n".join([*self._exports, line.replace("-threshold 500", "-threshold 1")])
        pipe = asyncio.subprocess.PIPE
        process = await asyncio.create_subprocess_exec(
            "bash",
            "-euc",
            text,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=pipe,
            stderr=pipe,
            env=self._environment,
        )
        async with asyncio.timeout(SECONDS):
            out, err = await process.communicate()
        assert process.returncode == 0, f"{line}: {out.decode()}{err.decode()}"
        return out.decode()

    async def type_all(self, block: str) -> list[str]:
        return [await self.type(line) for line in block.splitlines()]

    def use(self, bucket: S3Server) -> None:
        self._exports += [f"export {name}={shlex.quote(value)}" for name, value in bucket.environment.items()]


@pytest.fixture
async def up(tmp_path: Path) -> AsyncIterator[UpProcess]:
    with running_up(tmp_path, "--nodes", "1") as running:
        yield running


async def told(client: Client, name: str) -> set[str]:
    options = ListOptions(field_selector=f"involvedObject.name={name}")
    return {event["reason"] for event in (await client.list(EVENTS, "default", options=options)).items}


async def failed(up: UpProcess, name: str) -> dict[str, Any]:
    """A pod that has begun, said something and failed."""
    script = f"echo {name} failed: no more rows; exit 3"
    spec = {
        "containers": [{"name": "main", "image": "demo", "command": ["sh", "-c", script]}],
        "initContainers": [{"name": "setup", "image": "demo", "command": ["sh", "-c", "echo ready"]}],
        "restartPolicy": "Never",
    }
    async with Client.connect(load(Flags(kubeconfig=str(up.kubeconfig)))) as client, asyncio.timeout(SECONDS):
        await client.create(PODS, {"metadata": {"name": name}, "spec": spec}, "default")
        while (pod := await client.get(PODS, name, "default"))["status"].get("phase") != "Failed":
            await asyncio.sleep(0.05)
        # Events are sent behind everything else.
        while not {"Scheduled", "Started"} <= await told(client, name):
            await asyncio.sleep(0.05)
    return dict(pod)


async def test_what_the_page_tells_to_type_keeps_and_shows_what_was_deleted(
    up: UpProcess, tmp_path: Path
) -> None:
    home = tmp_path / "home"
    home.mkdir()
    reader = Reader(up, home)
    sweep, lists, shows, prunes, bucket = blocks()
    before = await failed(up, "report-7")
    await failed(up, "report-8")
    [swept] = await reader.type_all(sweep)
    assert swept.startswith("1 pod deleted (1 terminated)")

    _, listed, listed_json = await reader.type_all(lists)
    header, row = (line.split() for line in listed.splitlines())
    shown, example = (line.split() for line in blocks("text")[0].splitlines())
    assert header == shown
    assert [row[place] for place in (0, 1, 3, 4, 5)] == [example[place] for place in (0, 1, 3, 4, 5)]
    assert row[-1] == json.loads(listed_json)[0]["uid"] == before["metadata"]["uid"]

    manifest, logs, one_log, events, explained = await reader.type_all(shows)
    assert f"podlife archive show {before['metadata']['uid']} --archive {home}/pods" in explained
    assert "terminated: 2 terminated pods, 1 may stay; the oldest go first\n" in manifest
    assert "Missing:" not in manifest
    assert "exitCode: 3" in manifest
    assert logs == "==> setup (init) <==\nready\n\n==> main <==\nreport-7 failed: no more rows\n"
    assert one_log == "report-7 failed: no more rows\n"
    assert {"Scheduled", "Started"} <= set(events.split())

    would, did = await reader.type_all(prunes)
    assert would == "0 entries (0) would be removed.\n"
    assert did.startswith("0 entries removed (0), 1 left (")

    await failed(up, "report-9")
    async with serving_s3() as server:
        *exports, into_bucket, listed_there, shown_there = bucket.splitlines()
        assert {word.partition("=")[0] for line in exports for word in line.split()[1:]} == set(
            server.environment
        )
        reader.use(server)
        assert f"s3://{BUCKET}/pods" in into_bucket
        assert (await reader.type(into_bucket)).startswith("1 pod deleted (1 terminated)")
        assert "report-8" in await reader.type(listed_there)
        assert "report-8 failed: no more rows\n" in await reader.type(shown_there)
    assert [path.name.partition("_")[0] for path in home.glob("pods/*/*.gz")] == ["report-7"]
