"""Proxies a pod's `log`, `exec`, `attach` and `portforward` to the kubelet of its node.

The API server presents its own client certificate and accepts only kubelets whose certificate the same CA has signed
for that node, whatever address the node reports. A log is streamed at the reader's pace; the others are tunnels, in
whatever the client and the kubelet speak. The kubelet's refusals are passed on in its own words.

The caller has been authorized before; errors are ApiError in upstream's words.
"""

from __future__ import annotations

import json
import os
import re
import ssl
from collections.abc import Callable
from functools import partial
from urllib.parse import quote, urlencode

import aiohttp
from yarl import URL

from podlife.api.codec import Object, decode_object
from podlife.api.excerpt import excerpt
from podlife.api.field_errors import FieldError, bad_value, forbidden, invalid
from podlife.apiserver.registry.list_options import boolean_parameter, integer_parameter
from podlife.apiserver.registry.request_body import bad_request
from podlife.apiserver.storage import Key, Record
from podlife.apiserver.subresources.tunnel import Backend, is_upgrade, tunnel
from podlife.apiserver.subresources.websocket_relay import log_protocols, read_log, relay_log
from podlife.errors import ApiError, NotFoundError
from podlife.wire import Query, Request, Response, Upgrade

_ADDRESS_TYPES = ("Hostname", "InternalDNS", "InternalIP", "ExternalDNS", "ExternalIP")
_DEFAULT_PORT = 10250
_REFUSAL_BYTES = 50_000
_is_host = re.compile(r"[A-Za-z0-9._:%-]+").fullmatch


class KubeletProxy:
    """Connects to kubelets. `read` reads the store; `tls` is called when the first kubelet is contacted."""

    def __init__(
        self,
        read: Callable[[Key], Record | None],
        tls: Callable[[], ssl.SSLContext],
        *,
        connect_seconds: float = 5.0,
    ) -> None:
        self._read = read
        self._make_tls = tls
        self._tls: ssl.SSLContext | None = None
        self._connect_seconds = connect_seconds
        self._session: aiohttp.ClientSession | None = None

    async def log(self, request: Request, namespace: str, name: str) -> Response:
        """The log of one container, as a text stream."""
        query = request.query
        pod = self._find(Key("pods", namespace, name))
        options = _log_options(name, query)
        container = _container(pod, query.get("container"))
        if not _node_name(pod):
            return Response(204, content_type="text/plain")
        protocols = log_protocols(request)
        backend = self.kubelet(_node_name(pod))
        answer = await self._get(backend.url + _target(pod, "containerLogs", container, options), backend)
        if not 200 <= answer.status <= 206:
            raise await _refusal(answer, name)
        if protocols is not None:
            return Response(101, upgrade=Upgrade(protocols, partial(relay_log, answer)))
        return Response(body=read_log(answer), content_type="text/plain")

    async def connect(self, request: Request, namespace: str, name: str, subresource: str) -> Response:
        """A tunnel to the kubelet for `exec`, `attach` or `portforward`."""
        options = _ports(request.query) if subresource == "portforward" else _stream_options(request.query)
        pod = self._find(Key("pods", namespace, name))
        is_forward = subresource == "portforward"
        container = "" if is_forward else _container(pod, request.query.get("container"))
        if not _node_name(pod):
            raise bad_request(f"pod {name} does not have a host assigned")
        backend = self.kubelet(_node_name(pod))
        if not is_upgrade(request):
            raise bad_request("Upgrade request required")
        verb = "portForward" if is_forward else subresource
        target = _target(pod, verb, container, options)
        return await tunnel(backend, target, request, connect_seconds=self._connect_seconds)

    def kubelet(self, node_name: str) -> Backend:
        """The kubelet of a node, which must prove with its certificate that it is that."""
        host, port = self._endpoint(node_name)
        if self._tls is None:
            self._tls = self._make_tls()
        return Backend(host, port, self._tls, node_name)

    async def close(self) -> None:
        if self._session is not None:
            await self._session.close()

    def _endpoint(self, node_name: str) -> tuple[str, int]:
        node = self._find(Key("nodes", "", node_name))
        status = node.get("status") or {}
        addresses: list[Object] = status.get("addresses") or []
        endpoint = (status.get("daemonEndpoints") or {}).get("kubeletEndpoint") or {}
        for kind in _ADDRESS_TYPES:
            for address in addresses:
                if address.get("type") == kind:
                    return _host(address.get("address", "")), endpoint.get("Port") or _DEFAULT_PORT
        known = " ".join(f"{{{a.get('type')} {a.get('address')}}}" for a in addresses)
        raise ApiError(f"no preferred addresses found; known addresses: [{known}]", reason="")

    def _find(self, key: Key) -> Object:
        record = self._read(key)
        if record is None:
            details = {"name": key.name, "kind": key.resource}
            raise NotFoundError(f'{key.resource} "{key.name}" not found', details=details)
        return decode_object(record.value)

    def _client(self) -> aiohttp.ClientSession:
        if self._session is None:
            connector = aiohttp.TCPConnector(limit=0, limit_per_host=0)
            # A stream may be silent for any time; only connecting has a deadline.
            timeout = aiohttp.ClientTimeout(total=None, sock_connect=self._connect_seconds)
            self._session = aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False)
        return self._session

    async def _get(self, url: str, kubelet: Backend) -> aiohttp.ClientResponse:
        try:
            return await self._client().get(
                URL(url, encoded=True),
                allow_redirects=False,
                ssl=kubelet.tls or True,
                server_hostname=kubelet.server_name,
            )
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise _unreachable(url, error) from None


async def _refusal(answer: aiohttp.ClientResponse, name: str) -> ApiError:
    """The kubelet's answer as upstream passes it on."""
    try:
        text = (await answer.content.read(_REFUSAL_BYTES)).decode(errors="replace")
    except aiohttp.ClientError as error:
        text = str(error)
    finally:
        answer.close()
    if answer.status == 500:
        cause = {"message": text}
        return ApiError(f"Internal error occurred: {text}", details={"causes": [cause]})
    if answer.status == 400:
        return bad_request(text)
    unknown = f"the server responded with the status code {answer.status} but did not return more information"
    reason, message = {
        401: ("Unauthorized", "the server has asked for the client to provide credentials"),
        403: ("Forbidden", text),
        404: ("NotFound", "the server could not find the requested resource"),
        503: ("ServiceUnavailable", text or "the server is currently unable to handle the request"),
    }.get(answer.status, ("", unknown))
    return ApiError(
        f"{message} ( pods/log {name})",
        code=answer.status,
        reason=reason,
        details={"name": name, "kind": "pods/log"},
    )


def _host(address: str) -> str:
    """Return the address a node reports as a URL host. The node must not choose more than that: the path requested
    there, with the server's certificate, is not the node's to influence."""
    if _is_host(address) is None:
        raise ApiError(f"invalid node address {address!r}", reason="")
    return address


def _node_name(pod: Object) -> str:
    return str((pod.get("spec") or {}).get("nodeName", ""))


def _container(pod: Object, wanted: str) -> str:
    name, spec = pod["metadata"]["name"], pod.get("spec") or {}
    containers = spec.get("containers") or []
    every = [
        container["name"]
        for field in ("initContainers", "containers", "ephemeralContainers")
        for container in spec.get(field) or ()
    ]
    if wanted:
        if wanted not in every:
            raise bad_request(f"container {wanted} is not valid for pod {name}")
        return wanted
    if len(containers) == 1:
        return str(containers[0]["name"])
    message = f"a container name must be specified for pod {name}"
    raise bad_request(f"{message}, choose one of: [{' '.join(every)}]" if containers else message)


def _log_options(name: str, query: Query) -> list[tuple[str, str]]:
    """Options of a log in the order upstream sends them; raises ApiError if they are invalid."""
    options = [
        (flag, "true") for flag in ("follow", "previous", "timestamps") if boolean_parameter(query, flag)
    ]
    numbers = {key: integer_parameter(query, key) for key in ("sinceSeconds", "tailLines", "limitBytes")}
    errors: list[FieldError] = []
    if (tail := numbers["tailLines"]) is not None and tail < 0:
        errors.append(bad_value("tailLines", tail, "must be greater than or equal to 0"))
    if (limit := numbers["limitBytes"]) is not None and limit < 1:
        errors.append(bad_value("limitBytes", limit, "must be greater than 0"))
    since = numbers["sinceSeconds"]
    if since is not None and query.get("sinceTime"):
        text = "at most one of `sinceTime` or `sinceSeconds` may be specified"
        errors.append(forbidden("", text))
    elif since is not None and since < 1:
        errors.append(bad_value("sinceSeconds", since, "must be greater than 0"))
    if errors:
        raise invalid("PodLogOptions", "", name, errors)
    options += [(key, str(value)) for key, value in numbers.items() if value is not None]
    if moment := query.get("sinceTime"):
        options.append(("sinceTime", moment))
    return options


def _stream_options(query: Query) -> list[tuple[str, str]]:
    names = {"stdin": "input", "stdout": "output", "stderr": "error", "tty": "tty"}
    options = [(sent, "1") for asked, sent in names.items() if boolean_parameter(query, asked)]
    return options + [("command", part) for part in query.all("command")]


def _ports(query: Query) -> list[tuple[str, str]]:
    """Ports of the plain WebSocket protocol; SPDY names the port of each stream instead."""
    ports = [text for value in query.all("ports") for text in value.split(",")]
    for text in ports:
        is_number = text.isascii() and text.isdecimal()
        if not is_number or int(text) >= 1 << 16:
            why = "value out of range" if is_number else "invalid syntax"
            shown = json.dumps(excerpt(text, 100))
            raise bad_request(f"cannot convert to []int32: strconv.ParseUint: parsing {shown}: {why}")
    return [("port", ",".join(ports))] if ports else []


def _target(pod: Object, verb: str, container: str, options: list[tuple[str, str]]) -> str:
    parts = (pod["metadata"].get("namespace", ""), pod["metadata"]["name"], container)
    path = "/".join(quote(part, safe="") for part in parts if part)
    return f"/{verb}/{path}" + (f"?{urlencode(options)}" if options else "")


def _unreachable(url: str, error: BaseException) -> ApiError:
    """In the words that clients know."""
    match error:
        case TimeoutError():
            why = "context deadline exceeded"
        case aiohttp.ClientConnectorError(errno=int(number)) if not isinstance(error, aiohttp.ClientSSLError):
            why = f"dial tcp {error.host}:{error.port}: connect: {os.strerror(number).lower()}"
        case _:
            why = str(error)
    return ApiError(f'Get "{url}": {why}', reason="")
