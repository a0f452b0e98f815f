"""When a CronJob starts its next Job: start times that were missed, and the time to wait for the next one. Pure."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from datetime import datetime, timedelta

from podlife.api.cron import NEVER, Schedule
from podlife.workloads.cronjob.views import CronJob

# More missed start times are reported: the clock may be wrong.
_MANY = 100
# Upstream's: a timer may fire a little early.
_DELTA = timedelta(milliseconds=100)
_SECOND = timedelta(seconds=1)


class InvalidScheduleError(ValueError):
    """A schedule that can be parsed, but whose start times cannot be used."""


@dataclass(frozen=True, slots=True)
class MissedStart:
    # Start times are counted from here.
    earliest: datetime
    # The most recent start time that was missed.
    latest: datetime | None = None
    # An estimate, as upstream's: by the time between the first two.
    count: int = 0

    @property
    def is_many(self) -> bool:
        return self.count > _MANY


def missed_start(
    cron_job: CronJob, schedule: Schedule, now: datetime, *, within_deadline: bool = True
) -> MissedStart:
    """Raises InvalidScheduleError for a schedule without start times, such as February 31."""
    earliest = cron_job.last_schedule_time or cron_job.metadata.creation_timestamp or now
    deadline = cron_job.spec.starting_deadline_seconds
    if within_deadline and deadline is not None:
        # A deadline of more than 2,000 years is none.
        with suppress(OverflowError):
            earliest = max(earliest, now - timedelta(seconds=deadline))
    if earliest > now:
        # A clock was set back: nothing is missed, however far ahead it was.
        return MissedStart(earliest)
    first = schedule.next(earliest)
    second = schedule.next(first)
    if now < first:
        return MissedStart(earliest)
    if now < second:
        return MissedStart(earliest, first)
    interval = timedelta(seconds=round((second - first).total_seconds()))
    if interval < _SECOND:
        raise InvalidScheduleError("time difference between two schedules is less than 1 second")
    count = int((now - first).total_seconds()) // int(interval.total_seconds()) + 1
    # One interval earlier than estimated: the schedule may be irregular. `@every` is counted from the first start.
    return MissedStart(earliest, schedule.latest(first + (count - 2) * interval, now), count)


def seconds_to_next_start(cron_job: CronJob, schedule: Schedule, now: datetime) -> float | None:
    """None if there is no start time any more."""
    try:
        missed = missed_start(cron_job, schedule, now, within_deadline=False)
        last = missed.latest or (now if missed.count else missed.earliest)
    except InvalidScheduleError:
        last = now
    following = schedule.next(last)
    return None if following is NEVER else max((following + _DELTA - now).total_seconds(), 0.0)
