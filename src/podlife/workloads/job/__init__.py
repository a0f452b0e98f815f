"""Job controller: pods that run to completion, each counted exactly once."""

from podlife.workloads.job.controller import JobController
from podlife.workloads.job.views import Job

__all__ = ["Job", "JobController"]
