"""Shared by the options of several commands: groups of options, and parsers for values in kubectl's formats.

A command parameter whose type is a dataclass stands for one option per field. So the connection flags, for example, are
declared once for all commands.
"""

from __future__ import annotations

import dataclasses
import functools
import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, get_type_hints

import typer
from typer.core import TyperCommand, TyperGroup, TyperOption

if TYPE_CHECKING:
    from podlife.daemons.service import ElectionSettings

R = TypeVar("R")

Completer = Callable[[typer.Context, str], list[str]]

# The container runtimes of a node.
RUNTIMES = ("process", "containerd", "sim")

_BOOLEANS = {"true": True, "t": True, "1": True, "false": False, "f": False, "0": False}


class GoCommand(TyperCommand):
    """A command whose boolean flags accept a value, as in Kubernetes' own programs: --leader-elect=false is
    --no-leader-elect."""

    # Any: which class it is depends on the version of typer.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raises BadParameter for a value that is neither true nor false."""
        switches = {
            name: option
            for option in self.get_params(ctx)
            if isinstance(option, TyperOption) and option.is_flag and not option.count
            for name in option.opts
        }
        return super().parse_args(ctx, [word for text in args for word in _switched(ctx, text, switches)])


class RootGroup(TyperGroup):
    """The root of all commands; it rejects empty arguments of every command and option.

    A script passes an empty argument when a variable is not set, and a command treats an empty name as none:
    `--node "$NODE"` would return the admin's credentials."""

    # Any: which class it is depends on the version of typer.
    def parse_args(self, ctx: Any, args: list[str]) -> list[str]:
        """Raises BadParameter."""
        if not ctx.resilient_parsing:
            _refuse_empty_words(ctx, args)
        return super().parse_args(ctx, args)


_EMPTY_OPTION = re.compile(r"(--[a-z][a-z0-9-]*)=\s*")


def _refuse_empty_words(ctx: Any, args: list[str]) -> None:
    for before, word in zip(["", *args], args, strict=False):
        if match := _EMPTY_OPTION.fullmatch(word):
            name = match[1]
        elif word.strip():
            continue
        else:
            name = before if before.startswith("-") else "an argument"
        raise typer.BadParameter(f"{name} is empty: give it a value, or leave it out", ctx=ctx)


def _switched(ctx: Any, text: str, switches: dict[str, TyperOption]) -> list[str]:
    """A flag with a value as the equivalent arguments; anything else unchanged."""
    name, equals, value = text.partition("=")
    if not equals or name not in switches or not name.startswith("--"):
        return [text]
    is_on = parse_boolean(value)
    if is_on is None:
        raise typer.BadParameter(f"{text!r} must be {name}=true or {name}=false", ctx=ctx)
    # A flag without a negative form is off by default.
    return [name] if is_on else switches[name].secondary_opts[:1]


def with_groups(command: Callable[..., R]) -> Callable[..., R]:
    """The command, with an option for each field of each parameter whose type is a dataclass."""
    signature = inspect.signature(command, eval_str=True)
    groups: dict[str, type[Any]] = {
        name: parameter.annotation
        for name, parameter in signature.parameters.items()
        if isinstance(parameter.annotation, type) and dataclasses.is_dataclass(parameter.annotation)
    }
    options: list[inspect.Parameter] = []
    for name, parameter in signature.parameters.items():
        if name in groups:
            options += _options_of(groups[name])
        else:
            options.append(parameter.replace(kind=inspect.Parameter.KEYWORD_ONLY))

    @functools.wraps(command)
    def with_fields(**given: Any) -> R:
        for name, group in groups.items():
            given[name] = group(**{field.name: given.pop(field.name) for field in dataclasses.fields(group)})
        return command(**given)

    with_fields.__signature__ = signature.replace(parameters=options)  # type: ignore[attr-defined]
    with_fields.__annotations__ = {option.name: option.annotation for option in options}
    return with_fields


def _options_of(group: type[Any]) -> list[inspect.Parameter]:
    types = get_type_hints(group, include_extras=True)
    return [
        inspect.Parameter(
            field.name, inspect.Parameter.KEYWORD_ONLY, default=field.default, annotation=types[field.name]
        )
        for field in dataclasses.fields(group)
    ]


def parse_duration(text: str | float) -> float:
    """Seconds, from a Go duration: 40s, 1m30s, 500ms, 0."""
    from podlife.api.durations import MAX_SECONDS, parse_go_duration

    if not isinstance(text, str):
        return text  # a default, which is in seconds already
    seconds = parse_go_duration(text)
    if seconds is None:
        # Policies support days; the largest unit of Go durations is the hour.
        days = re.fullmatch(r"([0-9]{1,5})([dw])", text)
        hours = f"{int(days[1]) * (24 if days[2] == 'd' else 168)}h" if days else ""
        raise typer.BadParameter(f"invalid duration {text!r}: expected {hours or '40s, 1m30s or 500ms'}")
    if abs(seconds) >= MAX_SECONDS:
        raise typer.BadParameter(f"duration exceeds the maximum (2562047h): {text!r}")
    return seconds


def not_negative(hint: str) -> Callable[[str | float], float]:
    """A parser of durations from 0; `hint` is the error for others."""

    def parse(text: str | float) -> float:
        seconds = parse_duration(text)
        if seconds < 0:
            raise typer.BadParameter(f"{hint}: {text!r}")
        return seconds

    return parse


def parse_timeout(text: str | float) -> float:
    """A duration from 0; a bare number is seconds, as kubectl's --request-timeout has it."""
    from podlife.api.durations import NUMBER

    seconds = float(text) if isinstance(text, str) and re.fullmatch(NUMBER, text) else parse_duration(text)
    if seconds < 0:
        raise typer.BadParameter(f"duration must not be negative: {text!r}")
    return seconds


def _parse_runtime(text: str) -> str:
    if text not in RUNTIMES:
        raise typer.BadParameter(f"unknown runtime {text!r}; choose from {', '.join(RUNTIMES)}")
    return text


def whole_number(minimum: int | None = None, maximum: int | None = None) -> Callable[[str | int], int]:
    """A parser for whole numbers within the given bounds."""
    at_least = (
        "" if minimum is None else f" from {minimum}" if maximum is not None else f" of {minimum} or more"
    )
    bounds = at_least + ("" if maximum is None else f" to {maximum}")

    def parse(text: str | int) -> int:
        try:
            number = int(text)
        except ValueError:
            number = None
        if (
            number is None
            or (minimum is not None and number < minimum)
            or (maximum is not None and number > maximum)
        ):
            raise typer.BadParameter(f"invalid value {text!r}: expected a whole number{bounds}")
        return number

    return parse


def parse_boolean(text: str) -> bool | None:
    """A Go boolean; None for anything else."""
    return _BOOLEANS.get(text.lower())


def words(given: list[str] | None) -> list[str]:
    """The values of an option that is comma-separated or repeated."""
    return [word.strip() for text in given or () for word in text.split(",") if word.strip()]


def parse_address(text: str) -> tuple[str, int]:
    """Host and port of HOST:PORT, [HOST]:PORT or :PORT."""
    host, colon, port = text.rpartition(":")
    host = host.removeprefix("[").removesuffix("]")
    if not colon or not port.isdecimal() or int(port) > 65_535:
        raise typer.BadParameter(
            f"invalid --listen address {text!r}: expected HOST:PORT, such as 127.0.0.1:8080"
        )
    return host, int(port)


def _parse_verbosity(text: str | int) -> int:
    if not isinstance(text, str):
        return text
    # For -v=4, kubectl's form, the parser includes the equals sign in the value.
    number = text.removeprefix("=")
    if not number.isdecimal():
        raise typer.BadParameter(f"invalid log level {text!r}: expected a whole number; 0 logs the least")
    return int(number)


def one_of(*words: str) -> Completer:
    def complete(ctx: typer.Context, incomplete: str) -> list[str]:
        return [word for word in words if word.startswith(incomplete)]

    return complete


def command_group(help_: str, **settings: Any) -> typer.Typer:
    """A group of commands; without a subcommand it shows its help."""
    return typer.Typer(help=help_, no_args_is_help=True, rich_markup_mode=None, **settings)


def option(metavar: str, help_: str, *names: str, **settings: Any) -> Any:
    """An option with a value; `settings` are those of typer.Option."""
    return typer.Option(*names, metavar=metavar, help=help_, **settings)


def duration_option(
    help_: str, shown: str, *names: str, parser: Callable[[str | float], float] = parse_duration
) -> Any:
    """`shown` is its default, as the help shows it."""
    return typer.Option(*names, metavar="DURATION", parser=parser, show_default=shown, help=help_)


def number_option(help_: str, minimum: int | None = None, maximum: int | None = None, **settings: Any) -> Any:
    return typer.Option(
        help=help_, parser=whole_number(minimum, maximum), **{"metavar": "NUMBER", **settings}
    )


def format_option(*formats: str, help_: str = "Output format.") -> Any:
    """The `-o` option with these formats."""

    def parse(text: str) -> str:
        if text not in formats:
            raise typer.BadParameter(f"unknown output format {text!r}; choose from {', '.join(formats)}")
        return text

    return option("|".join(formats), help_, "-o", "--output", parser=parse, autocompletion=one_of(*formats))


ListenOption = Annotated[
    str,
    option(
        "HOST:PORT",
        "Address of /metrics, /healthz, /readyz and an index of them; :PORT listens on all addresses; default: off.",
    ),
]
VerbosityOption = Annotated[
    int,
    option(
        "LEVEL",
        "Log level: 0 for actions, 1 with reasons and steps, 4 with messages of libraries.",
        "-v",
        "--v",
        parser=_parse_verbosity,
        show_default="0",
    ),
]
RuntimeOption = Annotated[
    str,
    option(
        "|".join(RUNTIMES),
        "Container runtime: local processes, containerd, or simulated containers.",
        parser=_parse_runtime,
        autocompletion=one_of(*RUNTIMES),
    ),
]


@dataclass(frozen=True, slots=True)
class ElectionOptions:
    """The names are kube-controller-manager's."""

    leader_elect: Annotated[bool, typer.Option(help="Work only while this process holds the lease.")] = True
    leader_elect_lease_duration: Annotated[
        float, duration_option("Time that candidates wait after the last observed renewal.", "15s")
    ] = 15.0
    leader_elect_renew_deadline: Annotated[
        float, duration_option("Time that the leader tries to renew before it stops working.", "10s")
    ] = 10.0
    leader_elect_retry_period: Annotated[float, duration_option("Time between two attempts.", "2s")] = 2.0
    leader_elect_resource_name: Annotated[str, option("NAME", "The name of the lease.")] = "podlife-gc"
    leader_elect_resource_namespace: Annotated[
        str, option("NAME", "The namespace of the lease.", show_default="the pod's own, or kube-system")
    ] = ""
    leader_elect_identity: Annotated[
        str, option("NAME", "Identity used in leader election.", show_default="HOST_UUID")
    ] = ""

    def settings(self) -> ElectionSettings | None:
        """None without leader election; raises BadParameter if two processes could hold the lease at once."""
        lease, renew = self.leader_elect_lease_duration, self.leader_elect_renew_deadline
        retry = self.leader_elect_retry_period
        if lease <= renew:
            raise typer.BadParameter(
                "--leader-elect-lease-duration must be longer than --leader-elect-renew-deadline"
            )
        # client-go's jitter factor: a retry may come that much later.
        if renew <= retry * 1.2:
            raise typer.BadParameter(
                "--leader-elect-renew-deadline must be longer than 1.2 times --leader-elect-retry-period"
            )
        if retry <= 0:
            raise typer.BadParameter("--leader-elect-retry-period must be longer than 0")
        if not self.leader_elect_resource_name:
            raise typer.BadParameter("--leader-elect-resource-name must not be empty")
        if not self.leader_elect:
            return None
        from podlife.daemons.service import ElectionSettings

        return ElectionSettings(
            self.leader_elect_resource_name,
            self.leader_elect_resource_namespace,
            self.leader_elect_identity,
            lease,
            renew,
            retry,
        )
