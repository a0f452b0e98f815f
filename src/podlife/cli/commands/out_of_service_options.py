"""Flags of the out-of-service controller, and the fence checks created from them.

Invalid flags are reported before anything is loaded or connected, above all a missing fence check: without one no node
may be declared dead.
"""

from __future__ import annotations

import re
import shlex
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import urlsplit

import typer

from podlife.cli.options import duration_option, option, parse_duration

if TYPE_CHECKING:
    from podlife.nodehealth.out_of_service import FenceCheck, Portion

# Maximum time between two passes over all nodes.
_MAX_PERIOD_SECONDS = 5.0
_NUMBER = re.compile(r"[0-9]{1,6}")
_PERCENT = re.compile(r"([0-9]+(?:\.[0-9]+)?)%")


def _time(minimum: float) -> Callable[[str | float], float]:
    def parse(text: str | float) -> float:
        seconds = parse_duration(text)
        if seconds < minimum:
            raise typer.BadParameter(f"duration must be at least {minimum:g}s: {text!r}")
        return seconds

    return parse


def _percent(text: str) -> float | None:
    match = _PERCENT.fullmatch(text)
    return None if match is None or float(match[1]) > 100 else float(match[1])


def _text(is_valid: Callable[[str], bool], expected: str) -> Callable[[str], str]:
    def parse(text: str) -> str:
        if not is_valid(text):
            raise typer.BadParameter(f"invalid value {text!r}: expected {expected}")
        return text

    return parse


def _is_number(text: str, minimum: int = 0) -> bool:
    return _NUMBER.fullmatch(text) is not None and int(text) >= minimum


_share = _text(
    lambda text: bool(_percent(text)),
    "a share of the nodes such as 10%, above 0% and up to 100%",
)
_share_or_number = _text(
    lambda text: _percent(text) is not None or _is_number(text),
    "a share or a number of nodes, such as 50% or 3",
)
_all_or_number = _text(
    lambda text: text == "all" or _is_number(text, minimum=1),
    "all or a number of fence checks, 1 or more",
)


@dataclass(frozen=True, slots=True)
class OutOfServiceOptions:
    out_of_service_after: Annotated[
        float,
        duration_option(
            "out-of-service: how long a node must be not ready, without heartbeats, before fence checks run.",
            "5m",
            parser=_time(1),
        ),
    ] = 300.0
    out_of_service_most_share: Annotated[
        str,
        option(
            "SHARE",
            "Maximum share of nodes out of service at once, at least one; if more are dead, no node is tainted.",
            parser=_share,
        ),
    ] = "10%"
    out_of_service_min_healthy: Annotated[
        str,
        option(
            "SHARE|NUMBER",
            "Minimum of ready nodes; with fewer, no node is tainted.",
            parser=_share_or_number,
        ),
    ] = "50%"
    out_of_service_cool_down: Annotated[
        float,
        duration_option("How long a recovered node is not tainted again.", "10m", parser=_time(0)),
    ] = 600.0
    out_of_service_control_plane: Annotated[
        bool, typer.Option("--out-of-service-control-plane", help="Include control plane nodes.")
    ] = False
    out_of_service_dry_run: Annotated[
        bool, typer.Option("--out-of-service-dry-run", help="Only report what would be done to nodes.")
    ] = False
    fence_command: Annotated[
        list[str] | None,
        option(
            "COMMAND",
            "Program that exits with 0 if the machine is dead; arguments: NAME UID PROVIDER-ID IPS (repeatable).",
        ),
    ] = None
    fence_webhook: Annotated[
        list[str] | None, option("URL", 'URL that answers a POST with {"dead": true} (repeatable).')
    ] = None
    fence_provider_gone: Annotated[
        list[str] | None,
        option("COMMAND", "Program that prints gone or exists for a providerID (repeatable)."),
    ] = None
    fence_require: Annotated[
        str, option("NUMBER|all", "Number of fence checks that must confirm it.", parser=_all_or_number)
    ] = "all"
    fence_timeout: Annotated[
        float,
        duration_option(
            "Time limit of a fence check; on timeout it has confirmed nothing.",
            "10s",
            parser=_time(0.1),
        ),
    ] = 10.0
    fence_every: Annotated[
        float, duration_option("Minimum time between two fence checks of a node.", "30s", parser=_time(1))
    ] = 30.0

    @property
    def _count(self) -> int:
        return sum(
            len(each or ()) for each in (self.fence_command, self.fence_webhook, self.fence_provider_gone)
        )

    def check(self, names: Collection[str]) -> None:
        """Raises BadParameter for flags that do not fit the controllers of these names."""
        from podlife.daemons.catalog import OUT_OF_SERVICE

        if OUT_OF_SERVICE not in names:
            if self._count:
                raise typer.BadParameter(
                    f"fence checks have no effect without {OUT_OF_SERVICE}: add it to --controllers"
                )
            return
        if not self._count:
            raise typer.BadParameter(
                f"{OUT_OF_SERVICE} requires a fence check, because a silent node may be alive: set --fence-command, "
                "--fence-webhook or --fence-provider-gone"
            )
        if self.fence_require != "all" and int(self.fence_require) > self._count:
            raise typer.BadParameter(
                f"--fence-require {self.fence_require} exceeds the number of fence checks ({self._count})"
            )
        for text in self.fence_command or ():
            _check_program("--fence-command", text)
        for text in self.fence_provider_gone or ():
            _check_program("--fence-provider-gone", text)
        for url in self.fence_webhook or ():
            _check_url(url)

    def of(self, name: str) -> dict[str, Any]:
        """The keyword arguments of the controller with this name."""
        from podlife.daemons.catalog import OUT_OF_SERVICE

        if name != OUT_OF_SERVICE:
            return {}
        from podlife.nodehealth.out_of_service import OutOfServiceSettings

        settings = OutOfServiceSettings(
            after_seconds=self.out_of_service_after,
            most=_portion(self.out_of_service_most_share),
            min_healthy=_portion(self.out_of_service_min_healthy),
            cool_down_seconds=self.out_of_service_cool_down,
            with_control_plane=self.out_of_service_control_plane,
            is_dry_run=self.out_of_service_dry_run,
            require=None if self.fence_require == "all" else int(self.fence_require),
            fence_every_seconds=self.fence_every,
            fence_timeout_seconds=self.fence_timeout,
            period_seconds=min(_MAX_PERIOD_SECONDS, self.out_of_service_after / 4),
        )
        return {"settings": settings, "checks": self._checks()}

    def _checks(self) -> list[FenceCheck]:
        from podlife.nodehealth.out_of_service import CommandCheck, ProviderGoneCheck, WebhookCheck

        seconds = self.fence_timeout
        return [
            *(CommandCheck(shlex.split(text), seconds=seconds) for text in self.fence_command or ()),
            *(WebhookCheck(url, seconds=seconds) for url in self.fence_webhook or ()),
            *(
                ProviderGoneCheck(shlex.split(text), seconds=seconds)
                for text in self.fence_provider_gone or ()
            ),
        ]


def _check_program(flag: str, text: str) -> None:
    try:
        argv = shlex.split(text)
    except ValueError as error:
        raise typer.BadParameter(f"invalid {flag} value {text!r}: {error}") from None
    if not argv:
        raise typer.BadParameter(f"{flag} is empty: expected a program and its arguments")
    if shutil.which(argv[0]) is None:
        raise typer.BadParameter(f"{flag}: program {argv[0]!r} not found; check its name, or use its path")


def _check_url(url: str) -> None:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        is_valid = False
    if not is_valid:
        # Without the query, which may contain a secret.
        raise typer.BadParameter(
            f"invalid --fence-webhook URL {url.partition('?')[0]!r}: expected https://HOST/PATH"
        )


def _portion(text: str) -> Portion:
    from podlife.nodehealth.out_of_service import Portion

    percent = _percent(text)
    return Portion(number=int(text)) if percent is None else Portion(percent=percent)
