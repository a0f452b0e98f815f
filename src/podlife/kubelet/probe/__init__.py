"""Requests to a container over the network, for probes and hooks: HTTP, TCP and gRPC.

Guarantees:
- A request with a timeout ends within it, however the container behaves.
- Responses are bounded in memory.
- Every request has a connection of its own, which is closed.

No certificate is verified: a probe checks whether the container responds, and its certificate is its own.
`NoResponseError` counts against the container, `ProbeError` does not. The messages of both are upstream's.
"""

from podlife.kubelet.probe.connection import PlainResponseError, tcp_connect
from podlife.kubelet.probe.grpc import grpc_health
from podlife.kubelet.probe.http import HttpRequest, HttpResponse, http_get, http_request
from podlife.kubelet.probe.target import NoResponseError, ProbeError, container_port

__all__ = [
    "HttpRequest",
    "HttpResponse",
    "NoResponseError",
    "PlainResponseError",
    "ProbeError",
    "container_port",
    "grpc_health",
    "http_get",
    "http_request",
    "tcp_connect",
]
