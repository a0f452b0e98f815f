"""`podlife gc plan`: what would be collected, shown and not done."""

from __future__ import annotations

import sys

from podlife.cli import loop
from podlife.cli.connecting import ConnectionOptions, connected, load_connection
from podlife.cli.gc_output import format_plan
from podlife.client import Connection
from podlife.clock import SystemClock
from podlife.podgc import Selection, Settings
from podlife.podgc.policies.guards import Moment
from podlife.podgc.policies.guards_plan import hold_back
from podlife.podgc.policies.owner_plan import set_waiting_apart
from podlife.podgc.policy import Plan, due_now
from podlife.podgc.sweep import plan_once

__all__ = ["show_plan"]


def show_plan(options: ConnectionOptions, settings: Settings, selection: Selection, output: str) -> None:
    """Print the plan in the form that was asked for. Raises PodlifeError when it cannot be made."""
    connection = load_connection(options)
    plan = due_now(loop.run(_make_plan(options, connection, settings, selection)), settings)
    now = SystemClock().now()
    plan = hold_back(plan, settings, Moment(0.0, now))
    sys.stdout.write(format_plan(plan, output, now, is_one_namespace=bool(selection.namespace)))


async def _make_plan(
    options: ConnectionOptions, connection: Connection, settings: Settings, selection: Selection
) -> Plan:
    async with connected(options, connection) as client:
        plan = await plan_once(client, settings, selection)
        return await set_waiting_apart(plan, client, settings, SystemClock())
