from __future__ import annotations

import pytest

from tests.component.client.authority import Authority


@pytest.fixture(scope="session")
def authority() -> Authority:
    return Authority()
