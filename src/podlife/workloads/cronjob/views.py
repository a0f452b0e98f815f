"""Views of CronJobs. Job template and status stay plain dictionaries."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from podlife.api.codec import parse_time
from podlife.workloads.views import Workload


class CronJobSpec(msgspec.Struct, rename="camel"):
    schedule: str = ""
    time_zone: str | None = None
    starting_deadline_seconds: int | None = None
    concurrency_policy: str = "Allow"
    suspend: bool = False
    job_template: dict[str, Any] = {}
    successful_jobs_history_limit: int | None = None
    failed_jobs_history_limit: int | None = None


class CronJob(Workload):
    spec: CronJobSpec = msgspec.field(default_factory=CronJobSpec)

    @property
    def last_schedule_time(self) -> datetime | None:
        try:
            return parse_time(self.status.get("lastScheduleTime") or "")
        except ValueError:
            # Absent, or beyond the times that exist.
            return None
