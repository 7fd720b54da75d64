"""Nights: the last one went well and is not long ago; recorded searches are not kept longer than wanted."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

from agent_server.doctor.check import FIX, Check, cure

#: A scheduled night that is missed once may have found the machine off; twice, and nobody runs the schedule.
LONGEST_AGE = timedelta(hours=50)
LONGEST_RUN = timedelta(hours=20)
#: Traces are pruned once a day at best.
PRUNED_LATE = timedelta(days=2)


def check_nights(row: Mapping[str, Any] | None, now: datetime) -> Check:
    """`row` is that of doctor_nights.sql; `now` is aware."""
    if row is None:
        return Check("nights", "ok", "none yet")
    age, hours = now - row["started_at"], (now - row["started_at"]).total_seconds() / 3600
    told = f"run {row['run_id']}, {hours:.0f} hours ago, {row['outcome']}"
    if row["outcome"] in ("failed", "died"):
        summary = f": {row['summary'].splitlines()[0]}" if row["summary"] else ""
        return Check("nights", "warn", told + summary, cure("nightly", "run"))
    if row["outcome"] == "running":
        if age > LONGEST_RUN:
            return Check("nights", "warn", f"{told}: it died, or waits for something", cure("nightly", "run"))
        return Check("nights", "ok", told)
    if row["scheduled"] and age > LONGEST_AGE:
        return Check("nights", "warn", f"{told}: nobody runs the schedule", cure("nightly", "run"))
    return Check("nights", "ok", told)


def check_traces(name: str, oldest: datetime | None, keep_days: int, now: datetime) -> Check:
    """`oldest` is the time of the first search or tool call that is still recorded; `keep_days` 0: for ever."""
    title = f"{name} traces"
    if oldest is None or keep_days == 0:
        return Check(title, "ok", "none yet" if oldest is None else "kept for ever")
    days = (now - oldest).days
    if now - oldest > timedelta(days=keep_days) + PRUNED_LATE:
        found = f"the oldest is {days} days old, KB_TRACE_RETENTION_DAYS is {keep_days}"
        return Check(title, "warn", found, FIX)
    return Check(title, "ok", f"the oldest is {days} days old, kept for {keep_days}")
