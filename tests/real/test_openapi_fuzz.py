"""Schemathesis reads the OpenAPI documents that the server serves, and sends what they allow and do not allow.

Every operation of every document is tried a few times; `PODLIFE_OPENAPI_EXAMPLES` says how often.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any

import pytest
import requests
import schemathesis
from hypothesis import HealthCheck, given, seed, settings

from podlife.apiserver.catalog import ResourceCatalog
from tests.fuzz.wire import ANSWER_SECONDS, Answer, judge
from tests.kit.server_process import ServerProcess, running_server

EXAMPLES = int(os.environ.get("PODLIFE_OPENAPI_EXAMPLES", "2"))
DOCUMENTS = [
    f"apis/{group}/{version}" if group else f"api/{version}"
    for group, version in ResourceCatalog().group_versions
]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    with running_server(tmp_path_factory.mktemp("openapi")) as server:
        yield server
        assert server.stop() == 0
        assert server.run("check").returncode == 0
        assert "failed" not in server.log.read_text(), server.log.read_text()


@pytest.fixture(scope="module")
def session(server: ServerProcess) -> Iterator[requests.Session]:
    with requests.Session() as session:
        # No certificates or proxies of whoever runs the tests.
        session.trust_env = False
        session.headers["Authorization"] = f"Bearer {server.token}"
        yield session


@pytest.mark.parametrize("document", DOCUMENTS)
def test_what_the_documents_describe_is_answered(
    server: ServerProcess, session: requests.Session, document: str
) -> None:
    ca_file = str(server.data / "pki" / "ca.crt")
    described = session.get(f"{server.url}/openapi/v3/{document}", verify=ca_file).json()
    operations = [found.ok() for found in schemathesis.openapi.from_dict(described).get_all_operations()]
    assert operations
    sent = 0
    for operation in operations:

        @seed(20260104)
        @settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=operation.as_strategy())
        def run(case: Any) -> None:
            nonlocal sent
            sent += 1
            if "namespace" in case.path_parameters and case.method in ("POST", "PUT", "PATCH"):
                # What is sent to a namespace that does not exist is not looked at.
                case.path_parameters["namespace"] = "default"
                case.media_type = (
                    case.media_type if "patch" in (case.media_type or "") else "application/json"
                )
            judge(call(case, server.url, session, ca_file), case.method)

        run()
    print(f"{document}: {len(operations)} operations, {sent} requests")  # noqa: T201 - what `make fuzz` shows


def call(case: Any, url: str, session: requests.Session, ca_file: str) -> Answer:
    """Send the case as it is; of a watch only the beginning is read."""
    prepared = session.prepare_request(requests.Request(**case.as_transport_kwargs(base_url=url)))
    with session.send(
        prepared, verify=ca_file, timeout=ANSWER_SECONDS, stream=True, allow_redirects=False
    ) as got:
        is_stream = got.headers.get("Transfer-Encoding") == "chunked"
        body = b"" if is_stream else got.content
        return Answer(got.status_code, got.headers.get("Content-Type", ""), body, is_stream)
