"""`podlife gc plan` and `sweep` against a server, in every state that a pod can be in; and what goes wrong there."""

from __future__ import annotations

import json
import re
import signal
from pathlib import Path

import pytest

from podlife.client import Client
from tests.component.cli.commands import assert_one_line, last_words, on_terminal, podlife, started
from tests.component.cli.conftest import Server
from tests.component.cli.faulty_proxy import Answer, Cut, Fault, FaultyProxy, FirstDeletes, Hang, Truncate
from tests.kit.gc_states import FINALIZER, States
from tests.kit.wait import until

SWEEP = ("gc", "sweep", "--yes", "--terminated-pod-gc-threshold", "1")
PODS = "/api/v1/pods"
ONE_POD = "/api/v1/namespaces/gc/pods/[^/]+"


@pytest.fixture
def admin(server: Server) -> list[str]:
    return server.admin


async def everything(states: States) -> None:
    await states.terminated("done-0", "done-1", "done-2")
    await states.orphaned("orphan")
    await states.out_of_service("stuck")
    await states.unscheduled("never")
    await states.pod("alive")


async def test_a_selection_chooses_among_what_the_whole_cluster_decides(
    client: Client, states: States, admin: list[str]
) -> None:
    other = States(client, "other")
    await other.begin()
    await states.pod("a", phase="Failed", labels={"app": "x"})
    await states.pod("b", phase="Failed")
    await other.pod("c", phase="Failed", labels={"app": "x"})
    flags = ["--terminated-pod-gc-threshold", "1", "-o", "name", *admin]
    assert (await podlife("gc", "plan", *flags)).out == "gc/pod/a\ngc/pod/b\n"
    assert (await podlife("gc", "plan", "-A", *flags)).out == "gc/pod/a\ngc/pod/b\n"
    assert (await podlife("gc", "plan", "-n", "gc", "-l", "app=x", *flags)).out == "pod/a\n"
    assert (await podlife("gc", "plan", "-l", "app!=x", *flags)).out == "gc/pod/b\n"
    # By itself namespace `other` has no more than may stay, and the threshold is the cluster's.
    assert (await podlife("gc", "plan", "-n", "other", *flags)).out == ""
    swept = await podlife("gc", "sweep", "--yes", "-l", "app=x", "--terminated-pod-gc-threshold", "1", *admin)
    assert swept.code == 0
    assert (await states.names(), await other.names()) == ({"b"}, {"c"})


async def test_a_sweep_deletes_what_the_plan_says_after_the_quarantine_too(
    states: States, admin: list[str]
) -> None:
    await everything(states)
    flags = ["--terminated-pod-gc-threshold", "1", "--quarantine", "200ms"]
    result = await podlife("gc", "sweep", "--yes", *flags, *admin)
    assert (result.code, result.err) == (0, "")
    assert result.out.startswith("4 pods deleted (2 terminated, 1 out-of-service, 1 orphaned) in ")
    assert f"1 pod deleted before and held by {FINALIZER} (gc/never): marked Failed" in result.out
    assert await states.names() == {"done-2", "never", "alive"}
    held = await states.get("never")
    assert (held["status"]["phase"], held["metadata"]["finalizers"]) == ("Failed", [FINALIZER])
    assert (await states.get("alive"))["status"]["phase"] == "Running"


async def test_a_dry_run_shows_the_plan_and_deletes_nothing(states: States, admin: list[str]) -> None:
    await states.out_of_service("stuck")
    result = await podlife("gc", "sweep", "--dry-run", *admin)
    assert (result.code, "stuck" in result.out) == (0, True)
    assert await states.names() == {"stuck"}


@pytest.mark.parametrize(("answer", "left"), [("n", {"stuck"}), ("", {"stuck"}), ("y", set())])
async def test_on_a_terminal_it_asks_first(
    states: States, admin: list[str], answer: str, left: set[str]
) -> None:
    await states.out_of_service("stuck")
    async with on_terminal("gc", "sweep", *admin) as terminal:
        await terminal.wait_for("Delete 1 pod now (1 out-of-service)? [y/N]")
        assert await states.names() == {"stuck"}
        terminal.type(f"{answer}\n")
        await terminal.wait_for("1 pod deleted" if answer == "y" else "Nothing was deleted.")
        # A script that starts it must see that nothing was done.
        assert await terminal.exit_code() == (0 if answer == "y" else 1)
    assert await states.names() == left


async def test_whom_the_minute_has_no_room_for_yet_is_asked_about_too(
    states: States, admin: list[str]
) -> None:
    """A sweep waits for room: who says yes says it to all of them."""
    for name in ("stuck", "stuck-too"):
        await states.out_of_service(name)
    async with on_terminal("gc", "sweep", "--max-per-minute", "1", *admin) as terminal:
        await terminal.wait_for(
            "Delete 1 pod now (1 out-of-service) and up to 1 more as the minute has room? [y/N]"
        )
        terminal.type("n\n")
        assert await terminal.exit_code() == 1


async def test_with_nothing_to_collect_nothing_is_asked(states: States, admin: list[str]) -> None:
    await states.pod("alive")
    async with on_terminal("gc", "sweep", *admin) as terminal:
        await terminal.wait_for("Nothing to collect now")
        assert await terminal.exit_code() == 0
    assert "[y/N]" not in terminal.shown


@pytest.mark.parametrize(("keys", "code"), [("\x04", 1), ("", 130)], ids=["ctrl-d", "ctrl-c"])
async def test_leaving_the_question_deletes_nothing_and_says_so(
    states: States, admin: list[str], keys: str, code: int
) -> None:
    await states.out_of_service("stuck")
    async with on_terminal("gc", "sweep", *admin) as terminal:
        await terminal.wait_for("[y/N] ")
        await terminal.wait_for_sleep()
        terminal.type(keys) if keys else terminal.interrupt()
        await terminal.wait_for("othing was deleted")
        assert await terminal.exit_code() == code
    after = terminal.shown.partition("[y/N] ")[2].replace("^D", "").replace("\b", "").strip()
    assert after == ("Nothing was deleted." if keys else "podlife: interrupted: nothing was deleted")
    assert await states.names() == {"stuck"}


async def test_what_is_due_without_a_quarantine_is_planned_for_now(states: States, admin: list[str]) -> None:
    await states.orphaned("orphan")
    await states.unscheduled("never")
    flags = ["--quarantine", "0s", *admin]
    assert (await podlife("gc", "plan", *flags, "-n", "gc", "-o", "name")).out == "pod/orphan\npod/never\n"
    plan = json.loads((await podlife("gc", "plan", *flags, "-o", "json")).out)
    assert [(pod["name"], pod["reason"]) for pod in plan["victims"]] == [
        ("orphan", "orphaned"),
        ("never", "unscheduled"),
    ]
    assert plan["later"] == []
    async with on_terminal("gc", "sweep", *flags) as terminal:
        await terminal.wait_for("Delete 2 pods now (1 orphaned, 1 unscheduled)? [y/N] ")
        terminal.type("y\n")
        await terminal.wait_for("1 pod deleted (1 orphaned)")


async def test_on_a_terminal_it_shows_what_it_waits_for(states: States, admin: list[str]) -> None:
    await states.orphaned("orphan")
    async with on_terminal("gc", "sweep", "--yes", "--quarantine", "2s", *admin) as terminal:
        await terminal.wait_for("Quarantine of 1 pod ends in 2 s")
        await terminal.wait_for("1 pod deleted (1 orphaned)")
    assert "0/0" not in terminal.shown


@pytest.mark.parametrize(
    ("command", "right"),
    [
        (["plan"], "list pods in the whole cluster"),
        (["sweep", "--yes"], "list pods in the whole cluster"),
        # Both are asked for at once: the first that is refused is told.
        (["run", "--no-leader-elect"], "list (pods|nodes) in the whole cluster"),
        (["run"], "get leases.coordination.k8s.io in namespace kube-system"),
    ],
)
async def test_a_missing_right_names_verb_and_resource(
    server: Server, command: list[str], right: str
) -> None:
    result = await podlife("gc", *command, *server.nobody)
    said = last_words(result) if result.err.startswith("{") else result.err
    verb = right.split(maxsplit=1)[0]
    assert (result.code, len(said.splitlines())) == (1, 1), result
    assert re.search(rf"user nobody may not {right} \(403\): grant the verb {verb} on", said)


def overloaded(retry_after: str) -> Answer:
    body = {"kind": "Status", "status": "Failure", "reason": "TooManyRequests", "code": 429}
    return Answer(429, json.dumps(body).encode(), {"Retry-After": retry_after})


@pytest.mark.parametrize(
    ("fault", "words"),
    [
        (Truncate(), ["GET /api/v1/pods", "cannot be read"]),
        (Answer(200, b"<html>a portal</html>"), ["GET /api/v1/pods", "cannot be read"]),
        (Answer(500, b"no"), ["answered 500"]),
        (overloaded("30"), ["overloaded (429)"]),
        (Cut(), ["closed the connection"]),
        (Hang(), ["did not answer GET /api/v1/pods in"]),
    ],
    ids=["truncated", "html", "500", "429", "cut", "hang"],
)
async def test_a_list_that_cannot_be_had_is_one_line_and_nothing_is_deleted(
    proxy: FaultyProxy, states: States, fault: Fault, words: list[str]
) -> None:
    await states.out_of_service("stuck")
    proxy.fault = lambda seen: fault if seen.path == PODS else None
    result = await podlife("gc", "sweep", "--yes", "--request-timeout", "6s", *proxy.flags)
    assert_one_line(result, *words)
    assert proxy.count("DELETE", ".*") == 0
    assert await states.names() == {"stuck"}


async def test_an_answer_that_is_lost_is_no_second_victim(proxy: FaultyProxy, states: States) -> None:
    """The pod is deleted, the answer does not arrive, and somebody makes another under its name: that one lives."""
    await states.terminated("a", "b")
    proxy.fault = FirstDeletes(1, Cut(after=True))
    result = await podlife(*SWEEP, *proxy.flags)
    assert (result.code, result.err) == (0, "")
    assert "1 pod gone already" in result.out
    assert await states.names() == {"b"}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
async def test_interrupted_it_finishes_the_calls_under_way_and_tells_what_was_done(
    proxy: FaultyProxy, states: States, number: signal.Signals
) -> None:
    await states.terminated("a", "b")
    await states.orphaned("orphan")
    flags = ["--terminated-pod-gc-threshold", "1", "--quarantine", "1h", *proxy.flags]
    async with started("gc", "sweep", "--yes", *flags) as sweep:
        await until(lambda: proxy.count("DELETE", ONE_POD) == 1)
        result = await sweep.end(number)
    assert result.code == 130
    assert result.out.startswith("1 pod deleted (1 terminated)")
    assert "interrupted: 1 pod left; run it again to continue" in result.err
    assert await states.names() == {"b", "orphan"}


async def test_interrupted_when_all_is_done_it_claims_nothing_to_be_left(
    proxy: FaultyProxy, states: States
) -> None:
    await states.terminated("a", "b")
    proxy.fault = lambda seen: Hang() if seen.method == "POST" else None
    flags = ["--terminated-pod-gc-threshold", "1", *proxy.flags]
    async with started("gc", "sweep", "--yes", *flags) as sweep:
        await until(lambda: proxy.count("POST", ".*/events") == 1)
        result = await sweep.end(signal.SIGINT)
    assert result.code == 130
    assert result.out.startswith("1 pod deleted (1 terminated)")
    assert result.err == "podlife: interrupted after all work was done\n"


async def test_interrupted_twice_it_ends_at_once_and_tells_what_it_knows(
    proxy: FaultyProxy, states: States
) -> None:
    await states.terminated("a", "b", "c")
    proxy.fault = lambda seen: Hang() if seen.method == "DELETE" and seen.path.endswith("/b") else None
    async with on_terminal(*SWEEP, *proxy.flags) as terminal:
        await terminal.wait_for("1/2")
        terminal.interrupt()
        await terminal.wait_for("Stopping")
        terminal.interrupt()
        await terminal.wait_for("interrupted twice: requests in flight were abandoned")
        assert await terminal.exit_code() == 130
    assert "1 pod deleted (1 terminated)" in terminal.shown


async def test_interrupted_before_it_knows_what_to_do_it_says_that_nothing_was_done(
    proxy: FaultyProxy,
) -> None:
    proxy.fault = lambda seen: Hang() if seen.path == PODS else None
    async with started("gc", "sweep", "--yes", *proxy.flags) as sweep:
        await until(lambda: proxy.count("GET", PODS))
        result = await sweep.end(signal.SIGINT)
    assert (result.code, result.out, result.err) == (130, "", "podlife: interrupted: nothing was deleted\n")


def guarded(folder: Path, guards: str) -> list[str]:
    """A policy under which one terminated pod may stay."""
    policy = folder / "policy.yaml"
    head = "apiVersion: podlife.dev/v1\nkind: PodGCPolicy\nupstream: {terminated: {threshold: 1}}\n"
    policy.write_text(f"{head}guards: {{{guards}}}\n")
    return ["--policy", str(policy)]


async def test_a_sweep_that_only_observes_ends_with_1_and_says_that_nothing_goes(
    states: States, admin: list[str], tmp_path: Path
) -> None:
    await states.terminated("a", "b", "c")
    policy = guarded(tmp_path, "observeOnly: true")
    result = await podlife("gc", "sweep", "--yes", *policy, *admin)
    assert (result.code, result.err) == (1, "")
    assert "2 pods would be collected (observe-only): 2 terminated." in result.out
    assert "to collect now" not in result.out
    assert (await podlife("gc", "sweep", "--dry-run", *policy, *admin)).code == 0
    assert await states.names() == {"a", "b", "c"}


async def test_a_sweep_that_only_observes_ends_with_1_when_a_pod_stays_in_quarantine(
    states: States, admin: list[str]
) -> None:
    await states.orphaned("a")
    flags = ["--observe", "--quarantine", "1h", *admin]
    assert (await podlife("gc", "sweep", "--yes", *flags)).code == 1
    assert (await podlife("gc", "sweep", "--dry-run", *flags)).code == 0
    assert await states.names() == {"a"}
