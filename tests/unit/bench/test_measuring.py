"""What the benchmarks measure with: a table that says what was missed, a process's cost, a wire that is watched."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path

from bench.processes import cost_of, resident_bytes
from bench.relay import relay
from bench.report import Goal, Table

from tests.kit.real_pki import Pki


def table(*rows: tuple[str, float | None, float, Goal | None]) -> Table:
    made = Table("title", ("theirs", "ours"))
    for row in rows:
        made.add(*row)
    return made


def test_a_ratio_within_its_goal_is_reached_and_one_beyond_is_missed() -> None:
    made = table(
        ("rate", 100.0, 300.0, Goal.at_least(3.0)),
        ("slow", 100.0, 299.0, Goal.at_least(3.0)),
        ("memory", 500.0, 101.0, Goal.at_most(1 / 5)),
        ("no goal", 1.0, 99.0, None),
    )
    assert made.missed == ["slow", "memory"]


def test_a_figure_that_stands_alone_is_held_against_its_bound() -> None:
    made = table(
        ("fits", None, 1.0, Goal.at_most_value(1.0)), ("too much", None, 1.1, Goal.at_most_value(1.0))
    )
    assert made.missed == ["too much"]
    assert [line.split()[-1] for line in str(made).splitlines()[2:]] == ["reached", "MISSED"]


def test_a_ratio_without_anything_beside_it_is_missed() -> None:
    assert table(("rate", None, 300.0, Goal.at_least(3.0))).missed == ["rate"]


def test_the_cost_of_a_process_counts_what_it_did() -> None:
    work = "data = bytearray(64 << 20); sum(range(3_000_000)); print('done', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", work], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None
        process.stdout.readline()
        cost = cost_of(process.pid)
        process.communicate(b"\n")
    assert cost is not None
    assert cost.cpu_seconds > 0
    assert cost.peak_mb > 64
    assert resident_bytes(os.getpid()) > 1 << 20


def test_a_process_that_has_ended_has_no_cost_any_more() -> None:
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait(30)
    assert cost_of(process.pid) is None


async def test_the_relay_passes_requests_on_and_notes_those_of_its_method(tmp_path: Path) -> None:
    import ssl

    pki = Pki(tmp_path)
    certificate, key = pki.issue_server()
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    received: list[bytes] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while head := await reader.readline():
            received.append(head)
            writer.write(b"answer\n")
            await writer.drain()
        writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0, ssl=tls)
    seen: list[float] = []
    async with server, relay(server.sockets[0].getsockname()[:2], pki.ca_file, "DELETE", seen.append) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        for line in (b"GET /pods\n", b"DELETE /pods/a\n", b"DELETE /pods/b\n"):
            writer.write(line)
            assert await asyncio.wait_for(reader.readline(), 10) == b"answer\n"
        writer.close()
        await writer.wait_closed()
    assert received == [b"GET /pods\n", b"DELETE /pods/a\n", b"DELETE /pods/b\n"]
    assert len(seen) == 2
