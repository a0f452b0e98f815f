"""Asking a container over the network, for probes and hooks: HTTP, TCP and gRPC.

Guaranteed: a question with a time limit ends within it, however the other side behaves; what comes back is bounded in
memory; every question has a connection of its own, which is closed. No certificate is verified: a probe asks whether
somebody answers, and the certificate of a container is its own. `NoResponseError` is what counts against the container,
`ProbeError` what does not. The texts of both are those a kubelet shows.
"""

from podlife.kubelet.probe.connection import PlainResponseError, tcp_connect
from podlife.kubelet.probe.grpc import grpc_health
from podlife.kubelet.probe.http import HttpResponse, http_get
from podlife.kubelet.probe.http_request import HttpRequest, http_request
from podlife.kubelet.probe.target import (
    NoResponseError,
    ProbeError,
    container_port,
    duration,
)

__all__ = [
    "HttpRequest",
    "HttpResponse",
    "NoResponseError",
    "PlainResponseError",
    "ProbeError",
    "container_port",
    "duration",
    "grpc_health",
    "http_get",
    "http_request",
    "tcp_connect",
]
