"""The same sync in several processes at once: the end is that of one run, and nobody is told of a conflict."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_server.db import Database
from agent_server.settings import Settings
from tests.doors.conftest import environment
from tests.ollama_double import OllamaDouble

pytestmark = pytest.mark.full

FILES = 60
SHARED = "This paragraph stands in every file of the folder, word for word, and is long enough to count as one of them."
ROWS = """
SELECT chunk_id, text, context, canonical, authority, tsv::text, bm25::text, embedding::text FROM chunks ORDER BY 1
"""
LEDGER = "SELECT source, sha256, status, reason, chunk_count FROM files ORDER BY source"
COUNTS = "SELECT lexeme, ndoc FROM lexemes ORDER BY 1"


def write(folder: Path, version: int) -> None:
    for n in range(FILES):
        parts = "\n\n".join(
            f"## Part {n}.{k}\n\nBerth {n * 7 + k} is free since {version}. {'Rope. ' * 30}" for k in range(3)
        )
        (folder / f"file-{n:03}.md").write_text(f"# File {n}\n\n{SHARED}\n\n{parts}\n")


@pytest.mark.parametrize("count", [2, 4])
def test_processes_at_once_end_as_one_run_does(
    database: Database, settings: Settings, tmp_path: Path, count: int
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    with OllamaDouble() as double:
        environ = {**os.environ, **environment(settings), "KB_EMBEDDER": "ollama", "KB_OLLAMA_URL": double.url}
        kb = [sys.executable, "-m", "agent_server.doors.cli.main"]

        def start(*arguments: str) -> subprocess.Popen[str]:
            pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
            return subprocess.Popen([*kb, *arguments], env=environ, cwd=tmp_path, text=True, **pipes)

        def all_done(processes: list[subprocess.Popen[str]]) -> list[tuple[int, str, str]]:
            said = [process.communicate(timeout=600) for process in processes]
            return [(p.returncode, *out) for p, out in zip(processes, said, strict=True)]

        for name in ("MANY", "ONE"):
            assert all_done([start("collection", "create", name)])[0][0] == 0
        for version in (1, 2):  # a first load, then changes with renamed and deleted files
            write(folder, version)
            if version == 2:
                (folder / "file-000.md").unlink()
                (folder / "file-001.md").rename(folder / "moved.md")
            for code, out, err in all_done([start("ingest", "MANY", str(folder)) for _ in range(count)]):
                assert code == 0, err
                assert not any(word in (out + err).lower() for word in ("deadlock", "error", "traceback"))
                assert "!" not in {line[:1] for line in out.splitlines()}
            assert all_done([start("ingest", "ONE", str(folder))])[0][0] == 0

    def rows(name: str, query: str) -> list[tuple[object, ...]]:
        with database.owner(name) as connection:
            return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]

    for query in (ROWS, LEDGER, COUNTS, "SELECT * FROM lexeme_deltas"):
        assert rows("kb_many", query) == rows("kb_one", query)
