"""Mistakes in `podlife explain` and `podlife stuck` are one line, told before anything is connected to; commands that
are suggested go to the cluster that was explained."""

from __future__ import annotations

import pytest

from podlife.cli.commands.explain.show import for_this_server
from podlife.cli.connection import ConnectionOptions
from podlife.explain import Cause, Explanation, Remedy
from tests.unit.cli.conftest import Refused


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["explain", "pod", "Web"], "invalid pod name 'Web'"),
        (["explain", "pod/Web"], "invalid pod name 'Web'"),
        (["explain", "pods", "Web"], "invalid pod name 'Web'"),
        (["explain", "no/Web", "-o", "json"], "invalid node name 'Web'"),
        (["explain", "web/pod"], "unknown command 'web'"),
        (["explain", "Web"], "invalid pod name 'Web'"),
        (["explain", "Web", "-o", "json"], "invalid pod name 'Web'"),
        (["explain", "pdo", "web"], "unknown command 'pdo'"),
        (["explain", "pod", "web", "-o", "xml"], "unknown output format 'xml'; choose from text, json, yaml"),
        (["explain", "pod", "web", "-n", "a_b"], "invalid namespace name 'a_b'"),
        (["explain", "node", "a/b"], "invalid node name 'a/b'"),
        (["explain", "pod"], "NAME is missing"),
        (["explain", "pod", "web", "--archive=ftp://x"], "expected a folder or s3://BUCKET/PREFIX"),
        (["stuck", "-A", "-n", "x"], "exclude each other"),
    ],
)
def test_a_mistake_is_one_line_and_exit_code_2(refused: Refused, arguments: list[str], words: str) -> None:
    assert words in refused(*arguments)


FOUND = Explanation(
    "Pod",
    "web",
    causes=(
        Cause(
            "x",
            "look at `kubectl logs web`; kubectl is not a command here",
            remedies=(
                Remedy("echo '{}' | kubectl delete --raw /x -f -", "r"),
                Remedy("kubectl uncordon n1", "r"),
            ),
        ),
    ),
)


def test_without_flags_nothing_is_added() -> None:
    assert for_this_server(FOUND, ConnectionOptions()) == FOUND


def test_the_flags_that_chose_the_cluster_are_in_every_command_and_no_token_is() -> None:
    options = ConnectionOptions(context="my cluster", request_as="me", token="secret")
    [cause] = for_this_server(FOUND, options).causes
    assert [each.command for each in cause.remedies] == [
        "echo '{}' | kubectl '--context=my cluster' --as=me delete --raw /x -f -",
        "kubectl '--context=my cluster' --as=me uncordon n1",
    ]
    assert (
        cause.text
        == "look at `kubectl '--context=my cluster' --as=me logs web`; kubectl is not a command here"
    )
