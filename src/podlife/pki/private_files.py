"""Files that only their owner may read."""

from __future__ import annotations

import os
import secrets
from pathlib import Path


def write_private(path: Path, content: bytes, *, mode: int = 0o600) -> None:
    """Write a file atomically and durably; it is never readable by others on the way."""
    partial = path.with_name(f".{path.name}.{secrets.token_hex(4)}")
    descriptor = os.open(partial, os.O_WRONLY | os.O_CREAT | os.O_EXCL, mode)
    try:
        with os.fdopen(descriptor, "wb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        partial.replace(path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
