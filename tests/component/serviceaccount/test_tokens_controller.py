"""Secrets with tokens: filled in once, worth something while they are there, and gone with their account."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from podlife.apiserver.assembly import assemble
from podlife.apiserver.authn import ADMIN, Authenticator
from podlife.apiserver.endpoints import ApiHandler
from podlife.apiserver.namespace import create_system_namespaces
from podlife.apiserver.service_accounts import ServiceAccountKeys, ServiceAccountTokens
from podlife.apiserver.storage import MemoryStore
from podlife.client import SECRETS, SERVICE_ACCOUNTS, Client
from podlife.controller import ControlPlane
from podlife.errors import ConfigError, NotFoundError, UnauthorizedError
from podlife.pki.jwt import make_signing_key
from podlife.serviceaccount import TokensController
from podlife.testing import LoopClock, virtual_time
from tests.kit.embedded import connect
from tests.kit.wait import until
from tests.workloads.runs import at_work

ROOT_CA = "-----BEGIN CERTIFICATE-----\n"


@asynccontextmanager
async def cluster(folder: Path) -> AsyncIterator[tuple[Client, ApiHandler]]:
    key = folder / "sa.key"
    key.write_bytes(make_signing_key())
    store, clock = MemoryStore(), LoopClock()
    tokens = ServiceAccountTokens(store, clock, ServiceAccountKeys(key))
    handler = assemble(store, clock=clock, authenticator=Authenticator(service_accounts=tokens))
    await create_system_namespaces(handler.registry, ADMIN)
    plane = ControlPlane(connect(handler), clock=clock)
    plane.add(TokensController(plane, root_ca=ROOT_CA, private_key_file=str(key)))
    async with at_work(plane.run):
        client = connect(handler)
        await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, "default")
        yield client, handler


def secret(name: str = "s", account: str = "robot", **annotations: str) -> Any:
    named = {"kubernetes.io/service-account.name": account, **annotations}
    return {"metadata": {"name": name, "annotations": named}, "type": "kubernetes.io/service-account-token"}


async def filled(client: Client, name: str = "s") -> dict[str, str]:
    async def data() -> dict[str, str]:
        found = await client.get(SECRETS, name, "default")
        return found.get("data") or {}

    encoded = await until(data)
    return {key: base64.b64decode(value).decode() for key, value in encoded.items()}


async def is_gone(client: Client, name: str = "s") -> bool:
    try:
        await client.get(SECRETS, name, "default")
    except NotFoundError:
        return True
    return False


def user_of(handler: ApiHandler, token: str) -> str:
    try:
        found = handler.authenticator.find_token(token)
    except UnauthorizedError as error:
        return str(error)
    return "" if found is None else found.user.name


@virtual_time
async def test_secret_gets_a_token_that_is_worth_something_while_it_is_there(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (client, handler):
        await client.create(SECRETS, secret(), "default")
        data = await filled(client)

        assert (data["ca.crt"], data["namespace"]) == (ROOT_CA, "default")
        assert user_of(handler, data["token"]) == "system:serviceaccount:default:robot"
        await client.patch(SECRETS, "s", {"data": {"token": None}}, "default")
        assert user_of(handler, data["token"]) == "Token does not match server's copy"
        await client.delete(SECRETS, "s", "default")
        assert user_of(handler, data["token"]) == "Token has been invalidated"


@virtual_time
async def test_secret_goes_with_its_account_and_the_next_account_does_not_get_it(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (client, handler):
        await client.create(SECRETS, secret(), "default")
        data = await filled(client)

        await client.delete(SERVICE_ACCOUNTS, "robot", "default")
        await until(lambda: is_gone(client))
        await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}}, "default")

        assert user_of(handler, data["token"]) == "Token has been invalidated"


@virtual_time
async def test_secret_of_no_account_or_of_a_former_one_is_deleted(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (client, _):
        await client.create(SECRETS, secret(account="nobody"), "default")
        former = {"kubernetes.io/service-account.uid": "former"}
        await client.create(SECRETS, secret("t", **former), "default")

        await until(lambda: is_gone(client))
        await until(lambda: is_gone(client, "t"))


@virtual_time
async def test_secret_of_another_type_is_left_alone(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (client, _):
        other = {**secret("other", account="nobody"), "type": "Opaque"}
        await client.create(SECRETS, other, "default")
        await client.create(SECRETS, secret(), "default")
        await filled(client)

        assert not (await client.get(SECRETS, "other", "default")).get("data")


@virtual_time
async def test_reference_of_an_account_goes_with_the_secret(tmp_path: Path) -> None:
    async with cluster(tmp_path) as (client, _):
        await client.create(SECRETS, secret(), "default")
        await filled(client)
        named = {"secrets": [{"name": "s"}, {"name": "kept"}]}
        await client.patch(SERVICE_ACCOUNTS, "robot", named, "default")

        await client.delete(SECRETS, "s", "default")

        async def is_removed() -> bool:
            account = await client.get(SERVICE_ACCOUNTS, "robot", "default")
            return account["secrets"] == [{"name": "kept"}]

        await until(is_removed)


@virtual_time
async def test_without_a_key_nothing_is_done_and_a_bad_key_is_an_error(tmp_path: Path) -> None:
    handler = assemble(MemoryStore(), clock=LoopClock(), authenticator=Authenticator())
    plane = ControlPlane(connect(handler), clock=LoopClock())
    idle = TokensController(plane)
    bad = tmp_path / "bad"
    bad.write_text("no key")

    with pytest.raises(TimeoutError):
        await asyncio.wait_for(idle.run(), 60)
    for name in (bad, tmp_path / "missing"):
        with pytest.raises(ConfigError, match="cannot use --service-account-private-key-file"):
            TokensController(plane, private_key_file=str(name))
