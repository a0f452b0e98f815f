"""The times and bounds of a node agent (KL-01), in seconds and bytes, where no others are configured."""

from __future__ import annotations

RELIST_SECONDS = 1.0
RELIST_UNHEALTHY_SECONDS = 180.0
RELIST_EVENTS = 1000
RESYNC_SECONDS = 60.0
SYNC_TICK_SECONDS = 1.0
HOUSEKEEPING_SECONDS = 2.0
HOUSEKEEPING_WARNING_SECONDS = 1.0
STATUS_SYNC_SECONDS = 10.0
CRASH_LOOP_INITIAL_SECONDS = 10.0
CRASH_LOOP_MAX_SECONDS = 300.0
CRASH_LOOP_RESET_SECONDS = 600.0
CONTAINER_GC_SECONDS = 60.0
MINIMUM_STOP_SECONDS = 2
# Longer than any container runs, and short enough for every timer and message on the way to it.
MAXIMUM_STOP_SECONDS = 2**31 - 1
TERMINATION_MESSAGES_BYTES = 12288
