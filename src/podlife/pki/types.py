"""Subjects of certificates, and key pairs."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Subject:
    """Subject of a certificate. With `names` the certificate is for serving, without for client authentication."""

    common_name: str
    organizations: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


def node_subject(node_name: str, names: Iterable[str] = ()) -> Subject:
    return Subject(f"system:node:{node_name}", ("system:nodes",), tuple(dict.fromkeys(names)))


@dataclass(frozen=True, slots=True)
class KeyPair:
    """A certificate and its private key, both PEM."""

    certificate: bytes
    key: bytes

    def __repr__(self) -> str:
        return "KeyPair(…)"
