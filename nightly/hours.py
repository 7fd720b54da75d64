"""When a night is due. Pure: the hour of the wall clock in a zone, on both sides of a moment, in UTC.

One hour a date: a time that does not exist (clocks go forward) is due at the time it is shifted to, one that exists
twice (clocks go back) at its first. Where a whole date is left out, its hour falls together with the next one's.
"""

from dataclasses import dataclass
from datetime import UTC, datetime, time, timedelta
from zoneinfo import ZoneInfo

#: Dates to look at around a moment: zones are up to 14 hours off, and may leave out a date.
_DAYS = range(-3, 4)


@dataclass(frozen=True, slots=True)
class Hour:
    """The hour of the night in a zone."""

    at: time
    zone: ZoneInfo

    def next_due(self, after: datetime) -> datetime:
        """The first due moment later than `after` (aware), in UTC."""
        return min(due for due in self._around(after) if due > after)

    def last_due(self, now: datetime) -> datetime:
        """The newest due moment that is not later than `now` (aware), in UTC."""
        return max(due for due in self._around(now) if due <= now)

    def between(self, after: datetime, until: datetime) -> list[datetime]:
        """Due moments later than `after` and earlier than `until`, oldest first."""
        out: list[datetime] = []
        while (due := self.next_due(out[-1] if out else after)) < until:
            out.append(due)
        return out

    def _around(self, moment: datetime) -> set[datetime]:
        today = moment.astimezone(self.zone).date()
        # Of a time that does not exist, fold=0 has the offset of before: the moment is the shifted time.
        return {
            datetime.combine(today + timedelta(days=n), self.at, self.zone).replace(fold=0).astimezone(UTC)
            for n in _DAYS
        }


def hour(at: str, zone: str) -> Hour:
    """From the texts of KB_NIGHTLY_AT and KB_TIMEZONE, which the settings have checked."""
    return Hour(time.fromisoformat(at), ZoneInfo(zone))
