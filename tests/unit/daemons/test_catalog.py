"""Which controllers are meant by which names."""

from __future__ import annotations

import pytest

from podlife.client import Client, Connection, InProcessTransport
from podlife.controller import ControlPlane
from podlife.daemons.catalog import choose, known_controllers
from podlife.daemons.controllers import ControllerSet, ControllersSettings, options_of
from podlife.daemons.service import ServiceSettings
from podlife.errors import ConfigError
from podlife.wire import Request, Response

ALL = [known.name for known in known_controllers()]
USUAL = [name for name in ALL if name not in ("scheduler", "out-of-service", "local-path-provisioner")]


def names(*words: str) -> list[str]:
    return [known.name for known in choose(words)]


@pytest.mark.parametrize("name", ALL)
def test_a_controller_has_kube_controller_managers_name_and_a_short_one(name: str) -> None:
    assert names(name) == [name]
    assert names(name.removesuffix("-controller")) == [name]


def test_the_names_from_before_are_understood() -> None:
    assert names("garbagecollector", "podgc") == [
        "garbage-collector-controller",
        "pod-garbage-collector-controller",
    ]


def test_a_star_is_all_and_a_minus_leaves_one_out() -> None:
    assert names("*") == USUAL
    assert names("*", "-podgc") == [name for name in USUAL if name != "pod-garbage-collector-controller"]
    assert names("-replicaset", "*") == [name for name in USUAL if name != "replicaset-controller"]
    assert names("*", "replicaset") == USUAL


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["repicaset"], r"unknown --controllers value 'repicaset': did you mean replicaset\?"),
        (["-repicaset-controller"], r"did you mean replicaset-controller\?"),
        (
            ["node-ipam"],
            "podlife does not have kube-controller-manager's node-ipam; `podlife controllers list`",
        ),
        (["*", "-node-ipam-controller"], "does not have kube-controller-manager's node-ipam-controller"),
        (["zzz"], r"unknown --controllers value 'zzz': `podlife controllers list`"),
        (["replicaset", "-replicaset-controller"], "both includes and excludes replicaset-controller"),
        (["-replicaset"], r"leaves nothing to run: for all the others write '\*,-replicaset-controller'"),
        ([], "--controllers is empty"),
    ],
)
def test_a_choice_that_cannot_be_is_one_line(words: list[str], line: str) -> None:
    with pytest.raises(ConfigError, match=line):
        choose(words)


async def test_every_controller_of_the_star_is_made_without_options() -> None:
    async def refuse(_: Request) -> Response:
        raise AssertionError("nothing is requested before it runs")

    plane = ControlPlane(Client(InProcessTransport(refuse)))
    ControllerSet(plane, choose(["*"]), {}, stop_seconds=1.0)
    assert [controller.name for controller in plane.controllers] == USUAL


def test_the_published_ca_is_that_of_the_server_whatever_else_is_set() -> None:
    service = ServiceSettings(Connection("https://127.0.0.1:1", certificate_authority=b"PEM"))
    name, other = "root-ca-certificate-publisher-controller", "serviceaccount-token-controller"
    assert options_of(ControllersSettings(service))[name] == {"root_ca": "PEM"}
    set_too = ControllersSettings(service, options={name: {"workers": 2}, "scheduler": {"workers": 3}})
    assert options_of(set_too) == {
        name: {"root_ca": "PEM", "workers": 2},
        other: {"root_ca": "PEM"},
        "scheduler": {"workers": 3},
    }
