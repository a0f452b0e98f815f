"""`podlife gc plan`: show what would be collected."""

from __future__ import annotations

import sys

from podlife.cli.commands.gc.output import Shown, format_plan
from podlife.cli.connection import ConnectionOptions, connected, load_connection
from podlife.clock import SystemClock
from podlife.daemons import event_loop as loop
from podlife.podgc import GcSession, Plan, Selection, Settings


def show_plan(options: ConnectionOptions, settings: Settings, selection: Selection, output: str) -> Plan:
    """Print the plan in the requested format. Raises PodlifeError if it cannot be made."""
    connection, clock = load_connection(options), SystemClock()

    async def make() -> Plan:
        async with connected(options, connection) as client:
            return await GcSession(client, settings, selection=selection, clock=clock).plan()

    plan = loop.run(make())
    sys.stdout.write(format_plan(plan, output, clock.now(), Shown(settings, selection.namespace)))
    return plan
