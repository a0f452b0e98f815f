"""The commands that are printed: what destroys names its UID, and a shell reads them as they were meant."""

from __future__ import annotations

import json
import shlex

from podlife.explain import kubectl_commands as commands
from tests.unit.explain.objects import a_pod


def test_a_deletion_carries_the_uid_and_the_grace_that_were_meant() -> None:
    echo, said, _, *kubectl = shlex.split(commands.delete(a_pod(), 0))
    assert echo == "echo"
    assert json.loads(said) == {"gracePeriodSeconds": 0, "preconditions": {"uid": "u-1"}}
    assert kubectl == ["kubectl", "delete", "--raw", "/api/v1/namespaces/shop/pods/web", "-f", "-"]
    assert "gracePeriodSeconds" not in commands.delete(a_pod())


def test_what_is_taken_from_a_list_is_tested_for_first() -> None:
    words = shlex.split(commands.remove_from_list("pod", a_pod(), "/metadata/finalizers", 1, "it's/mine"))
    steps = json.loads(words[-1])
    assert [(step["op"], step.get("value")) for step in steps] == [
        ("test", "u-1"),
        ("test", "it's/mine"),
        ("remove", None),
    ]
    assert words[:5] == ["kubectl", "patch", "pod", "web", "-n"]


def test_what_a_person_fills_in_is_not_in_quotes_of_its_own() -> None:
    assert commands.set_image(a_pod(), "main", None) == "kubectl set image pod/web main=<IMAGE> -n shop"
    deployed = commands.set_image(a_pod(), "main", ("Deployment", "shop"))
    assert deployed == "kubectl set image deployment/shop main=<IMAGE> -n shop"
    # Of what cannot be changed by its template the pod itself is changed.
    assert " pod/web " in commands.set_image(a_pod(), "main", ("Job", "once"))


def test_a_taint_is_written_as_kubectl_takes_it() -> None:
    assert commands.remove_taint("n1", {"key": "a/b", "value": "x", "effect": "NoExecute"}) == (
        "kubectl taint node n1 a/b:NoExecute-"
    )
