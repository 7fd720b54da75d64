"""The examples for systemd and cron: their commands exist, and they look often enough for any hour."""

import configparser
import re
import shlex
from pathlib import Path

import pytest
import typer.main

from agent_server.doors.cli.main import build_app

OPS = Path(__file__).parents[2] / "ops"
UNITS = sorted((OPS / "systemd").iterdir())


def _unit(path: Path) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(delimiters=("=",), comment_prefixes=("#",), interpolation=None, strict=True)
    parser.optionxform = str  # type: ignore[assignment, method-assign]
    parser.read_string(path.read_text(encoding="utf-8"))
    return parser


def _check_command(words: list[str]) -> None:
    """Whether `kb` has the command with these options."""
    if words[0].endswith("/python"):
        assert words[1:3] == ["-m", "nightly"]
        words = ["kb", "nightly", "run", *words[3:]]
    assert words[0].rpartition("/")[2] == "kb"
    command = typer.main.get_command(build_app())
    rest = words[1:]
    while rest and not rest[0].startswith("-"):
        command = command.commands[rest.pop(0)]  # type: ignore[attr-defined]
    options = {option for parameter in command.params for option in parameter.opts}
    assert set(rest) <= options


def test_there_are_units_for_a_timer_and_for_a_process_that_stays() -> None:
    assert [path.name for path in UNITS] == [
        "knowledge-bank-nightly.service",
        "knowledge-bank-nightly.timer",
        "knowledge-bank-schedule.service",
    ]


@pytest.mark.parametrize("path", [p for p in UNITS if p.suffix == ".service"], ids=lambda p: p.name)
def test_the_commands_of_services_exist(path: Path) -> None:
    _check_command(shlex.split(_unit(path)["Service"]["ExecStart"]))


def test_a_timer_starts_the_service_of_its_name_every_ten_minutes() -> None:
    timer = OPS / "systemd" / "knowledge-bank-nightly.timer"
    assert _unit(timer)["Timer"]["OnCalendar"] == "*:0/10"
    service = _unit(timer.with_suffix(".service"))["Service"]
    assert "--due" in service["ExecStart"]
    assert service["Type"] == "oneshot"
    assert service["SuccessExitStatus"] == "4"


def test_the_commands_of_the_crontab_exist() -> None:
    lines = (OPS / "crontab.example").read_text(encoding="utf-8").splitlines()
    jobs = [m for line in lines if (m := re.fullmatch(r"(?:# )?((?:[\d*/]+ ){5}) *cd \S+ && (.+)", line))]
    assert len(jobs) == 2
    assert not jobs[0].string.startswith("#")
    for job in jobs:
        _check_command(shlex.split(re.sub(r"\s*>>.*", "", job[2])))
