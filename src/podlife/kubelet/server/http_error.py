"""A request that is refused: the code and the line that the caller reads, in upstream's words where it has some."""

from __future__ import annotations

from podlife.errors import PodlifeError

__all__ = ["HttpError"]


class HttpError(PodlifeError):
    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code
