"""What a fence check is, and what it is told of the node. All that it is told comes from the node itself, which may be
anybody's: it goes nowhere as anything but a value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Protocol

from podlife.nodehealth.out_of_service.facts import Answer

__all__ = ["Check", "Subject", "shown"]

_MOST_SHOWN = 200


@dataclass(frozen=True, slots=True)
class Subject:
    name: str
    uid: str
    provider_id: str = ""
    internal_ips: tuple[str, ...] = ()
    not_ready_seconds: float = 0.0

    @property
    def arguments(self) -> tuple[str, str, str, str]:
        return self.name, self.uid, self.provider_id, ",".join(self.internal_ips)

    @property
    def environment(self) -> Mapping[str, str]:
        return {
            "PODLIFE_NODE_NAME": self.name,
            "PODLIFE_NODE_UID": self.uid,
            "PODLIFE_NODE_PROVIDER_ID": self.provider_id,
            "PODLIFE_NODE_INTERNAL_IPS": ",".join(self.internal_ips),
        }


class Check(Protocol):
    """`kind` stands in metrics, `name` is for people."""

    @property
    def kind(self) -> str: ...

    @property
    def name(self) -> str: ...

    async def ask(self, subject: Subject) -> Answer:
        """Never raises, but for a cancellation; comes back within its time."""


def shown(text: bytes | str) -> str:
    """The first line of what somebody else said, in letters that can be shown, and not too many of them."""
    whole = text.decode(errors="replace") if isinstance(text, bytes) else text
    line = next((each.strip() for each in whole.splitlines() if each.strip()), "")
    return "".join(letter if letter.isprintable() else "?" for letter in line[:_MOST_SHOWN])
