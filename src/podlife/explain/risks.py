"""The risks that several remedies have in common, in words."""

from __future__ import annotations

FORCED = (
    "The object goes, whatever still runs of it on the node goes on: with a StatefulSet or a volume that one pod may "
    "write, two may run at once."
)
TAINTED = (
    "Only when the machine is certainly off: every pod on it that does not tolerate the taint is deleted, and its "
    "volumes are detached under what may still write. Take the taint off when the node is back."
)
