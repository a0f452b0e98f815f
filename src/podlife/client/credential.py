"""What a request proves its identity with, and the interface of the providers that issue it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol


@dataclass(frozen=True, slots=True)
class Credential:
    """What a request carries: an Authorization header, a client certificate, both or neither."""

    authorization: str = field(default="", repr=False)
    certificate: bytes = field(default=b"", repr=False)
    key: bytes = field(default=b"", repr=False)


class Credentials(Protocol):
    async def current(self) -> Credential:
        """The current credential; raises ConfigError if there is none."""
        ...

    async def renew(self, refused: Credential) -> bool:
        """Forget the credential that a server has refused; says whether the next one may differ."""
        ...
