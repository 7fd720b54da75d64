"""What the doctor tells: findings with their cures, each once, every cure a command that exists."""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import typer.main

from agent_server import doctor
from agent_server.doors.cli.main import build_app
from agent_server.settings import Settings
from tests.doctor.ground import Ground
from tests.doors.conftest import Kb


def test_a_sound_installation_has_no_findings(bank: Kb) -> None:
    said = bank("doctor", "--json")
    assert said.code == 0
    assert said.json["status"] == "ok"
    assert [c for c in said.json["checks"] if c["status"] != "ok"] == []
    assert len(said.json["checks"]) > 25


def test_what_is_well_is_only_counted_unless_all_is_asked_for(ground: Ground) -> None:
    count = len(ground.kb("doctor", "--json").json["checks"])
    assert ground.kb("doctor").out == f"{count} of {count} checks are well\n"
    ground.sql("DROP INDEX chunks_tsv")
    said = ground.kb("doctor")
    assert said.code == 1
    told = said.out.splitlines()
    assert told[0].startswith("error  FINANCE chunks_tsv: the index is missing")
    assert told[1] == "       cure: kb reindex FINANCE"
    everything = ground.kb("doctor", "--all").out.splitlines()
    assert sum(line.startswith("ok  ") for line in everything) > 25
    assert told[0] in everything


def test_settings_are_shown_with_secrets_hidden(bank: Kb, settings: Settings) -> None:
    assert settings.database_url is not None
    for said in (bank("doctor", "--all"), bank("doctor", "--json")):
        assert settings.database_url.get_secret_value() not in said.out
        assert "KB_READER_SECRET" in said.out
        assert "tests\n" not in said.out.partition("KB_READER_SECRET")[2].splitlines()[0]


def test_one_cure_for_several_findings_is_told_once(ground: Ground) -> None:
    ground.sql("DROP INDEX searches_at, chunks_embedding")
    assert ground.kb("doctor").out.count("cure: kb doctor --fix") == 1


def _cures() -> Iterator[list[str]]:
    """The words of every command in the doctor's source: arguments of cure(), and literals; '?' for what it fills in."""
    for path in Path(doctor.__file__).parent.glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == "cure":
                yield [str(a.value) if isinstance(a, ast.Constant) else "?" for a in node.args]
            elif isinstance(node, ast.Constant) and str(node.value).startswith("kb "):
                yield str(node.value).split()[1:]


def test_every_cure_that_can_be_printed_is_a_command_with_options_that_it_knows() -> None:
    seen = list(_cures())
    for words in seen:
        command: Any = typer.main.get_command(build_app())
        rest = [w for w in words if w != "-c"]
        while rest and hasattr(command, "commands"):
            assert rest[0] in command.commands, words
            command = command.commands[rest.pop(0)]
        options = {option for parameter in command.params for option in parameter.opts}
        assert {w for w in rest if w.startswith("--")} <= options, words
    assert {w[0] for w in seen} >= {"doctor", "reindex", "reembed", "ingest", "db", "init", "nightly", "remove"}
