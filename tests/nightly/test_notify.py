"""Telling somebody that a night failed: over real HTTP and with real commands, and never at the cost of the night."""

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from agent_server.db import Database
from agent_server.errors import SettingsError
from agent_server.settings import Settings, load_settings
from nightly.jobs import StepReport
from nightly.notify import notify
from nightly.run import Request
from tests.nightly.nights import Called, collections, night


class Hook:
    """Takes what is sent to it; answers with `status`, or not at all."""

    def __init__(self) -> None:
        self.got: list[dict[str, Any]] = []
        self.status = 200
        self.silent = threading.Event()
        hook = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                hook.got.append({"type": self.headers["Content-Type"], **json.loads(body)})
                if hook.status == 0:
                    hook.silent.wait(20)
                    return
                self.send_response(hook.status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, *_: object) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self.server.server_port}/token-123"


@pytest.fixture
def hook() -> Iterator[Hook]:
    made = Hook()
    thread = threading.Thread(target=made.server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    yield made
    made.silent.set()
    made.server.shutdown()
    made.server.server_close()
    thread.join()


def _settings(**values: str) -> Settings:
    return load_settings({f"KB_NIGHTLY_{name.upper()}": value for name, value in values.items()}, Path("/nonexistent"))


def test_the_report_of_a_failed_night_is_posted_and_that_of_a_good_one_is_not(
    database: Database, settings: Settings, hook: Hook
) -> None:
    collections(database, "ONE")
    told = settings.model_copy(update={"nightly_webhook": _settings(webhook=hook.url).nightly_webhook})
    bad = Called("only", lambda _: StepReport({"fell": 1}, ok=False, summary="worse", findings=("kind x fell",)))
    night(database, told, jobs=[Called("only").job()]).run(Request())
    assert hook.got == []
    report = night(database, told, jobs=[bad.job()]).run(Request())
    assert report.warnings == []
    [got] = hook.got
    assert (got["type"], got["run_id"], got["outcome"]) == ("application/json", 2, "failed")
    assert got["steps"][0]["findings"] == ["kind x fell"]
    with database.owner() as connection:
        connection.execute("INSERT INTO kb.runs (started_at, host, pid) VALUES (now(), 'gone', 9)")
    night(database, told, jobs=[Called("only").job()]).run(Request())
    assert [(g["outcome"], [d["host"] for d in g["died"]]) for g in hook.got[1:]] == [("ok", ["gone"])]


def test_an_address_that_does_not_answer_well_costs_the_night_nothing_and_is_not_shown(hook: Hook) -> None:
    hook.status = 500
    assert notify(_settings(webhook=hook.url), {}) == ["KB_NIGHTLY_WEBHOOK answered 500"]
    hook.status = 0
    faults = notify(_settings(webhook=hook.url), {}, webhook_timeout_s=0.1)
    assert faults == ["KB_NIGHTLY_WEBHOOK was not reached: ReadTimeout"]
    faults = notify(_settings(webhook="http://127.0.0.1:9/token-123"), {})
    assert faults == ["KB_NIGHTLY_WEBHOOK was not reached: ConnectError"]


def test_the_command_gets_the_report_on_its_input(tmp_path: Path) -> None:
    out = tmp_path / "got file.json"
    script = tmp_path / "tell.py"
    script.write_text("import sys, pathlib; pathlib.Path(sys.argv[1]).write_text(sys.stdin.read())")
    assert notify(_settings(command=f"'{sys.executable}' '{script}' '{out}'"), {"outcome": "failed", "é": 1}) == []
    assert json.loads(out.read_text()) == {"outcome": "failed", "é": 1}


def test_a_command_that_goes_wrong_is_told(tmp_path: Path) -> None:
    script = tmp_path / "bad.py"
    script.write_text(
        "import sys, time; sys.stdin.close(); print('no mail', file=sys.stderr); time.sleep(float(sys.argv[1])); sys.exit(3)"
    )
    command = f"{sys.executable} {script}"
    large = {"text": "x" * 500_000}
    assert notify(_settings(command=f"{command} 0"), large) == ["KB_NIGHTLY_COMMAND ended with 3: no mail"]
    assert notify(_settings(command=f"{command} 60"), {}, command_timeout_s=0.3) == [
        "KB_NIGHTLY_COMMAND took longer than 0.3 s"
    ]
    assert notify(_settings(command="/nonexistent/command"), {}) == [
        "KB_NIGHTLY_COMMAND cannot be run: No such file or directory"
    ]


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("at", "2:30", "must be an hour"),
        ("at", "24:00", "must be an hour"),
        ("webhook", "ftp://x", "must be an address"),
        ("command", "echo 'x", "No closing quotation"),
    ],
)
def test_settings_that_cannot_be_used_are_refused_with_their_name(name: str, value: str, said: str) -> None:
    with pytest.raises(SettingsError, match=f"KB_NIGHTLY_{name.upper()}: .*{said}"):
        _settings(**{name: value})


@pytest.mark.parametrize("zone", ["Europe/Atlantis", "Europe", "../../etc/passwd", "/etc/localtime"])
def test_a_zone_that_is_none_is_refused(zone: str) -> None:
    with pytest.raises(SettingsError, match=r"KB_TIMEZONE: .*names no zone"):
        load_settings({"KB_TIMEZONE": zone}, Path("/nonexistent"))
