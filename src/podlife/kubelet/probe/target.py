"""Hosts, ports and errors of requests to containers."""

from __future__ import annotations

import errno
import os
import socket

from podlife.errors import PodlifeError
from podlife.kubelet.pod_fields import Container

# The node has run out of something: that says nothing about the container.
_OWN_SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.EAGAIN}


class ProbeError(PodlifeError):
    """The question could not be put, or its answer broke off: it says nothing about the container."""


class NoResponseError(PodlifeError):
    """The question was put, and no answer came in time, or none that could be understood."""


def container_port(port: int | str, container: Container) -> int:
    """A number, the name of one of the container's ports, or a number in quotes. Raises `ProbeError`."""
    number = port
    if isinstance(port, str):
        named = (each for each in container.get("ports") or () if each.get("name") == port)
        found = next(named, None)
        if found is not None:
            number = found["containerPort"]
        elif port.isascii() and port.isdigit() and len(port) < 10:
            number = int(port)
        else:
            raise ProbeError(
                f"port {port[:100]} not found among the ports of container {container['name']!r}"
            )
    if not isinstance(number, int) or not 0 < number < 65536:
        raise ProbeError(f"invalid port number: {number}")
    return number


def target_host(given: str | None, pod_ip: str) -> str:
    """Raises `ProbeError` where there is none: an empty host would be the node itself."""
    host = given or pod_ip
    if not host:
        raise ProbeError("the pod has no IP address yet")
    return host


def host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def dial_error(error: OSError, host: str, port: int) -> ProbeError | NoResponseError:
    """What a failed connection means, in the words of a kubelet."""
    if isinstance(error, socket.gaierror):
        return NoResponseError(f"dial tcp: lookup {host}: no such host")
    if error.errno in _OWN_SHORTAGES:
        return ProbeError(f"dial tcp {host_port(host, port)}: {os.strerror(error.errno).lower()}")
    text = os.strerror(error.errno).lower() if error.errno else str(error)
    return NoResponseError(f"dial tcp {host_port(host, port)}: connect: {text}")
