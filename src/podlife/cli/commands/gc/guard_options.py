"""Guards that are given on the command line, beside those of a policy or without one."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Annotated

import typer

from podlife.cli.options import whole_number

if TYPE_CHECKING:
    from podlife.podgc import Settings


@dataclass(frozen=True, slots=True)
class GuardOptions:
    max_per_minute: Annotated[
        int | None,
        typer.Option(
            metavar="NUMBER",
            parser=whole_number(1),
            show_default="no bound",
            help="Never delete more pods than this in a minute, nor more than the policy allows.",
        ),
    ] = None
    observe: Annotated[
        bool, typer.Option("--observe", help="Decide and tell everything, change nothing.")
    ] = False
    force: Annotated[
        bool,
        typer.Option(
            "--force", help="Go on where the policy's share of a namespace or of the cluster would stop it."
        ),
    ] = False

    def on(self, flags: Settings) -> Settings:
        """The settings with these; with nothing said they are as they were."""
        if self.max_per_minute is None and not self.observe:
            return replace(flags, is_forced=self.force)
        from podlife.podgc.policy.model import Guards

        guards = Guards(per_minute=self.max_per_minute, is_observing=self.observe)
        return replace(flags, guards=guards, is_forced=self.force)
