"""Asking a container over the network, for probes and hooks: HTTP, TCP and gRPC.

Guaranteed: a question with a time limit ends within it, however the other side behaves; what comes back is bounded in
memory; every question has a connection of its own, which is closed. No certificate is verified: a probe asks whether
somebody answers, and the certificate of a container is its own. `NoAnswerError` is what counts against the container,
`AskError` what does not. The texts of both are those a kubelet shows.
"""

from podlife.kubelet.asking.addresses import AskError, NoAnswerError, container_port, duration
from podlife.kubelet.asking.exchange import HttpAnswer, PlainAnswerError, http_get
from podlife.kubelet.asking.grpc_health import grpc_health
from podlife.kubelet.asking.http_request import HttpRequest, http_request
from podlife.kubelet.asking.streams import tcp_knock

__all__ = [
    "AskError",
    "HttpAnswer",
    "HttpRequest",
    "NoAnswerError",
    "PlainAnswerError",
    "container_port",
    "duration",
    "grpc_health",
    "http_get",
    "http_request",
    "tcp_knock",
]
