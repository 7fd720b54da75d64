"""`ops/explain.sh` runs the search's own statement again in psql."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_server.settings import Settings
from tests.doors.conftest import Kb, environment

ROOT = Path(__file__).parents[2]
SHIM = f"""#!{sys.executable}
import sys
from contextlib import contextmanager
sys.path.insert(0, {str(ROOT)!r})
from agent_server.doors.cli import context
from agent_server.doors.cli.main import main
from tests.hash_embedder import HashEmbedder
context.opened_embedder = contextmanager(lambda _: iter([HashEmbedder()]))
sys.exit(main())
"""


def _explain(settings: Settings, tmp_path: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    shim = tmp_path / "kb"
    shim.write_text(SHIM)
    shim.chmod(0o755)
    env = {**os.environ, **environment(settings), "KB": str(shim)}
    return subprocess.run(
        [ROOT / "ops" / "explain.sh", *arguments], capture_output=True, text=True, env=env, check=False
    )


@pytest.mark.parametrize("question", ["what does NW-4021 mean?", "a member's \"loan\" \\ $HOME :'x' {1}"])
def test_a_question_is_explained_with_its_own_variables(
    bank: Kb, settings: Settings, tmp_path: Path, question: str
) -> None:
    done = _explain(settings, tmp_path, "FINANCE", question)
    assert (done.returncode, done.stderr) == (0, "")
    assert "CTE dense" in done.stdout
    assert "CTE lexical" in done.stdout
    assert "Execution Time" in done.stdout
    assert max(map(len, done.stdout.splitlines())) < 2000


def test_an_unknown_collection_ends_it_with_the_error(bank: Kb, settings: Settings, tmp_path: Path) -> None:
    done = _explain(settings, tmp_path, "NOPE", "x")
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr.startswith("error: no collection is called 'NOPE'")
    assert "hint: Known: FINANCE." in done.stderr


def test_without_a_question_it_says_how_it_is_used(settings: Settings, tmp_path: Path) -> None:
    done = _explain(settings, tmp_path)
    assert done.returncode == 2
    assert "usage:" in done.stderr
