"""CronJob controller: starts Jobs by a schedule."""

from podlife.workloads.cronjob.controller import CronJobController

__all__ = ["CronJobController"]
