"""Asking a container over the network, for probes and hooks: HTTP, TCP and gRPC.

Guaranteed: a question with a time limit ends within it, however the other side behaves; what comes back is bounded in
memory; every question has a connection of its own, which is closed. No certificate is verified: a probe asks whether
somebody answers, and the certificate of a container is its own. `NoAnswerError` is what counts against the container,
`AskError` what does not. The texts of both are those a kubelet shows.
"""

from podlife.kubelet.probe.connection import tcp_knock
from podlife.kubelet.probe.grpc import grpc_health
from podlife.kubelet.probe.http import HttpAnswer, PlainAnswerError, http_get
from podlife.kubelet.probe.http_request import HttpRequest, http_request
from podlife.kubelet.probe.target import (
    AskError,
    NoAnswerError,
    container_port,
)

__all__ = [
    "AskError",
    "HttpAnswer",
    "HttpRequest",
    "NoAnswerError",
    "PlainAnswerError",
    "container_port",
    "grpc_health",
    "http_get",
    "http_request",
    "tcp_knock",
]
