"""One server for the whole fuzz, and how much is asked of it.

`PODLIFE_FUZZ_REQUESTS` is about how many requests are sent in all; few of them for every change, `make fuzz`
for a whole run. A short run always sends the same, and so does every run with CI=true; a long one of anybody else
something new every time.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

from tests.fuzz.wire import Wire
from tests.kit.server_process import ServerProcess, running_server

REQUESTS = int(os.environ.get("PODLIFE_FUZZ_REQUESTS", "600"))
IS_ALWAYS_THE_SAME = REQUESTS < 5_000 or os.environ.get("CI") == "true"

settings.register_profile(
    "fuzz",
    database=None,
    deadline=None,
    derandomize=IS_ALWAYS_THE_SAME,
    print_blob=False,
    suppress_health_check=list(HealthCheck),
)


@pytest.fixture(scope="session")
def fuzzed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("fuzz")) as server:
        yield server
        assert server.is_running, server.log.read_text()
        assert server.stop() == 0
        report = server.run("check")
        assert report.returncode == 0, report.stderr
        assert "failed" not in server.log.read_text(), server.log.read_text()


@pytest.fixture(scope="session")
def wire(fuzzed: ServerProcess) -> Iterator[Wire]:
    wire = Wire(fuzzed)
    yield wire
    wire.close()
    print(f"{wire.sent} requests")  # noqa: T201 - what `make fuzz` shows


@pytest.fixture(scope="session")
def node_wire(fuzzed: ServerProcess, wire: Wire) -> Iterator[Wire]:
    """The wire of a node, which may do little and is looked at closely."""
    tokens = fuzzed.data / "tokens.csv"
    tokens.write_text(f'{tokens.read_text()}node-token,system:node:somewhere,somewhere,"system:nodes"\n')
    node = Wire(fuzzed, "node-token")
    yield node
    node.close()
    wire.sent += node.sent


def share(part: float) -> settings:
    """So many examples of one test, as its part of all the requests."""
    return settings(settings.get_profile("fuzz"), max_examples=max(10, int(REQUESTS * part)))
