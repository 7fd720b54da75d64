"""The schedule: which hour is due, what became of those that were missed, and the process that waits for the next.

The truth is in kb.runs: each hour has one row at most, whoever looks at the clock, and however often. A missed hour is
made up for once, by the newest; older ones are recorded as skipped. Hours before a schedule first looked were nobody's:
a schedule that is set up by day runs by night. An hour at which another run is still at work is skipped too.
`kb nightly run --due` looks once, for cron and timers; `serve` looks at each hour, with APScheduler.
"""

import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from types import FrameType
from typing import Any

from apscheduler.schedulers.background import BackgroundScheduler
from apscheduler.schedulers.blocking import BlockingScheduler
from apscheduler.triggers.base import BaseTrigger

from agent_server.errors import KnowledgeBankError
from nightly.hours import Hour
from nightly.record import NightBusy
from nightly.run import Night, Request, RunReport

#: The longest sleep: a machine that was suspended wakes up with the rest of an old one.
LOOK_EVERY_S = 60
#: Hours that are recorded one by one when a schedule stood still for longer.
MOST_MISSED = 400
#: How late the first look of all may come for the hour to be its own, and not one of before there was a schedule.
FIRST_LOOK = timedelta(hours=1)


@dataclass(slots=True)
class Schedule:
    """The nights of one database, by the clock of `night`. Threads may look at once."""

    night: Night
    hour: Hour
    grace: timedelta
    jobs: tuple[str, ...] = ()
    only: tuple[str, ...] = ()
    told: Callable[[str], None] = lambda _: None
    _owed: bool = field(default=False)  #: the last look ended in a fault: look again soon

    def due(self) -> datetime | None:
        """The hour to run for now, if any; missed ones are recorded. Raises DatabaseUnavailable."""
        now = self.night.context.clock()
        record = self.night.record
        last, recorded = self.hour.last_due(now), record.last_due()
        if recorded is not None and recorded >= last:
            return None
        if recorded is None and now - last > FIRST_LOOK:
            first = f"{self.hour.next_due(now):%Y-%m-%d %H:%M} UTC"
            record.skipped(last, now, f"before the schedule's first look; its first run is due at {first}")
            return None
        missed = [] if recorded is None else self.hour.between(recorded, last)[-MOST_MISSED:]
        late = now - last > self.grace
        for one in missed:
            makes_up = f"the run due at {last:%Y-%m-%d %H:%M} UTC makes up for it"
            record.skipped(one, now, f"missed: nothing looked at the clock; {'' if late else makes_up}".rstrip("; "))
        if late:
            record.skipped(last, now, f"missed by {_hours(now - last)}, more than KB_NIGHTLY_GRACE_H")
            return None
        return last

    def look(self) -> RunReport | None:
        """Run what is due; None when nothing is. Raises NightBusy, with the hour recorded as skipped; else what
        `Night.run` raises."""
        due = self.due()
        return None if due is None else self.night.run(Request(jobs=self.jobs, only=self.only, due_at=due))

    def tick(self) -> None:
        """Look, and say what happened; a fault is told and looked at again within a minute."""
        self._owed = False
        try:
            report = self.look()
        except NightBusy as error:
            self.told(error.message)
        except KnowledgeBankError as error:
            self._owed = True
            self.told(f"{error.message} {error.hint}".strip())
        else:
            if report is not None:
                self.told(f"run {report.run_id}: {report.outcome}: {report.summary}")
                for warning in report.warnings:
                    self.told(warning)

    def tick_again(self) -> None:
        """What wakes the process up every minute: it looks where a look is owed."""
        if self._owed:
            self.tick()


class HourTrigger(BaseTrigger):  # type: ignore[misc]  # APScheduler has no types
    """An APScheduler trigger that fires at an `Hour`."""

    def __init__(self, hour: Hour) -> None:
        self.hour = hour

    def get_next_fire_time(self, previous: datetime | None, now: datetime) -> datetime:
        """The next due moment; what lies between `previous` and `now` is one missed run, made up for at once."""
        return self.hour.next_due(previous if previous is not None else now)


def scheduler_of(schedule: Schedule, scheduler: Any) -> Any:
    """`scheduler` of APScheduler with the jobs of a schedule: each hour, once now for what was missed, and the wake-up.

    Two instances may look at once: where one is still at work at the next hour, the other records that.
    """
    scheduler.add_job(
        schedule.tick, HourTrigger(schedule.hour), id="night", next_run_time=datetime.now(UTC), coalesce=True,
        max_instances=2, misfire_grace_time=None,
    )  # fmt: skip
    scheduler.add_job(
        schedule.tick_again, "interval", seconds=LOOK_EVERY_S, id="wake", coalesce=True, misfire_grace_time=None
    )
    return scheduler


def background(schedule: Schedule) -> BackgroundScheduler:
    """A scheduler in threads of this process; `start` and `shutdown` are the caller's."""
    return scheduler_of(schedule, BackgroundScheduler(timezone=UTC))


def serve(schedule: Schedule) -> None:
    """Wait for the hours until SIGTERM or SIGINT. A run that is going on is finished first; a second signal ends it
    at once, and the next run finds it dead."""
    scheduler = scheduler_of(schedule, BlockingScheduler(timezone=UTC))

    def stop(number: int, frame: FrameType | None) -> None:
        del frame
        signal.signal(number, signal.SIG_DFL)
        schedule.told("stopping; a run that is going on is finished first, a second signal ends it at once")
        scheduler.shutdown(wait=False)

    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, stop)
    scheduler.start()


def _hours(span: timedelta) -> str:
    return f"{span.total_seconds() / 3600:.1f} h"
