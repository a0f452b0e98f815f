"""What is printed for people to type goes to the cluster that was explained."""

from __future__ import annotations

from podlife.cli.commands.explain.server import for_this_server
from podlife.cli.connection import ConnectionOptions
from podlife.explain import Cause, Explanation, Remedy

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
