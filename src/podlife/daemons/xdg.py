"""The default directories of podlife, by the XDG base directory specification."""

from __future__ import annotations

import os
from pathlib import Path


def default_data_dir() -> Path:
    return Path(os.environ.get("XDG_DATA_HOME") or Path.home() / ".local" / "share") / "podlife"


def default_archive_dir() -> Path:
    return Path(os.environ.get("XDG_STATE_HOME") or Path.home() / ".local" / "state") / "podlife" / "archive"
