"""How `kb` fails: exit codes, streams, and never a traceback for what is foreseen."""

import os
import subprocess
import sys
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from pathlib import Path

import psycopg
import pytest
import typer

from agent_server.doors.cli import main as main_module
from agent_server.doors.cli import output
from agent_server.doors.faults import as_known
from agent_server.errors import DatabaseUnavailable
from tests.doors.conftest import Kb


def test_a_usage_error_exits_2_with_nothing_on_standard_output(plain_kb: Kb) -> None:
    for arguments in (["search"], ["nope"], ["search", "A", "b", "--nope"], ["search", "A", "b", "--top-k", "0"]):
        said = plain_kb(*arguments)
        assert (said.code, said.out) == (2, "")
        assert "Usage:" in said.err


def test_a_usage_error_is_json_when_json_was_asked_for(plain_kb: Kb) -> None:
    said = plain_kb("search", "A", "b", "--top-k", "x", "--json")
    assert (said.code, said.out) == (2, "")
    assert said.error["code"] == "invalid_argument"
    assert said.error["details"]["field"] == "top_k"


def test_a_setting_that_is_none_is_an_error_with_a_hint(plain_kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_NOPE", "1")
    said = plain_kb("stats")
    assert (said.code, said.out) == (1, "")
    assert "KB_NOPE: no such setting" in said.err
    assert "hint: Known settings:" in said.err


@pytest.mark.parametrize(
    "arguments", [["stats"], ["search", "FINANCE", "x"], ["collection", "list"], ["init"], ["files", "A"]]
)
def test_a_database_that_is_not_there_is_an_error_without_traceback(
    plain_kb: Kb, monkeypatch: pytest.MonkeyPatch, arguments: list[str]
) -> None:
    monkeypatch.setenv("KB_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    said = plain_kb(*arguments, "--json")
    assert (said.code, said.out) == (1, "")
    assert said.error["code"] == "database_unavailable"


def test_a_status_of_a_server_that_is_not_there_is_an_answer(plain_kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KB_DATABASE_URL", "postgresql://nobody:secret@127.0.0.1:1/nothing")
    said = plain_kb("db", "status", "--json")
    assert said.code == 0
    assert said.json["running"] is False
    assert "secret" not in said.out


@pytest.mark.parametrize("command", ["start", "stop"])
def test_a_server_of_somebody_else_is_not_started_or_stopped(
    plain_kb: Kb, monkeypatch: pytest.MonkeyPatch, command: str
) -> None:
    monkeypatch.setenv("KB_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    said = plain_kb("db", command)
    assert (said.code, said.out) == (1, "")
    assert "KB_DATABASE_URL" in said.err


def test_an_interrupt_exits_130_without_traceback(plain_kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    def interrupted() -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("agent_server.doors.cli.context.load_settings", interrupted)
    said = plain_kb("stats")
    assert said.code == 130
    assert "Traceback" not in said.err


def test_a_fault_of_the_program_keeps_its_traceback(plain_kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> None:
        raise ZeroDivisionError

    monkeypatch.setattr("agent_server.doors.cli.context.load_settings", broken)
    with pytest.raises(ZeroDivisionError):
        plain_kb("stats")


def test_a_closed_pipe_is_quiet() -> None:
    program = "import sys; from agent_server.doors.cli.main import main; sys.exit(main(['--help']))"
    read, write = os.pipe()
    os.close(read)
    done = subprocess.run([sys.executable, "-c", program], stdout=write, stderr=subprocess.PIPE, text=True, check=False)
    os.close(write)
    assert done.stderr == ""


def test_colours_are_for_terminals_that_want_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal:
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.delenv("NO_COLOR", raising=False)
    assert output.is_coloured(Terminal())  # type: ignore[arg-type]
    monkeypatch.setenv("NO_COLOR", "1")
    assert not output.is_coloured(Terminal())  # type: ignore[arg-type]


def test_escape_sequences_of_documents_do_not_reach_the_terminal() -> None:
    assert "\x1b" not in output.wrapped("harmless \x1b[2J\x1b]0;title\x07 text")
    assert "\x9b" not in output.clean("\x9b2J")


def test_a_statement_that_takes_too_long_is_a_message() -> None:
    known = as_known(psycopg.errors.QueryCanceled("canceling statement due to statement timeout"))
    assert known is not None
    assert "KB_STATEMENT_TIMEOUT_S" in known.hint


def test_a_connection_that_breaks_is_database_unavailable() -> None:
    assert isinstance(as_known(psycopg.OperationalError("server closed the connection")), DatabaseUnavailable)


def test_other_faults_are_not_known() -> None:
    assert as_known(ValueError("x")) is None


# -- commands of other packages ---------------------------------------------------------------------------------

extra = typer.Typer(help="Joined as an app.")


@extra.command()
def hello() -> None:
    output.write("hello from a plugin")


@extra.command()
def world() -> None:
    output.write("world")


def add_commands(app: typer.Typer) -> None:
    app.command("greet")(hello)


@pytest.fixture
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[EntryPoint]]:
    found: list[EntryPoint] = []
    monkeypatch.setattr(main_module, "entry_points", lambda group: found if group == "kb.commands" else [])
    yield found


def test_a_package_joins_commands_as_an_app_or_a_function(plain_kb: Kb, plugins: list[EntryPoint]) -> None:
    plugins.append(EntryPoint("extra", "tests.doors.test_errors:extra", "kb.commands"))
    plugins.append(EntryPoint("more", "tests.doors.test_errors:add_commands", "kb.commands"))
    assert plain_kb("extra", "hello").out == "hello from a plugin\n"
    assert plain_kb("greet").out == "hello from a plugin\n"


def test_a_package_that_cannot_be_loaded_leaves_the_other_commands(plain_kb: Kb, plugins: list[EntryPoint]) -> None:
    plugins.append(EntryPoint("bad", "no_such_module:app", "kb.commands"))
    said = plain_kb("--version")
    assert said.code == 0
    assert "no_such_module" in said.err


def test_db_start_status_and_stop_drive_the_embedded_server(plain_kb: Kb, monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[str] = []

    class Server:
        dsn = "postgresql:///knowledge_bank?host=/nowhere"

        def __init__(self, home: Path) -> None:
            self.home = home

        def status(self) -> object:
            class Status:
                running, pid, data = "start" in calls, 7, Path("/data")

            return Status

        def start(self) -> None:
            calls.append("start")

        def stop(self) -> bool:
            calls.append("stop")
            return True

    monkeypatch.setattr("agent_server.doors.cli.database.EmbeddedServer", Server)
    assert plain_kb("db", "status", "--json").json["running"] is False
    assert plain_kb("db", "start", "--json").json == {"running": True, "started": True, "pid": 7, "data": "/data"}
    assert plain_kb("db", "stop", "--json").json == {"running": False, "stopped": True}
    assert calls == ["start", "stop"]
