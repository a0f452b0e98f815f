"""Fence checks that are programs: what confirms that a machine is dead, and that nothing else does."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import shlex
import sys
import time
from pathlib import Path

import pytest

from podlife.nodehealth.out_of_service import CommandCheck, FenceResult, FenceSubject, ProviderGoneCheck
from podlife.nodehealth.out_of_service.fence_checks.command import MOST_OUTPUT
from tests.kit.moved_time import use_up

SUBJECT = FenceSubject("n1", "u1", "aws:///i-1", ("10.0.0.1", "fd00::1"), 300.0)


def command(script: str, seconds: float = 60.0) -> CommandCheck:
    return CommandCheck(["/bin/sh", "-c", script, "sh"], seconds=seconds)


def provider(script: str, seconds: float = 60.0) -> ProviderGoneCheck:
    return ProviderGoneCheck(["/bin/sh", "-c", script, "sh"], seconds=seconds)


async def test_exit_code_0_confirms_it() -> None:
    answer = await command("exit 0").ask(SUBJECT)
    assert (answer.check, answer.result) == ("command sh", FenceResult.DEAD)


@pytest.mark.parametrize(
    ("script", "text"),
    [
        ("exit 1", "exit code 1"),
        ("echo it is on >&2; exit 3", "exit code 3: it is on"),
        ("echo told; exit 3", "exit code 3: told"),
        (r"printf 'a\033[31mred\nsecond'; exit 3", "exit code 3: a?[31mred"),
        ("kill -TERM $$", "ended by signal 15"),
    ],
)
async def test_any_other_end_does_not(script: str, text: str) -> None:
    answer = await command(script).ask(SUBJECT)
    assert (answer.result, answer.text) == (FenceResult.NOT_DEAD, text)


async def test_it_is_told_of_the_node_by_arguments_and_environment(tmp_path: Path) -> None:
    out = tmp_path / "out"
    script = (
        f'printf "%s|" "$@" "$PODLIFE_NODE_NAME" "$PODLIFE_NODE_UID" "$PODLIFE_NODE_PROVIDER_ID" '
        f'"$PODLIFE_NODE_INTERNAL_IPS" > {shlex.quote(str(out))}'
    )
    assert (await command(script).ask(SUBJECT)).result is FenceResult.DEAD
    told = ["n1", "u1", "aws:///i-1", "10.0.0.1,fd00::1"]
    assert out.read_text().split("|")[:-1] == told * 2
    await command(script).ask(FenceSubject("n1", "u1"))
    assert out.read_text().split("|")[:4] == ["n1", "u1", "", ""]


async def test_no_shell_reads_what_the_node_says() -> None:
    check = CommandCheck(
        [sys.executable, "-c", "import sys; sys.exit(sys.argv[3] != '; rm -rf $HOME `x`')"], seconds=60
    )
    assert (await check.ask(FenceSubject("n1", "u1", "; rm -rf $HOME `x`"))).result is FenceResult.DEAD


@pytest.mark.parametrize("provider_id", ["--force", "-x", "a\0b"])
async def test_a_node_cannot_give_the_program_options(provider_id: str) -> None:
    subject = FenceSubject("n1", "u1", provider_id)
    assert (await command("exit 0").ask(subject)).result is FenceResult.FAILED
    assert (await provider("echo gone").ask(subject)).result is FenceResult.FAILED


@pytest.mark.parametrize("argv", [["/no/such/program"], ["/"], ["/etc/passwd"]])
async def test_a_program_that_cannot_be_started_confirms_nothing(argv: list[str]) -> None:
    answer = await CommandCheck(argv, seconds=60).ask(SUBJECT)
    assert answer.result is FenceResult.FAILED
    assert answer.text.startswith("cannot be run: ")


def _is_alive(pid: int) -> bool:
    """A zombie that nobody has waited for yet is none."""
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    return False


async def _ends(pid: int) -> bool:
    deadline = time.monotonic() + 60
    while _is_alive(pid) and time.monotonic() < deadline:
        await asyncio.sleep(0.01)
    return not _is_alive(pid)


async def _is_there(path: Path) -> None:
    async with asyncio.timeout(60):
        while not path.exists():
            await asyncio.sleep(0.01)


async def test_one_that_hangs_confirms_nothing_and_is_killed_with_all_it_has_started(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    script = f"sleep 600 & echo $$ $! > {pids}.new; mv {pids}.new {pids}; trap '' TERM; wait"
    asking = asyncio.get_running_loop().create_task(command(script, seconds=600).ask(SUBJECT))
    await _is_there(pids)
    await use_up(600, asking)
    answer = await asking
    assert (answer.result, answer.text) == (FenceResult.TIMEOUT, "it did not end within 600 s")
    for pid in pids.read_text().split():
        assert await _ends(int(pid))


async def test_what_a_good_end_leaves_running_is_killed_and_not_waited_for(tmp_path: Path) -> None:
    """It holds the pipe that the program printed into."""
    pids = tmp_path / "pids"
    answer = await command(f"sleep 600 & echo $! > {shlex.quote(str(pids))}; exit 0").ask(SUBJECT)
    assert answer.result is FenceResult.DEAD
    assert await _ends(int(pids.read_text()))


async def test_who_is_cancelled_leaves_nothing_running(tmp_path: Path) -> None:
    pids = tmp_path / "pids"
    asking = asyncio.get_running_loop().create_task(
        command(f"echo $$ > {shlex.quote(str(pids))}.new; mv {pids}.new {pids}; sleep 600").ask(SUBJECT)
    )
    await _is_there(pids)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert await _ends(int(pids.read_text()))


async def test_output_is_read_up_to_a_bound_and_more_of_it_confirms_nothing(tmp_path: Path) -> None:
    few = await command(f"head -c {MOST_OUTPUT - 1} /dev/zero").ask(SUBJECT)
    assert few.result is FenceResult.DEAD
    printed = tmp_path / "printed"
    script = f"head -c {MOST_OUTPUT + 1000} /dev/zero; touch {shlex.quote(str(printed))}; cat /dev/zero"
    asking = asyncio.get_running_loop().create_task(command(script, seconds=600).ask(SUBJECT))
    await _is_there(printed)
    await use_up(600, asking)
    many = await asking
    assert many.result is FenceResult.TIMEOUT
    assert "printed more than 65536 bytes" in many.text


async def test_no_descriptor_is_left_open() -> None:
    await command("exit 0").ask(SUBJECT)
    # What earlier tests have left to the collector would be closed at some time during this one.
    gc.collect()
    before = set(Path("/proc/self/fd").iterdir())
    await command("exit 0").ask(SUBJECT)
    await CommandCheck(["/no/such/program"], seconds=60).ask(SUBJECT)
    assert set(Path("/proc/self/fd").iterdir()) == before


async def test_its_standard_input_is_empty() -> None:
    assert (await command('test -z "$(cat)"').ask(SUBJECT)).result is FenceResult.DEAD


# Whether a provider has the machine


@pytest.mark.parametrize(
    ("script", "result"),
    [
        ("echo gone", FenceResult.DEAD),
        ("printf ' gone\n\n'", FenceResult.DEAD),
        ("echo exists", FenceResult.NOT_DEAD),
        ("echo Gone", FenceResult.FAILED),
        ("echo gone exists", FenceResult.FAILED),
        ("true", FenceResult.FAILED),
        ("echo gone; exit 1", FenceResult.FAILED),
        ("echo gone >&2", FenceResult.FAILED),
        ('test "$1" = aws:///i-1 && echo gone', FenceResult.DEAD),
        ('test "$#" = 1 && echo gone', FenceResult.DEAD),
    ],
)
async def test_only_the_word_gone_with_exit_code_0_confirms_it(script: str, result: FenceResult) -> None:
    assert (await provider(script).ask(SUBJECT)).result is result


async def test_a_node_without_a_provider_id_is_never_confirmed() -> None:
    answer = await provider("echo gone").ask(FenceSubject("n1", "u1"))
    assert (answer.result, answer.text) == (FenceResult.FAILED, "the node has no providerID")
