"""Tokens in secrets of type `kubernetes.io/service-account-token`, which users create for programs outside the cluster.

The controller fills in token, CA and namespace, and deletes the secret with its account. The token has no end: it is
valid as long as the secret has it. Without a private key it does nothing, as kube-controller-manager's.
"""

from __future__ import annotations

import asyncio
import logging
from base64 import b64encode
from pathlib import Path
from typing import NamedTuple

import msgspec

from podlife.api.codec import Object
from podlife.api.views import MetadataOnly
from podlife.client import SECRETS, SERVICE_ACCOUNTS, DeleteOptions
from podlife.controller import Controller, ControlPlane
from podlife.errors import ConfigError, ConflictError, NotFoundError
from podlife.serviceaccount.controllers import AnnotatedMetadata, Enqueue
from podlife.workqueue import RateLimitedQueue

log = logging.getLogger(__name__)

_TYPE = "kubernetes.io/service-account-token"
_ACCOUNT, _UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
_CLAIM = "kubernetes.io/serviceaccount/"
_ISSUER = "kubernetes/serviceaccount"


class _Secret(msgspec.Struct, gc=False):
    metadata: AnnotatedMetadata
    data: dict[str, str] = {}


class _Key(NamedTuple):
    """A secret, and the account it names: when both are gone, nothing else says which account it was."""

    namespace: str
    name: str
    account: str
    account_uid: str


def _key_of(secret: _Secret) -> _Key:
    meta = secret.metadata
    named = (meta.annotations.get(each, "") for each in (_ACCOUNT, _UID))
    return _Key(meta.namespace, meta.name, *named)


class TokensController:
    """Upstream's serviceaccount-token-controller. Raises ConfigError if the key cannot be used."""

    name = "serviceaccount-token-controller"

    def __init__(self, plane: ControlPlane, *, root_ca: str = "", private_key_file: str = "") -> None:
        self._client = plane.client
        self._key_file = Path(private_key_file) if private_key_file else None
        self._root_ca = _base64(root_ca)
        self.queue: RateLimitedQueue[_Key] = RateLimitedQueue("serviceaccount_tokens")
        self.controller = Controller(self.name, self.queue, self._reconcile)
        if self._key_file is None:
            return
        self._sign({})
        self._accounts = plane.informer(SERVICE_ACCOUNTS, view=MetadataOnly)
        self._secrets = plane.informer(SECRETS, view=_Secret, field_selector=f"type={_TYPE}")
        self._secrets.add_handler(Enqueue(self.queue, lambda secret: (_key_of(secret),)))
        self._accounts.add_handler(Enqueue(self.queue, self._keys_of_account))

    async def run(self) -> None:
        if self._key_file is None:
            log.info("%s is disabled: --service-account-private-key-file is not set", self.name)
            await asyncio.Event().wait()
        await self.controller.run()

    def _keys_of_account(self, account: MetadataOnly) -> list[_Key]:
        keys = map(_key_of, self._secrets.cache.list())
        meta = account.metadata
        return [key for key in keys if (key.namespace, key.account) == (meta.namespace, meta.name)]

    async def _reconcile(self, key: _Key) -> None:
        secret = self._secrets.cache.get(key.namespace, key.name)
        try:
            if secret is None:
                await self._remove_reference(key)
            elif (uid := await self._account_uid(key)) is None:
                options = DeleteOptions(uid=secret.metadata.uid)
                await self._client.delete(SECRETS, key.name, key.namespace, options=options)
            else:
                await self._fill_in(key, secret, uid)
        except (NotFoundError, ConflictError):
            # Gone, or changed meanwhile: the new state arrives with its own event.
            return

    async def _account_uid(self, key: _Key) -> str | None:
        """None if the account does not exist, or is not the one that the secret names."""
        cached = self._accounts.cache.get(key.namespace, key.account)
        if cached is not None and key.account_uid in ("", cached.metadata.uid):
            return cached.metadata.uid
        try:
            # The cache may be behind: a secret is only deleted after the server has said so.
            found = await self._client.get(SERVICE_ACCOUNTS, key.account, key.namespace, view=MetadataOnly)
        except NotFoundError:
            return None
        return found.metadata.uid if key.account_uid in ("", found.metadata.uid) else None

    async def _fill_in(self, key: _Key, secret: _Secret, account_uid: str) -> None:
        added: dict[str, str] = {}
        if self._root_ca and secret.data.get("ca.crt") != self._root_ca:
            added["ca.crt"] = self._root_ca
        if not secret.data.get("namespace"):
            added["namespace"] = _base64(key.namespace)
        if not secret.data.get("token"):
            names = ("namespace", "secret.name", "service-account.name", "service-account.uid")
            values = (key.namespace, key.name, key.account, account_uid)
            claims = {f"{_CLAIM}{name}": value for name, value in zip(names, values, strict=True)}
            user = f"system:serviceaccount:{key.namespace}:{key.account}"
            added["token"] = _base64(self._sign({**claims, "sub": user}))
        if not added:
            return
        meta = secret.metadata
        annotations = {_ACCOUNT: key.account, _UID: account_uid}
        identity = {"uid": meta.uid, "resourceVersion": meta.resource_version}
        patch = {"metadata": {**identity, "annotations": annotations}, "data": added}
        await self._client.patch(SECRETS, key.name, patch, key.namespace)

    async def _remove_reference(self, key: _Key) -> None:
        if self._accounts.cache.get(key.namespace, key.account) is None:
            return
        account: Object = await self._client.get(SERVICE_ACCOUNTS, key.account, key.namespace)
        meta, secrets = account["metadata"], account.get("secrets") or []
        kept = [each for each in secrets if each.get("name") != key.name]
        if kept != secrets and key.account_uid in ("", meta["uid"]):
            identity = {"uid": meta["uid"], "resourceVersion": meta["resourceVersion"]}
            patch = {"metadata": identity, "secrets": kept or None}
            await self._client.patch(SERVICE_ACCOUNTS, key.account, patch, key.namespace)

    def _sign(self, claims: Object) -> str:
        """The file is read each time: it is replaced when the key is rotated."""
        from podlife.pki.jwt import load_signing_key

        assert self._key_file is not None
        try:
            return load_signing_key(self._key_file.read_bytes()).sign({"iss": _ISSUER, **claims})
        except (OSError, ValueError) as error:
            raise ConfigError(
                f"cannot use --service-account-private-key-file {self._key_file}: {error}"
            ) from None


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
