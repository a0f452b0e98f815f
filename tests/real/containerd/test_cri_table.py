"""The committed table of CRI messages is what CRI's own definition gives, in the version of the real parts."""

from __future__ import annotations

import os

import pytest
from tools.generate_cri_table import TARGET, TableError, downloaded_proto, generate


def test_the_table_has_the_numbers_and_types_of_cri() -> None:
    try:
        proto = downloaded_proto()
    except TableError as error:
        (pytest.fail if os.environ.get("CI") == "true" else pytest.skip)(str(error))
    committed = TARGET.read_text(encoding="utf-8")
    assert generate(committed, proto) == committed
