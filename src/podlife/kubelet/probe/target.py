"""Hosts, ports and errors of requests to containers."""

from __future__ import annotations

import errno
import os
import socket

from podlife.errors import PodlifeError
from podlife.kubelet.pod_fields import Container

# The node itself has run out of something, which says nothing about the container.
_OWN_SHORTAGES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM, errno.EADDRNOTAVAIL, errno.EAGAIN}


class ProbeError(PodlifeError):
    """The request could not be sent, or its response was cut off; this says nothing about the container."""


class NoResponseError(PodlifeError):
    """The request was sent, but no valid response came in time."""


def container_port(port: int | str, container: Container) -> int:
    """A number, a port name of the container, or a number as a string. Raises `ProbeError`."""
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


def target_host(configured: str | None, pod_ip: str) -> str:
    """Raises `ProbeError` without a host: an empty one would be the node itself."""
    host = configured or pod_ip
    if not host:
        raise ProbeError("the pod has no IP address yet")
    return host


def host_port(host: str, port: int) -> str:
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"


def dial_error(error: OSError, host: str, port: int) -> ProbeError | NoResponseError:
    """Maps a connection failure to an error, with the kubelet's message."""
    if isinstance(error, socket.gaierror):
        return NoResponseError(f"dial tcp: lookup {host}: no such host")
    if error.errno in _OWN_SHORTAGES:
        return ProbeError(f"dial tcp {host_port(host, port)}: {os.strerror(error.errno).lower()}")
    text = os.strerror(error.errno).lower() if error.errno else str(error)
    return NoResponseError(f"dial tcp {host_port(host, port)}: connect: {text}")
