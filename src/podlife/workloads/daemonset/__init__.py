"""DaemonSet controller: one pod of a template on every node that fits."""

from podlife.workloads.daemonset.controller import DaemonSetController

__all__ = ["DaemonSetController"]
