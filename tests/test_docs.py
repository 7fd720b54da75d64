"""The README cannot drift: its commands, files, settings and make targets are there."""

import re
from pathlib import Path

import pytest
import typer.main

from agent_server.doors.cli.main import build_app
from agent_server.settings import Settings
from agent_server.tools.knowledge_base import schemas

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def test_every_command_is_in_the_readmes_table_and_nothing_else_is() -> None:
    listed = set(re.findall(r"^\| `kb ([a-z]+)` \|", README, re.MULTILINE))
    group = typer.main.get_command(build_app())
    assert listed == set(group.commands)  # type: ignore[attr-defined]


def test_every_file_that_the_readme_links_to_or_names_is_there() -> None:
    named = set(re.findall(r"\]\((?!#|http)([^)]+)\)", README))
    named |= {f"agent_server/{p}" for p in re.findall(r"`((?:ingest|retrieval|tools|embedding|sql)/[\w./]+)`", README)}
    named |= set(re.findall(r"`((?:agent_server|nightly|migrations|tests|ops)/[\w./]*)`", README))
    missing = sorted(path for path in named if not (ROOT / path).exists())
    assert missing == []
    assert len(named) > 12


def test_every_setting_that_the_readme_names_exists() -> None:
    named = set(re.findall(r"KB_[A-Z_]+", README))
    assert named <= {f"KB_{name.upper()}" for name in Settings.model_fields}


def test_every_make_target_that_the_readme_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE))
    assert set(re.findall(r"(?:`|^)make ([a-z-]+)", README, re.MULTILINE)) <= targets


@pytest.mark.parametrize("flag", sorted(set(re.findall(r"`(--[a-z-]+)`", README))))
def test_every_flag_that_the_readme_names_exists(flag: str) -> None:
    doors = [*(ROOT / "agent_server" / "doors" / "cli").glob("*.py"), *(ROOT / "nightly").glob("*.py")]
    source = "".join(path.read_text(encoding="utf-8") for path in doors)
    assert f'"{flag}"' in source or flag in {"--help"}


def test_the_tools_that_the_readme_names_are_those_there_are() -> None:
    names = {schema["function"]["name"] for schema in schemas(())}
    assert set(re.findall(r"`(\w+)\(collection", README)) == names
