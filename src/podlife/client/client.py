"""The verbs of the Kubernetes API over any transport.

Objects are returned as plain dictionaries, which can be written back, or as a `view` that declares only the fields
its reader needs. Error responses are typed exceptions. One limiter admits all requests; each has one deadline, within
which only requests that are safe to repeat are retried (see `retry`).
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlencode

from podlife.api.codec import Object, encode
from podlife.client.limiter import Limiter
from podlife.client.options import (
    METADATA_ONLY,
    METADATA_ONLY_LIST,
    DeleteOptions,
    ListOptions,
    LogOptions,
    PatchType,
    WatchOptions,
    WriteOptions,
)
from podlife.client.refs import PODS, Ref
from podlife.client.rest_client import Reply, RestClient
from podlife.client.transport import USER_AGENT
from podlife.client.views import BadAnswerError, Page, T, decode, decode_page
from podlife.client.watch import Bookmark, WatchEvent, WatchTarget, watch
from podlife.errors import ConfigError, ExpiredError
from podlife.wire import Query, Request

if TYPE_CHECKING:
    from podlife.client.connection import Connection
    from podlife.client.streams import CommandSession, ForwardedConnection, WebSocketTransport
    from podlife.client.transport import Transport

_PAGE = 500
# A page that holds any list.
_EVERYTHING = 1_000_000_000


class Client:
    """One per API server. Close it, or use it as an async context manager."""

    def __init__(
        self,
        transport: Transport,
        *,
        limiter: Limiter | None = None,
        timeout_seconds: float = 60.0,
        namespace: str = "default",
        on_warning: Callable[[str], None] | None = None,
    ) -> None:
        # The configured namespace, for callers; the verbs never default to it.
        self.namespace = namespace
        self._calls = RestClient(
            transport, limiter or Limiter(), timeout_seconds=timeout_seconds, on_warning=on_warning
        )
        self._without_streaming: set[str] = set()

    @classmethod
    def connect(cls, connection: Connection, *, timeout_seconds: float = 60.0) -> Client:
        """A client over HTTP. Nothing is sent before the first request."""
        from podlife.client.http_transport import HttpTransport

        transport = HttpTransport(connection)
        return cls(transport, timeout_seconds=timeout_seconds, namespace=connection.namespace)

    def with_timeout(self, seconds: float, *, limiter: Limiter | None = None) -> Client:
        """The same client with another timeout per request and, with a limiter, its own queue: for requests that must
        not wait behind others."""
        calls = self._calls
        other = Client(
            calls.transport,
            limiter=limiter or calls.limiter,
            timeout_seconds=seconds,
            namespace=self.namespace,
            on_warning=calls.on_warning,
        )
        other._calls.user_agent = calls.user_agent
        other._without_streaming = self._without_streaming
        return other

    def named(self, component: str) -> Client:
        """The same client with this User-Agent, which identifies it in an audit log."""
        other = self.apart()
        other._calls.user_agent = f"{USER_AGENT}/{component}"
        return other

    def apart(self) -> Client:
        """The same client for a caller that may `withdraw` independently."""
        return self.with_timeout(self._calls.timeout_seconds)

    def withdraw(self) -> None:
        """Send no more requests: those in flight complete, all others of this client, waiting ones included, raise
        WithdrawnError at once. Other clients on the same connection are not affected."""
        self._calls.withdraw()

    @property
    def silent_seconds(self) -> float:
        """Time since this client received data, on any response or watch."""
        return self._calls.silent_seconds

    @property
    def limiter(self) -> Limiter:
        return self._calls.limiter

    async def close(self) -> None:
        await self._calls.transport.close()

    async def __aenter__(self) -> Client:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | Object | Sequence[Any] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Reply:
        """Send any request. Empty query values are omitted. Raises ApiError or UnreachableError."""
        return await self._calls.call(_request(method, path, query, body, headers))

    # Reading

    async def get(
        self,
        ref: Ref,
        name: str,
        namespace: str = "",
        *,
        subresource: str = "",
        resource_version: str = "",
        view: type[T] | None = None,
    ) -> T:
        path = ref.path(namespace, _required(name), subresource)
        reply = await self.request("GET", path, query={"resourceVersion": resource_version})
        return decode(reply.body, view, f"GET {path}")

    async def list(
        self,
        ref: Ref,
        namespace: str = "",
        *,
        options: ListOptions | None = None,
        view: type[T] | None = None,
        report: Callable[[BadAnswerError], None] | None = None,
    ) -> Page[T]:
        """One page: everything, unless the options have a limit. An object that does not fit the view is omitted and
        passed to `report`; without `report` the error is raised."""
        path = ref.path(namespace)
        options = options or ListOptions()
        headers = {"Accept": METADATA_ONLY_LIST} if options.metadata_only else None
        reply = await self.request("GET", path, query=options.parameters(), headers=headers)
        return decode_page(reply.body, view, f"GET {path}", report)

    async def pages(
        self,
        ref: Ref,
        namespace: str = "",
        *,
        options: ListOptions | None = None,
        view: type[T] | None = None,
        report: Callable[[BadAnswerError], None] | None = None,
    ) -> AsyncGenerator[Page[T], None]:
        """Pages of one consistent list. Raises ExpiredError if the list has become too old to continue: discard the
        pages so far."""
        options = options or ListOptions()
        options = replace(options, limit=options.limit or _PAGE)
        while True:
            page = await self.list(ref, namespace, options=options, view=view, report=report)
            yield page
            if not page.continue_token:
                return
            options = replace(options, continue_token=page.continue_token)

    async def list_all(
        self,
        ref: Ref,
        namespace: str = "",
        *,
        options: ListOptions | None = None,
        view: type[T] | None = None,
    ) -> Page[T]:
        """The whole list, read in pages; if it expires meanwhile, again in one request."""
        items: list[T] = []
        try:
            async for page in self.pages(ref, namespace, options=options, view=view):
                items += page.items
        except ExpiredError:
            if not items:
                raise
            options = replace(options or ListOptions(), limit=0, continue_token="")
            return await self.list(ref, namespace, options=options, view=view)
        return Page(items, page.resource_version)

    def watch(
        self,
        ref: Ref,
        namespace: str = "",
        *,
        resource_version: str,
        options: WatchOptions | None = None,
        view: type[T] | None = None,
    ) -> AsyncGenerator[WatchEvent[T] | Bookmark, None]:
        """Every change after `resource_version`; see `podlife.client.watch`. Close it with `aclosing`."""
        target = WatchTarget(str(ref), ref.path(namespace), view, options or WatchOptions())
        return watch(self._calls, target, resource_version)

    def list_watch(
        self,
        ref: Ref,
        namespace: str = "",
        *,
        options: WatchOptions | None = None,
        view: type[T] | None = None,
    ) -> AsyncGenerator[WatchEvent[T] | Bookmark, None]:
        """The existing objects, a synced Bookmark, then every change; see `podlife.client.list_watch`."""
        from podlife.client.list_watch import list_watch

        options = options or WatchOptions()
        selection = ListOptions(
            label_selector=options.label_selector,
            field_selector=options.field_selector,
            limit=options.page_limit or _EVERYTHING,
            metadata_only=options.metadata_only,
        )

        def read_pages() -> AsyncGenerator[Page[T], None]:
            return self.pages(ref, namespace, options=selection, view=view, report=options.report)

        target = WatchTarget(str(ref), ref.path(namespace), view, options)
        return list_watch(self._calls, target, read_pages, self._without_streaming)

    async def logs(
        self, name: str, namespace: str, options: LogOptions | None = None
    ) -> AsyncGenerator[bytes, None]:
        """The log of a container in chunks; with `follow`, until the container ends."""
        path = PODS.path(namespace, _required(name), "log")
        parameters = (options or LogOptions()).parameters()
        answer = await self._calls.open(_request("GET", path, parameters, None, {"Accept": "*/*"}))
        try:
            while piece := await answer.next_piece(seconds=None):
                yield piece
        finally:
            await answer.close()

    def exec(
        self,
        name: str,
        namespace: str,
        command: Sequence[str],
        *,
        container: str = "",
        stdin: bool = False,
        tty: bool = False,
    ) -> AbstractAsyncContextManager[CommandSession]:
        """Run a command in a container; leaving the context ends it."""
        return self._stream(name, namespace, "exec", command, container, stdin=stdin, tty=tty)

    def attach(
        self, name: str, namespace: str, *, container: str = "", stdin: bool = False, tty: bool = False
    ) -> AbstractAsyncContextManager[CommandSession]:
        """Attach to the main process of a container; leaving the context leaves it alone."""
        return self._stream(name, namespace, "attach", (), container, stdin=stdin, tty=tty)

    def port_forward(
        self, name: str, namespace: str, port: int
    ) -> AbstractAsyncContextManager[ForwardedConnection]:
        """Connect to a port of a pod."""
        from podlife.client.streams import forwarded_connection

        seconds = self._calls.timeout_seconds
        return forwarded_connection(self._streams(), namespace, _required(name), port, seconds)

    def _stream(
        self,
        name: str,
        namespace: str,
        subresource: str,
        command: Sequence[str],
        container: str,
        *,
        stdin: bool,
        tty: bool,
    ) -> AbstractAsyncContextManager[CommandSession]:
        from podlife.client.streams import command_session

        wanted = {"stdin": stdin, "stdout": True, "stderr": not tty, "tty": tty}
        parameters = [("command", part) for part in command] + [("container", container)] * bool(container)
        parameters += [(key, "true") for key, value in wanted.items() if value]
        target = (namespace, _required(name), subresource)
        return command_session(self._streams(), target, parameters, self._calls.timeout_seconds)

    def _streams(self) -> WebSocketTransport:
        from podlife.client.http_transport import HttpTransport

        transport = self._calls.transport
        if not isinstance(transport, HttpTransport):
            raise ConfigError("streams need a connection over HTTP, not one within this process")
        return transport

    # Writing

    async def create(
        self,
        ref: Ref,
        obj: Object,
        namespace: str = "",
        *,
        options: WriteOptions | None = None,
        view: type[T] | None = None,
    ) -> T:
        path = ref.path(_namespace_of(ref, obj, namespace))
        reply = await self.request("POST", path, query=(options or WriteOptions()).parameters(), body=obj)
        return decode(reply.body, view, f"POST {path}")

    async def update(
        self,
        ref: Ref,
        obj: Object,
        *,
        subresource: str = "",
        options: WriteOptions | None = None,
        view: type[T] | None = None,
    ) -> T:
        """Replace the whole object. If it has a resourceVersion, a stale one is rejected."""
        name = obj.get("metadata", {}).get("name", "")
        path = ref.path(_namespace_of(ref, obj, ""), _required(name), subresource)
        reply = await self.request("PUT", path, query=(options or WriteOptions()).parameters(), body=obj)
        return decode(reply.body, view, f"PUT {path}")

    async def patch(  # noqa: PLR0913 - what is patched, with what and how
        self,
        ref: Ref,
        name: str,
        patch: Object | Sequence[Any],
        namespace: str = "",
        *,
        type: PatchType = PatchType.MERGE,  # noqa: A002 - Kubernetes' own word
        subresource: str = "",
        options: WriteOptions | None = None,
        view: type[T] | None = None,
    ) -> T:
        path = ref.path(namespace, _required(name), subresource)
        query, headers = (options or WriteOptions()).parameters(), {"Content-Type": type.value}
        reply = await self.request("PATCH", path, query=query, body=patch, headers=headers)
        return decode(reply.body, view, f"PATCH {path}")

    async def delete(
        self,
        ref: Ref,
        name: str,
        namespace: str = "",
        *,
        options: DeleteOptions | None = None,
        view: type[T] | None = None,
        metadata_only: bool = False,
    ) -> T:
        """Return the object as it is now, or a Status. Set the expected UID in the options.

        With `metadata_only`, servers that support it return only the object's metadata."""
        path = ref.path(namespace, _required(name))
        headers = {"Accept": METADATA_ONLY} if metadata_only else None
        reply = await self.request("DELETE", path, body=(options or DeleteOptions()).body(), headers=headers)
        return decode(reply.body, view, f"DELETE {path}")

    async def delete_collection(
        self,
        ref: Ref,
        namespace: str = "",
        *,
        options: DeleteOptions | None = None,
        selection: ListOptions | None = None,
    ) -> Object:
        path = ref.path(namespace)
        query = (selection or ListOptions()).parameters()
        reply = await self.request("DELETE", path, query=query, body=(options or DeleteOptions()).body())
        return decode(reply.body, None, f"DELETE {path}")

    # Subresources with their own body

    async def evict(self, name: str, namespace: str, *, options: DeleteOptions | None = None) -> Object:
        """Evict the pod, as far as disruption budgets allow. Raises TooManyRequestsError if they do not."""
        metadata = {"name": name, "namespace": namespace}
        eviction: Object = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": metadata}
        if options is not None:
            eviction["deleteOptions"] = options.body()
        path = PODS.path(namespace, _required(name), "eviction")
        reply = await self.request("POST", path, body=eviction)
        return decode(reply.body, None, f"POST {path}")

    async def bind(self, name: str, namespace: str, node: str, *, uid: str = "") -> Object:
        """Bind the pod to a node; with `uid`, only the pod with that UID."""
        metadata = {"name": name, "namespace": namespace, **({"uid": uid} if uid else {})}
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        binding: Object = {"apiVersion": "v1", "kind": "Binding", "metadata": metadata, "target": target}
        path = PODS.path(namespace, _required(name), "binding")
        reply = await self.request("POST", path, body=binding)
        return decode(reply.body, None, f"POST {path}")

    async def scale(self, ref: Ref, name: str, namespace: str, replicas: int) -> Object:
        """Set the number of replicas; returns the Scale."""
        patch = {"spec": {"replicas": replicas}}
        return await self.patch(ref, name, patch, namespace, subresource="scale")


def _required(name: str) -> str:
    # An empty name would turn one object's path into that of the whole collection.
    if not name:
        raise ValueError("the name is empty")
    return name


def _namespace_of(ref: Ref, obj: Object, namespace: str) -> str:
    namespace = namespace or obj.get("metadata", {}).get("namespace", "")
    if ref.namespaced and not namespace:
        raise ValueError(f"{ref} are namespaced, but the object has no namespace")
    return namespace if ref.namespaced else ""


def _request(
    method: str,
    path: str,
    query: Mapping[str, str] | None,
    body: bytes | Object | Sequence[Any] | None,
    headers: Mapping[str, str] | None,
) -> Request:
    given = {name: value for name, value in query.items() if value} if query else None
    raw = urlencode(given) if given else ""
    sent = {"Accept": "application/json", **(headers or {})}
    if body is not None:
        sent.setdefault("Content-Type", "application/json")
    data = body if isinstance(body, bytes) else encode(body) if body is not None else b""
    return Request(method, path, Query(raw), sent, data)
