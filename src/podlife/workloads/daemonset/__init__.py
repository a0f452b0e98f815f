"""DaemonSet controller: one pod of a template on every matching node."""

from podlife.workloads.daemonset.controller import DaemonSetController

__all__ = ["DaemonSetController"]
