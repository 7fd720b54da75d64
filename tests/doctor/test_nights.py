"""Nights that failed, hang or do not come, and traces that are kept too long."""

from datetime import UTC, datetime, timedelta

import pytest

from agent_server.doctor import nights
from agent_server.doctor.check import Check
from tests.doctor.ground import Ground

NOW = datetime(2026, 3, 29, 12, tzinfo=UTC)
OLD_CALL = "INSERT INTO tool_calls (at, tool, arguments, outcome) VALUES (now() - interval '99 days', 'x', '{}', 'ok')"


def test_traces_kept_too_long_are_found_and_cured_as_printed(ground: Ground) -> None:
    ground.sql(OLD_CALL)
    ground.cured_of("FINANCE traces")


def test_a_night_that_failed_is_found_and_cured_as_printed(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightly.jobs.make_embedder", lambda _: ground.embedder)
    ground.sql("INSERT INTO kb.runs (started_at, ended_at, outcome) VALUES (now(), now(), 'failed')")
    ground.cured_of("nights")


def _night(hours_ago: float, outcome: str, *, scheduled: bool = True) -> Check:
    started = NOW - timedelta(hours=hours_ago)
    row = {"run_id": 3, "started_at": started, "outcome": outcome, "summary": "evaluate: fell", "scheduled": scheduled}
    return nights.check_nights(row, NOW)


def test_nights_that_failed_hang_or_do_not_come_are_found() -> None:
    assert nights.check_nights(None, NOW).status == "ok"
    assert _night(20, "ok").status == "ok"
    assert _night(200, "ok", scheduled=False).status == "ok"
    assert _night(2, "running").status == "ok"
    broken = [_night(2, "failed"), _night(2, "died"), _night(30, "running"), _night(60, "ok")]
    assert {(c.status, c.cure) for c in broken} == {("warn", "kb nightly run")}
    assert "evaluate: fell" in broken[0].found


def test_traces_that_are_kept_for_ever_are_never_too_old() -> None:
    old = NOW - timedelta(days=1000)
    assert nights.check_traces("X", old, 0, NOW).status == "ok"
    assert nights.check_traces("X", old, 90, NOW).status == "warn"
    assert nights.check_traces("X", NOW - timedelta(days=91), 90, NOW).status == "ok"
