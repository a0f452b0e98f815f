"""The flags of out-of-service: with what the controller is made, and what is said of mistakes."""

from __future__ import annotations

import re
from typing import Any

import pytest

from podlife.cli.commands.out_of_service_options import OutOfServiceOptions
from podlife.client import Client, InProcessTransport
from podlife.controller import ControlPlane
from podlife.daemons.catalog import choose
from podlife.errors import ConfigError
from podlife.nodehealth.out_of_service import (
    CommandCheck,
    OutOfServiceController,
    OutOfServiceSettings,
    Portion,
    ProviderGoneCheck,
    WebhookCheck,
)
from podlife.wire import Request, Response
from tests.kit.real_parts import ROOT
from tests.unit.cli.conftest import Refused
from tests.unit.cli.test_main import podlife

NAMED = "--controllers=out-of-service"


async def _refuse(_: Request) -> Response:
    raise AssertionError("nothing is asked for")


def plane() -> ControlPlane:
    return ControlPlane(Client(InProcessTransport(_refuse)))


@pytest.mark.parametrize("name", ["out-of-service", "outofservice", "out-of-service-controller"])
def test_it_runs_only_where_it_is_named(name: str) -> None:
    assert [known.name for known in choose([name])] == ["out-of-service"]
    assert "out-of-service" not in [known.name for known in choose(["*"])]


def test_without_flags_the_settings_are_the_defaults() -> None:
    options = OutOfServiceOptions()
    assert options.of("out-of-service") == {"settings": OutOfServiceSettings(), "checks": []}
    assert options.of("node-lifecycle-controller") == {}


def test_every_flag_reaches_the_controller() -> None:
    made: Any = OutOfServiceOptions(
        out_of_service_after=1.0,
        out_of_service_most_share="25%",
        out_of_service_min_healthy="3",
        out_of_service_cool_down=2.0,
        out_of_service_control_plane=True,
        out_of_service_dry_run=True,
        fence_command=["true 'a b'", "true"],
        fence_webhook=["https://fence.example/dead"],
        fence_provider_gone=["true"],
        fence_require="2",
        fence_timeout=3.0,
        fence_every=4.0,
    ).of("out-of-service")
    assert made["settings"] == OutOfServiceSettings(
        after_seconds=1.0,
        most=Portion(percent=25),
        min_healthy=Portion(number=3),
        cool_down_seconds=2.0,
        with_control_plane=True,
        is_dry_run=True,
        require=2,
        fence_every_seconds=4.0,
        fence_timeout_seconds=3.0,
        period_seconds=0.25,
    )
    kinds = [CommandCheck, CommandCheck, WebhookCheck, ProviderGoneCheck]
    assert [type(check) for check in made["checks"]] == kinds


@pytest.mark.parametrize(
    ("flags", "line"),
    [
        (
            [],
            "out-of-service requires a fence check, because a silent node may be alive: set --fence-command",
        ),
        (
            ["--fence-command=true", "--fence-require=2"],
            "--fence-require 2 exceeds the number of fence checks (1)",
        ),
        (
            ["--fence-require=some"],
            "--fence-require: invalid value 'some': expected all or a number of fence checks",
        ),
        (["--fence-require=0"], "invalid value '0': expected all or a number"),
        (["--fence-command=true 'x"], 'invalid --fence-command value "true \'x": No closing quotation'),
        (["--fence-command=no-such-fence"], "--fence-command: program 'no-such-fence' not found"),
        (["--fence-provider-gone=no-such-fence"], "--fence-provider-gone: program"),
        (["--fence-webhook=fence.example"], "invalid --fence-webhook URL 'fence.example'"),
        (["--fence-webhook=file:///etc/passwd"], "expected https://HOST/PATH"),
        (["--fence-webhook=http://[x/"], "invalid --fence-webhook URL"),
        (["--fence-webhook=http://x:99999/?key=secret"], "URL 'http://x:99999/'"),
        (["--fence-timeout=0"], "--fence-timeout: duration must be at least 0.1s: '0'"),
        (["--fence-every=1"], "--fence-every: invalid duration '1'"),
        (["--out-of-service-after=-5m"], "--out-of-service-after: duration must be at least 1s: '-5m'"),
        (["--out-of-service-cool-down=-1s"], "duration must be at least 0s: '-1s'"),
        (
            ["--out-of-service-most-share=0.1"],
            "--out-of-service-most-share: invalid value '0.1': expected a share of the nodes",
        ),
        (["--out-of-service-most-share=0%"], "invalid value '0%': expected a share"),
        (["--out-of-service-most-share=101%"], "invalid value '101%': expected a share"),
        (["--out-of-service-min-healthy=-1"], "invalid value '-1': expected a share or a number of nodes"),
        (["--out-of-service-min-healthy=half"], "invalid value 'half': expected a share or"),
        ([f"--out-of-service-min-healthy={'9' * 5000}"], "expected a share or a number of nodes"),
        ([f"--fence-require={'9' * 5000}"], "expected all or a number of fence checks"),
    ],
)
def test_a_flag_that_cannot_be_is_one_line(refused: Refused, flags: list[str], line: str) -> None:
    said = refused("controllers", "run", NAMED, *flags)
    assert line in said
    assert "secret" not in said


def test_fence_checks_that_nobody_would_ask_are_a_mistake(refused: Refused) -> None:
    assert "without out-of-service: add it to --controllers" in refused(
        "controllers", "run", "--fence-command=true"
    )


def test_up_says_how_it_is_run_beside_it(refused: Refused) -> None:
    said = refused("up", "--controllers=*,out-of-service")
    assert "podlife controllers run --controllers=out-of-service" in said


async def test_who_makes_it_without_a_fence_check_is_refused_too() -> None:
    with pytest.raises(ConfigError, match="requires at least one fence check"):
        OutOfServiceController(plane(), checks=[])
    for require in (0, 2):
        with pytest.raises(ConfigError, match=f"{require} fence checks are required, there are 1"):
            OutOfServiceController(
                plane(),
                checks=[CommandCheck(["true"], seconds=1)],
                settings=OutOfServiceSettings(require=require),
            )


async def test_its_numbers_are_shown_and_on_the_page() -> None:
    from prometheus_client import CollectorRegistry

    [known] = choose(["out-of-service"])
    controller: Any = known.make(plane(), **OutOfServiceOptions(fence_command=["true"]).of(known.name))
    metrics = controller.metrics
    metrics.tainted = 2
    metrics.removed["freed"] = 1
    metrics.refused["not-confirmed"] = 3
    metrics.checks["command", "timeout"] = 4
    metrics.nodes["podlife"] = 1
    registry = CollectorRegistry()
    assert known.export is not None
    known.export(registry, controller)
    read = registry.get_sample_value
    assert read("podlife_out_of_service_tainted_total") == 2
    assert read("podlife_out_of_service_removed_total", {"reason": "freed"}) == 1
    assert read("podlife_out_of_service_refused_total", {"reason": "not-confirmed"}) == 3
    assert read("podlife_out_of_service_checks_total", {"check": "command", "result": "timeout"}) == 4
    assert read("podlife_out_of_service_nodes", {"by": "podlife"}) == 1
    assert read("podlife_out_of_service_nodes", {"by": "others"}) == 0


def test_the_page_has_every_flag_with_its_default_and_every_reason() -> None:
    from podlife.nodehealth.out_of_service.decision import RefusalReason

    page = (ROOT / "docs" / "out-of-service.md").read_text()
    shown = podlife("controllers", "run", "--help", COLUMNS="300").stdout
    flags = set(re.findall(r"--(?:fence|out-of-service)-[a-z-]+", shown))
    assert len(flags) == 12
    for flag in flags:
        assert f"`{flag}" in page, flag
    for reason in set(RefusalReason) - {RefusalReason.READY, RefusalReason.FREED}:
        assert f"| `{reason}` |" in page, reason
