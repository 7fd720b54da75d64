"""When a night is due: one hour a date, whatever the clocks do."""

from datetime import UTC, date, datetime, timedelta
from itertools import pairwise

import pytest

from nightly.hours import hour


def _utc(text: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=UTC)


def test_the_hour_is_taken_in_the_zone_and_told_in_utc() -> None:
    berlin = hour("02:30", "Europe/Berlin")
    assert berlin.next_due(_utc("2026-01-10 12:00")) == _utc("2026-01-11 01:30")
    assert berlin.next_due(_utc("2026-07-10 12:00")) == _utc("2026-07-11 00:30")
    assert hour("02:30", "UTC").next_due(_utc("2026-01-10 02:29")) == _utc("2026-01-10 02:30")


def test_a_due_moment_is_the_last_and_not_the_next_of_itself() -> None:
    utc = hour("02:30", "UTC")
    due = _utc("2026-01-10 02:30")
    assert utc.last_due(due) == due
    assert utc.next_due(due) == due + timedelta(days=1)
    assert utc.last_due(due - timedelta(microseconds=1)) == due - timedelta(days=1)


def test_an_hour_that_does_not_exist_is_due_once_at_the_time_it_is_shifted_to() -> None:
    berlin = hour("02:30", "Europe/Berlin")  # 2026-03-29: clocks go from 02:00 to 03:00
    due = berlin.between(_utc("2026-03-27 12:00"), _utc("2026-03-31 12:00"))
    assert due == [
        _utc("2026-03-28 01:30"),
        _utc("2026-03-29 01:30"),
        _utc("2026-03-30 00:30"),
        _utc("2026-03-31 00:30"),
    ]


def test_an_hour_that_exists_twice_is_due_once() -> None:
    berlin = hour("02:30", "Europe/Berlin")  # 2026-10-25: clocks go from 03:00 to 02:00
    due = berlin.between(_utc("2026-10-23 12:00"), _utc("2026-10-27 12:00"))
    assert due == [
        _utc("2026-10-24 00:30"),
        _utc("2026-10-25 00:30"),
        _utc("2026-10-26 01:30"),
        _utc("2026-10-27 01:30"),
    ]


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "Asia/Kathmandu"])
@pytest.mark.parametrize("at", ["00:00", "01:59", "02:00", "02:15", "02:30", "03:00", "23:59"])
def test_a_year_has_one_due_moment_a_date(zone: str, at: str) -> None:
    when = hour(at, zone)
    due = when.between(_utc("2025-12-31 12:00"), _utc("2027-01-01 12:00"))
    dates = [moment.astimezone(when.zone).date() for moment in due]
    assert len(dates) == len(set(dates))
    assert {date(2026, 1, 1) + timedelta(days=n) for n in range(365)} <= set(dates)
    gaps = {b - a for a, b in pairwise(due)}
    assert gaps <= {timedelta(hours=h) for h in (23, 23.5, 24, 24.5, 25)}


def test_where_a_date_is_left_out_its_hour_falls_together_with_the_next() -> None:
    samoa = hour("02:30", "Pacific/Apia")  # there was no 2011-12-30
    due = samoa.between(_utc("2011-12-28 00:00"), _utc("2012-01-01 00:00"))
    assert len(due) == len(set(due))
    assert all(b - a == timedelta(days=1) for a, b in pairwise(due))


def test_from_any_moment_of_a_change_the_next_is_later_and_the_last_is_not() -> None:
    berlin = hour("02:30", "Europe/Berlin")
    for start in ("2026-03-28 20:00", "2026-10-24 20:00"):
        for minutes in range(0, 15 * 60, 7):
            now = _utc(start) + timedelta(minutes=minutes)
            assert berlin.last_due(now) <= now < berlin.next_due(now)
            assert berlin.next_due(berlin.last_due(now)) == berlin.next_due(now)
