"""Every command and flag is there, says what it does, and costs nothing to ask about."""

import re
import subprocess
import sys
from importlib.metadata import entry_points

import pytest

from agent_server.doors.cli.main import PLUGINS
from tests.doors.conftest import Kb

COMMANDS = {
    ("init",): ["--json"],
    ("collection", "create"): ["--description", "--config", "--chunk-size", "--chunk-overlap", "--json"],
    ("collection", "list"): ["--json"],
    ("collection", "show"): ["--json"],
    ("collection", "expand"): ["--cites", "--defines", "--json"],
    ("collection", "drop"): ["--yes", "--json"],
    ("ingest",): ["--dry-run", "--password", "--again", "--json"],
    ("files",): ["--status", "--json"],
    ("remove",): ["--json"],
    ("reembed",): ["--abort", "--again", "--json"],
    ("reindex",): ["--json"],
    ("search",): [
        *("--top-k", "--fusion", "--authority-weight", "--ranker", "--lexical", "--expand", "--hops", "--json"),
        "--no-rerank",
        *("--source", "--heading", "--min-authority", "--media-type", "--since", "--until"),
        *("--field", "--phrase", "--exclude"),
    ],
    ("explain",): [
        *("--chunk", "--top-k", "--fusion", "--authority-weight", "--ranker", "--expand", "--hops", "--json"),
        "--no-rerank",
        *("--source", "--heading", "--min-authority", "--media-type", "--since", "--until"),
        *("--field", "--phrase", "--exclude"),
    ],
    ("recall",): ["--collection", "--limit", "--json"],
    ("trace", "list"): ["--limit", "--json"],
    ("trace", "show"): ["--psql", "--json"],
    ("trace", "replay"): ["--json"],
    ("eval",): [
        *("--gold", "--beir", "--split", "--config", "--arms", "--ablate", "--top-k", "--limit"),
        *("--out", "--scores-only", "--compare", "--json"),
    ],
    ("tune",): ["--gold", "--beir", "--split", "--config", "--dry-run", "--out", "--json"],
    ("stats",): ["--json"],
    ("db", "start"): ["--json"],
    ("db", "stop"): ["--json"],
    ("db", "status"): ["--json"],
    ("db", "psql"): ["--json"],
    ("db", "roles"): ["--json"],
    ("doctor",): ["--fix", "--all", "--json"],
    ("mcp",): ["--collection", "--json"],
}


@pytest.mark.parametrize("command", COMMANDS, ids=" ".join)
def test_a_command_explains_itself_and_its_flags(plain_kb: Kb, command: tuple[str, ...]) -> None:
    said = plain_kb(*command, "--help")
    assert said.code == 0
    assert said.err == ""
    flags = set(re.findall(r"--[a-z][a-z-]+", said.out.partition("Options:")[2]))
    assert set(COMMANDS[command]) | {"--help"} == flags & (set(COMMANDS[command]) | {"--help"})
    assert "\x1b" not in said.out


@pytest.mark.parametrize("group", ["", "collection", "trace", "db"])
def test_the_help_lists_every_command(plain_kb: Kb, group: str) -> None:
    path = [group] if group else []
    listed = plain_kb(*path, "--help").out.partition("Commands:")[2]
    names = {c[len(path)] for c in COMMANDS if list(c[: len(path)]) == path}
    names |= {plugin.name for plugin in entry_points(group=PLUGINS)} if not path else set()
    assert set(re.findall(r"^  ([a-z]+)", listed, re.MULTILINE)) == names


def test_the_version_is_printed(plain_kb: Kb) -> None:
    assert re.fullmatch(r"kb \d+\.\d+\.\d+\n", plain_kb("--version").out)


def test_help_loads_none_of_the_heavy_libraries() -> None:
    heavy = ("alembic", "sqlalchemy", "onnxruntime", "tokenizers", "mcp", "rich.progress", "lxml", "pypdf", "docutils")
    program = (
        "import sys; from agent_server.doors.cli.main import main; main(['--help']);"
        f"print([m for m in {heavy} if m in sys.modules], file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr.strip() == "[]"
