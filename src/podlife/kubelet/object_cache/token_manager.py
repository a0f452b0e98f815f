"""Service account tokens, each bound to its pod, and renewed in time.

Tokens are requested with the TokenRequest API and kept in memory only. A token is renewed after 80 % of its lifetime,
or after a day. If renewal fails, the old one is used while it is valid.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta

from podlife.api.codec import Object, decode_object, parse_time
from podlife.api.names import check_dns_subdomain
from podlife.client import Client
from podlife.client.refs import SERVICE_ACCOUNTS
from podlife.clock import Clock
from podlife.errors import NotFoundError, PodlifeError
from podlife.kubelet.object_cache.single_flight import FALLBACK_SECONDS, SingleFlight
from podlife.kubelet.pod_fields import Pod

log = logging.getLogger(__name__)

_MAX_AGE = timedelta(hours=24)
_MAX_JITTER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _TokenKey:
    uid: str
    namespace: str
    pod_name: str
    account: str
    audience: str
    expiration_seconds: int


@dataclass(frozen=True, slots=True)
class _Token:
    text: str
    expires: datetime
    life: timedelta

    def should_be_renewed(self, now: datetime, jitter: timedelta) -> bool:
        is_old = now > self.expires - self.life + _MAX_AGE - jitter
        return is_old or now > self.expires - self.life / 5 - jitter


class TokenManager:
    def __init__(self, client: Client, clock: Clock, *, jitter: Callable[[], float] = random.random) -> None:
        self._client = client
        self._clock = clock
        self._jitter = jitter
        self._kept: dict[_TokenKey, _Token] = {}
        self._calls: SingleFlight[_Token] = SingleFlight()

    async def get(self, pod: Pod, *, audience: str, expiration_seconds: int) -> str:
        """Raises the client's error unless a valid token is cached."""
        metadata = pod["metadata"]
        account = (pod.get("spec") or {}).get("serviceAccountName") or "default"
        names = metadata["uid"], metadata["namespace"], metadata["name"], account
        key = _TokenKey(*names, audience, expiration_seconds)
        kept, now = self._kept.get(key), self._clock.now()
        jitter = timedelta(seconds=_MAX_JITTER_SECONDS * self._jitter())
        if kept is not None and not kept.should_be_renewed(now, jitter):
            return kept.text
        try:
            task_name = f"a token of {key.namespace}/{account} for {key.pod_name}"
            is_valid = kept is not None and now < kept.expires
            seconds = FALLBACK_SECONDS if is_valid else None
            token = await self._calls.join(key, task_name, lambda: self._request(key), seconds=seconds)
        except (PodlifeError, TimeoutError) as error:
            if kept is None or self._clock.now() > kept.expires:
                raise
            why = str(error) or "the server has not answered yet"
            log.warning("renewal of a token for %s/%s failed: %s", key.namespace, account, why)
            return kept.text
        return token.text

    def forget(self, uid: str) -> None:
        for key in [each for each in self._kept if each.uid == uid]:
            del self._kept[key]

    async def _request(self, key: _TokenKey) -> _Token:
        if check_dns_subdomain(key.account):
            raise NotFoundError(f'serviceaccounts "{key.account}" not found')
        path = SERVICE_ACCOUNTS.path(key.namespace, key.account, "token")
        try:
            reply = await self._client.request("POST", path, body=_token_request(key))
        except NotFoundError as error:
            if "name" in error.details:
                raise
            # Not the account but the endpoint is missing.
            raise NotFoundError("the API server does not have TokenRequest endpoints enabled") from None
        token = _read(decode_object(reply.body))
        now = self._clock.now()
        self._kept = {each: kept for each, kept in self._kept.items() if kept.expires > now}
        self._kept[key] = token
        return token


def _token_request(key: _TokenKey) -> Object:
    bound_to = {"kind": "Pod", "apiVersion": "v1", "name": key.pod_name, "uid": key.uid}
    spec = {
        "audiences": [key.audience] if key.audience else [],
        "expirationSeconds": key.expiration_seconds,
        "boundObjectRef": bound_to,
    }
    return {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec}


def _read(response: Object) -> _Token:
    try:
        status, seconds = response["status"], response["spec"]["expirationSeconds"]
        expires = parse_time(status["expirationTimestamp"])
        return _Token(str(status["token"]), expires, timedelta(seconds=int(seconds)))
    except (KeyError, TypeError, ValueError):
        raise PodlifeError("the API server answered a TokenRequest without a token or its end") from None
