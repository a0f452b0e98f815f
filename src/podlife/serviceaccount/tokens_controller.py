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
from podlife.api.views import Metadata, MetadataOnly
from podlife.client import SECRETS, SERVICE_ACCOUNTS, DeleteOptions
from podlife.controller import Controller, ControlPlane
from podlife.errors import ConfigError, ConflictError, NotFoundError
from podlife.workqueue import RateLimitedQueue

log = logging.getLogger(__name__)

_TYPE = "kubernetes.io/service-account-token"
_ACCOUNT, _UID = "kubernetes.io/service-account.name", "kubernetes.io/service-account.uid"
_CLAIM = "kubernetes.io/serviceaccount/"
_ISSUER = "kubernetes/serviceaccount"


class _Annotated(Metadata, rename="camel", gc=False):
    annotations: dict[str, str] = {}


class _Secret(msgspec.Struct, gc=False):
    metadata: _Annotated
    data: dict[str, str] = {}


class _Key(NamedTuple):
    """A secret, and the account it names: when both are gone, nothing else says which account it was."""

    namespace: str
    name: str
    account: str
    account_uid: str


def _key_of(secret: _Secret) -> _Key:
    meta = secret.metadata
    return _Key(meta.namespace, meta.name, meta.annotations.get(_ACCOUNT, ""), meta.annotations.get(_UID, ""))


class _SecretEvents:
    def __init__(self, queue: RateLimitedQueue[_Key]) -> None:
        self._queue = queue

    def on_add(self, obj: _Secret) -> None:
        self._queue.add(_key_of(obj))

    def on_update(self, old: _Secret, new: _Secret) -> None:
        self.on_add(new)

    def on_delete(self, obj: _Secret) -> None:
        self.on_add(obj)


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
        self._secrets.add_handler(_SecretEvents(self.queue))
        self._accounts.add_handler(self)

    async def run(self) -> None:
        if self._key_file is None:
            log.info("%s is disabled: --service-account-private-key-file is not set", self.name)
            await asyncio.Event().wait()
        await self.controller.run()

    def on_add(self, obj: MetadataOnly) -> None: ...

    def on_update(self, old: MetadataOnly, new: MetadataOnly) -> None: ...

    def on_delete(self, obj: MetadataOnly) -> None:
        """An account is gone: its secrets go, too."""
        namespace, name = obj.metadata.namespace, obj.metadata.name
        keys = [_key_of(each) for each in self._secrets.cache.list() if each.metadata.namespace == namespace]
        for key in keys:
            if key.account == name:
                self.queue.add(key)

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
            claims = {
                f"{_CLAIM}namespace": key.namespace,
                f"{_CLAIM}secret.name": key.name,
                f"{_CLAIM}service-account.name": key.account,
                f"{_CLAIM}service-account.uid": account_uid,
                "sub": f"system:serviceaccount:{key.namespace}:{key.account}",
            }
            added["token"] = _base64(self._sign(claims))
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
