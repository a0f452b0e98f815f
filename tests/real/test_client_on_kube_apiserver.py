"""podlife.client against kube-apiserver: every way to prove who one is, and a server that has too much to do."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable
from contextlib import aclosing
from pathlib import Path
from typing import Any

import pytest

from podlife.client import CONFIG_MAPS, PODS, Client, Flags, ListOptions, Ref, load
from podlife.errors import ConfigError, ExpiredError, ForbiddenError, UnauthorizedError
from tests.kit.real_parts import Server, Settings, write_kubeconfig

REVIEWS = Ref("authentication.k8s.io", "v1", "selfsubjectreviews", namespaced=False)

PLUGIN = """
import json, pathlib, sys
runs = pathlib.Path(sys.argv[1])
runs.write_text(runs.read_text() + "x" if runs.exists() else "x")
token = pathlib.Path(sys.argv[2]).read_text()
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",
                  "status": {"token": token}}))
"""


def client_of(kubeconfig: Path) -> Client:
    return Client.connect(load(Flags(kubeconfig=str(kubeconfig)), {}))


async def who_am_i(kubeconfig: Path) -> str:
    async with client_of(kubeconfig) as client:
        review: dict[str, Any] = await client.create(REVIEWS, {"kind": "SelfSubjectReview"})
    return str(review["status"]["userInfo"]["username"])


async def test_a_token_in_the_kubeconfig_is_who_one_is(kube: Server) -> None:
    assert await who_am_i(kube.kubeconfig_for("nobody")) == "nobody"


async def test_a_client_certificate_is_who_one_is(kube: Server) -> None:
    assert await who_am_i(kube.kubeconfig_with_certificate("certified", "system:masters")) == "certified"


async def test_a_certificate_given_inline_is_who_one_is(kube: Server, tmp_path: Path) -> None:
    assert kube.pki is not None
    import base64

    certificate, key = kube.pki.issue_client("inline", "people")
    user = {
        "client-certificate-data": base64.b64encode(certificate.read_bytes()).decode(),
        "client-key-data": base64.b64encode(key.read_bytes()).decode(),
    }
    assert await who_am_i(write_kubeconfig(tmp_path / "config", kube, user)) == "inline"


async def test_a_token_file_is_who_one_is(kube: Server, tmp_path: Path) -> None:
    token = tmp_path / "token"
    token.write_text(kube.tokens["nobody"])
    assert await who_am_i(write_kubeconfig(tmp_path / "config", kube, {"tokenFile": str(token)})) == "nobody"


def exec_kubeconfig(kube: Server, folder: Path, token: str) -> tuple[Path, Path, Path]:
    """A kubeconfig with an exec plugin, the file where it counts its runs, the file with its token."""
    script, runs, token_file = folder / "plugin.py", folder / "runs", folder / "token"
    script.write_text(PLUGIN)
    token_file.write_text(token)
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": sys.executable,
        "args": [str(script), str(runs), str(token_file)],
        "interactiveMode": "Never",
    }
    return write_kubeconfig(folder / "config", kube, {"exec": plugin}), runs, token_file


async def test_an_exec_plugin_is_run_once_for_many_requests(kube: Server, tmp_path: Path) -> None:
    kubeconfig, runs, _ = exec_kubeconfig(kube, tmp_path, kube.tokens["admin"])
    async with client_of(kubeconfig) as client:
        for _ in range(3):
            await client.list(PODS, "default")
    assert runs.read_text() == "x"


async def test_an_exec_plugin_is_run_again_when_its_token_is_refused(kube: Server, tmp_path: Path) -> None:
    kubeconfig, runs, token = exec_kubeconfig(kube, tmp_path, "expired")
    async with client_of(kubeconfig) as client:
        with pytest.raises(UnauthorizedError):
            await client.list(PODS, "default")
        token.write_text(kube.tokens["admin"])
        await client.list(PODS, "default")
    assert len(runs.read_text()) >= 2


async def test_an_exec_plugin_that_fails_says_so_in_one_line(kube: Server, tmp_path: Path) -> None:
    plugin = {
        "apiVersion": "client.authentication.k8s.io/v1",
        "command": "/bin/false",
        "interactiveMode": "Never",
    }
    kubeconfig = write_kubeconfig(tmp_path / "config", kube, {"exec": plugin})
    async with client_of(kubeconfig) as client:
        with pytest.raises(ConfigError) as caught:
            await client.list(PODS, "default")
    assert "\n" not in str(caught.value)
    assert "/bin/false" in str(caught.value)


async def test_acting_as_another_user_is_up_to_the_server(kube: Server) -> None:
    flags = Flags(kubeconfig=str(kube.kubeconfig), request_as="nobody")
    async with Client.connect(load(flags, {})) as client:
        with pytest.raises(ForbiddenError, match='User "nobody"'):
            await client.list(PODS, "default")


async def test_a_watch_from_a_compacted_revision_has_expired(
    start_kube: Callable[[Settings], Server],
) -> None:
    # The watch cache would answer from a history of its own.
    server = start_kube(Settings(flags=("--watch-cache=false",)))
    async with client_of(server.kubeconfig) as client:
        start = (await client.list(CONFIG_MAPS, "default")).resource_version
        for number in range(3):
            made = await client.create(CONFIG_MAPS, {"metadata": {"name": f"m-{number}"}}, "default")
        server.compact(made["metadata"]["resourceVersion"])
        async with (
            asyncio.timeout(120),
            aclosing(client.watch(CONFIG_MAPS, "default", resource_version=start)) as events,
        ):
            with pytest.raises(ExpiredError):
                await anext(events)


async def test_a_page_of_a_compacted_list_has_expired(start_kube: Callable[[Settings], Server]) -> None:
    server = start_kube(Settings(flags=("--watch-cache=false",)))
    names = [f"m-{number}" for number in range(5)]
    async with client_of(server.kubeconfig) as client:
        for name in names:
            made = await client.create(CONFIG_MAPS, {"metadata": {"name": name}}, "default")
        pages = client.pages(CONFIG_MAPS, "default", options=ListOptions(limit=2))
        async with aclosing(pages):
            await anext(pages)
            late = await client.create(CONFIG_MAPS, {"metadata": {"name": "m-9"}}, "default")
            assert late["metadata"]["resourceVersion"] != made["metadata"]["resourceVersion"]
            server.compact(late["metadata"]["resourceVersion"])
            with pytest.raises(ExpiredError):
                await anext(pages)


async def test_a_storm_of_429_slows_the_client_down_and_loses_nothing(
    start_kube: Callable[[Settings], Server],
) -> None:
    narrow = (
        "--enable-priority-and-fairness=false",
        "--max-requests-inflight=2",
        "--max-mutating-requests-inflight=1",
    )
    server = start_kube(Settings(flags=narrow))
    await _allow_everything(server, "nobody")
    names = {f"m-{number}" for number in range(24)}
    async with client_of(server.kubeconfig_for("nobody")) as client:
        before = client.limiter.state
        async with asyncio.TaskGroup() as group:
            for name in names:
                obj = {"metadata": {"name": name}, "data": {"k": "x" * 100_000}}
                group.create_task(client.create(CONFIG_MAPS, obj, "default"))
        assert client.limiter.state.round > before.round, "the server never refused: the storm did not happen"
        assert client.limiter.state.limit < before.limit
    async with client_of(server.kubeconfig) as client:
        page = await client.list(CONFIG_MAPS, "default")
    assert names <= {item["metadata"]["name"] for item in page.items}


async def _allow_everything(server: Server, user: str) -> None:
    """The bounds on requests in flight do not hold for system:masters, so somebody else must ask."""
    binding = {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "ClusterRoleBinding",
        "metadata": {"name": user},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [{"kind": "User", "name": user}],
    }
    async with client_of(server.kubeconfig) as client:
        await client.request(
            "POST",
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            body=json.dumps(binding).encode(),
        )
