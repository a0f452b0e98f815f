"""Tokens of service accounts, each bound to its pod, renewed in time.

A token is requested with the TokenRequest API and kept in memory only. It is renewed after 80 % of its lifetime, or
after a day. If renewal fails, the old one is used while it is valid.
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
from podlife.kubelet.object_cache.single_flight import PATIENCE_SECONDS, SingleFlight
from podlife.kubelet.pod_fields import Pod

log = logging.getLogger(__name__)

_OLDEST = timedelta(hours=24)
_MOST_JITTER_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class _Wish:
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
        is_old = now > self.expires - self.life + _OLDEST - jitter
        return is_old or now > self.expires - self.life / 5 - jitter


class TokenManager:
    def __init__(self, client: Client, clock: Clock, *, jitter: Callable[[], float] = random.random) -> None:
        self._client = client
        self._clock = clock
        self._jitter = jitter
        self._kept: dict[_Wish, _Token] = {}
        self._calls: SingleFlight[_Token] = SingleFlight()

    async def get(self, pod: Pod, *, audience: str, expiration_seconds: int) -> str:
        """Raises the client's error where there is no valid one to answer with."""
        metadata = pod["metadata"]
        account = (pod.get("spec") or {}).get("serviceAccountName") or "default"
        names = metadata["uid"], metadata["namespace"], metadata["name"], account
        wish = _Wish(*names, audience, expiration_seconds)
        kept, now = self._kept.get(wish), self._clock.now()
        jitter = timedelta(seconds=_MOST_JITTER_SECONDS * self._jitter())
        if kept is not None and not kept.should_be_renewed(now, jitter):
            return kept.text
        try:
            task_name = f"a token of {wish.namespace}/{account} for {wish.pod_name}"
            is_valid = kept is not None and now < kept.expires
            seconds = PATIENCE_SECONDS if is_valid else None
            token = await self._calls.join(wish, task_name, lambda: self._ask(wish), seconds=seconds)
        except (PodlifeError, TimeoutError) as error:
            if kept is None or self._clock.now() > kept.expires:
                raise
            why = str(error) or "the server has not answered yet"
            log.warning("renewal of a token for %s/%s failed: %s", wish.namespace, account, why)
            return kept.text
        return token.text

    def forget(self, uid: str) -> None:
        for wish in [each for each in self._kept if each.uid == uid]:
            del self._kept[wish]

    async def _ask(self, wish: _Wish) -> _Token:
        if check_dns_subdomain(wish.account):
            raise NotFoundError(f'serviceaccounts "{wish.account}" not found')
        path = SERVICE_ACCOUNTS.path(wish.namespace, wish.account, "token")
        try:
            reply = await self._client.request("POST", path, body=_token_request(wish))
        except NotFoundError as error:
            if "name" in error.details:
                raise
            # Not the account is missing but the whole endpoint.
            raise NotFoundError("the API server does not have TokenRequest endpoints enabled") from None
        token = _read(decode_object(reply.body))
        now = self._clock.now()
        self._kept = {each: kept for each, kept in self._kept.items() if kept.expires > now}
        self._kept[wish] = token
        return token


def _token_request(wish: _Wish) -> Object:
    bound_to = {"kind": "Pod", "apiVersion": "v1", "name": wish.pod_name, "uid": wish.uid}
    spec = {
        "audiences": [wish.audience] if wish.audience else [],
        "expirationSeconds": wish.expiration_seconds,
        "boundObjectRef": bound_to,
    }
    return {"kind": "TokenRequest", "apiVersion": "authentication.k8s.io/v1", "spec": spec}


def _read(answer: Object) -> _Token:
    try:
        status, seconds = answer["status"], answer["spec"]["expirationSeconds"]
        expires = parse_time(status["expirationTimestamp"])
        return _Token(str(status["token"]), expires, timedelta(seconds=int(seconds)))
    except (KeyError, TypeError, ValueError):
        raise PodlifeError("the API server answered a TokenRequest without a token or its end") from None
