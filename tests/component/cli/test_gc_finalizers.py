"""`podlife gc finalizers remove` as a user types it: asked first, and told what was not done and why."""

from __future__ import annotations

from pathlib import Path

from podlife.client import PODS, Client, DeleteOptions
from tests.component.cli.commands import assert_one_line, on_terminal, podlife
from tests.component.cli.conftest import Server
from tests.kit.objects import pod
from tests.real.podgc.cluster import find_pod, make_node

BACKUP = "example.com/backup"
REMOVE = ("gc", "finalizers", "remove", "--allow", BACKUP, "--quarantine", "0s")


async def held(client: Client, name: str, namespace: str, node: str = "node-7") -> None:
    await client.create(PODS, pod(name, metadata={"finalizers": [BACKUP]}, nodeName=node), namespace)
    await client.patch(PODS, name, {"status": {"phase": "Failed"}}, namespace, subresource="status")
    await client.delete(PODS, name, namespace, options=DeleteOptions(grace_period_seconds=0))


async def test_without_a_terminal_somebody_has_to_have_said_yes(server: Server) -> None:
    result = await podlife(*REMOVE, "p", *server.admin)
    assert_one_line(result, "confirmation needs a terminal", "--yes")


async def test_what_is_not_taken_off_is_told_with_its_reason(server: Server, client: Client) -> None:
    await make_node(client, "node-1")
    await held(client, "there", "default", "node-1")
    result = await podlife(*REMOVE, "there", "missing", "--yes", *server.admin)
    assert (result.code, result.out) == (1, "")
    missing, there = result.err.splitlines()
    assert missing.startswith("podlife: no pod default/missing is held by a finalizer: ")
    assert there.startswith("podlife: nothing was taken off pod default/there: node node-1 exists: ")


async def test_it_asks_first_and_does_nothing_without_a_yes(server: Server, client: Client) -> None:
    await held(client, "p", "default")
    async with on_terminal(*REMOVE, "p", *server.admin) as terminal:
        await terminal.wait_for(f"Take {BACKUP} off 1 pod? [y/N]")
        terminal.type("n\n")
        await terminal.wait_for("Nothing was taken off.")
        assert await terminal.exit_code() == 1
    assert await find_pod(client, "p", "default") is not None
    async with on_terminal(
        "gc", "sweep", "--remove-finalizer", BACKUP, "--quarantine", "0s", *server.admin
    ) as terminal:
        await terminal.wait_for(f"Take {BACKUP} off 1 pod of nodes that are gone? [y/N]")
        terminal.type("y\n")
        await terminal.wait_for(f"{BACKUP} taken off pod default/p")
        assert await terminal.exit_code() == 0
    assert await find_pod(client, "p", "default") is None


async def test_what_a_policy_protects_keeps_its_finalizers(
    server: Server, client: Client, tmp_path: Path
) -> None:
    await held(client, "p", "default")
    policy = tmp_path / "policy.yaml"
    policy.write_text("apiVersion: podlife.dev/v1\nkind: PodGCPolicy\nprotect: {namespaces: [default]}\n")
    words = (*REMOVE, "p", "--yes", *server.admin)
    result = await podlife(*words, "--policy", str(policy))
    assert_one_line(result, "nothing was taken off pod default/p: protected by namespace default")
    assert (await podlife(*words)).code == 0
