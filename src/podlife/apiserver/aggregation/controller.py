"""Controller of APIServices: checks the servers behind them, and offers those that respond.

Each APIService with a Service has a task: its server is asked for its resources, at first and after a failure soon
again, then every 30 seconds. What it answered is in discovery, and its condition Available says how it went. One that
hangs delays no other.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import replace

import msgspec

from podlife.api.codec import Object, decode_object
from podlife.apiserver.aggregation.proxy import RemoteApiProxy, RemoteError
from podlife.apiserver.aggregation.remote_api import RemoteApi, discovered, remote_api
from podlife.apiserver.authn import UserInfo
from podlife.apiserver.catalog import RemoteVersion
from podlife.apiserver.registry import Registry
from podlife.apiserver.registry.update import commit_change
from podlife.apiserver.service_endpoints import UnresolvedError
from podlife.apiserver.storage import CompactedError, Key, StoreError
from podlife.apiserver.strategies.apiregistration import available_condition
from podlife.errors import ApiError
from podlife.wire import Request, Response

log = logging.getLogger(__name__)

_API_SERVICES = "apiservices.apiregistration.k8s.io"
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 5.0
_PERIOD_SECONDS = 30.0
_AVAILABLE = "Available"


class Aggregator:
    """The APIs of other servers. `run` ends when the store closes or the task is cancelled."""

    def __init__(self, registry: Registry, proxy: RemoteApiProxy) -> None:
        self._registry = registry
        self._proxy = proxy
        self._apis: dict[tuple[str, str], RemoteApi] = {}
        self._checks: dict[str, tuple[RemoteApi, asyncio.Task[None]]] = {}

    async def answer(self, request: Request, user: UserInfo) -> Response | None:
        """The answer of another server, or None for a path that none of them serves."""
        if not self._apis:
            return None
        parts = request.path.split("/", 4)
        api = self._apis.get((parts[2], parts[3])) if len(parts) > 3 and parts[1] == "apis" else None
        if api is None or self._registry.catalog.is_local(api.group, api.version):
            return None
        if not self._registry.catalog.remote[api.group, api.version].is_fresh:
            raise ApiError("service unavailable", code=503, reason="ServiceUnavailable")
        return await self._proxy.answer(api, request, user)

    async def run(self) -> None:
        store = self._registry.store
        async with asyncio.TaskGroup() as group:
            while True:
                subscription = store.subscribe(_API_SERVICES, since=store.revision)
                self._follow(group)
                try:
                    while True:
                        await subscription.next()
                        self._follow(group)
                except CompactedError:
                    continue  # fell behind: look at all of them again
                except StoreError:
                    return
                finally:
                    subscription.close()

    def _follow(self, group: asyncio.TaskGroup) -> None:
        """Check the APIs that are stored now, and no others. There are few that are not local."""
        records = self._registry.store.list(_API_SERVICES)
        objects = [decode_object(record.value) for record in records if b'"service"' in record.value]
        wanted = {api.name: api for each in objects if (api := remote_api(each)) is not None}
        for name, (api, task) in list(self._checks.items()):
            if wanted.get(name) != api:
                task.cancel()
                del self._checks[name]
        for name, api in wanted.items():
            if name not in self._checks:
                task = group.create_task(self._keep_checking(api), name=f"APIService {name}")
                self._checks[name] = (api, task)
        self._apis = {(api.group, api.version): api for api in wanted.values()}
        known = self._registry.catalog.remote
        self._registry.catalog.set_remote(
            {key: _version(api, known.get(key)) for key, api in self._apis.items()}
        )

    async def _keep_checking(self, api: RemoteApi) -> None:
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                is_available = await self._check(api)
            except (ApiError, StoreError) as error:
                log.warning("status of APIService %s not written: %s", api.name, error)
                is_available = False
            except Exception:  # a failure of one must affect neither the server nor others
                log.exception("the check of APIService %s failed", api.name)
                is_available = False
            pause = _FIRST_PAUSE_SECONDS if is_available else min(2 * pause, _LONGEST_PAUSE_SECONDS)
            await asyncio.sleep(_PERIOD_SECONDS if is_available else pause)

    async def _check(self, api: RemoteApi) -> bool:
        status, reason, message = "False", "", ""
        resources: list[Object] | None = None
        try:
            document = await self._proxy.get_document(api)
            resources = discovered(msgspec.json.decode(document).get("resources"), api)
            status, reason, message = "True", "Passed", "all checks passed"
        except UnresolvedError as error:
            reason, message = error.reason, error.message
        except RemoteError as error:
            reason, message = "FailedDiscoveryCheck", str(error)
        except (ValueError, AttributeError, RecursionError) as error:
            reason, message = "FailedDiscoveryCheck", f"invalid discovery document: {error}"
        self._offer(api, resources)
        await self._report(api, status, reason, message)
        return resources is not None

    def _offer(self, api: RemoteApi, resources: list[Object] | None) -> None:
        """What it answered last is still shown while it does not, as stale."""
        catalog, key = self._registry.catalog, (api.group, api.version)
        before = catalog.remote.get(key)
        if before is None or self._apis.get(key) != api:
            return
        now = replace(before, is_fresh=resources is not None)
        if resources is not None:
            now = replace(now, resources=resources)
        if now != before:
            catalog.set_remote({**catalog.remote, key: now})

    async def _report(self, api: RemoteApi, status: str, reason: str, message: str) -> None:
        key = Key(_API_SERVICES, "", api.name)
        registry = self._registry
        async with registry.store.locked(key):
            record = registry.store.get(key)
            if record is None or remote_api(decode_object(record.value)) != api:
                return
            old, new = decode_object(record.value), decode_object(record.value)
            conditions = new["status"].get("conditions") or []
            known: Object = next((each for each in conditions if each.get("type") == _AVAILABLE), {})
            wanted = available_condition(status, reason, message, registry.clock.now())
            if known.get("status") == status:
                wanted["lastTransitionTime"] = known.get("lastTransitionTime")
            kept = [wanted if each is known else each for each in conditions]
            new["status"]["conditions"] = kept if known else [*kept, wanted]
            await commit_change(registry, record, new, old, dry_run=False)


def _version(api: RemoteApi, known: RemoteVersion | None) -> RemoteVersion:
    made = RemoteVersion(api.group_priority, api.version_priority)
    return made if known is None else replace(made, resources=known.resources, is_fresh=known.is_fresh)
