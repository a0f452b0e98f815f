"""Jobs: `JobController`. Pods that run to their end, each counted exactly once."""

from podlife.workloads.job.controller import JobController
from podlife.workloads.job.views import Job

__all__ = ["Job", "JobController"]
