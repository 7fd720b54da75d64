"""kill -9 in the middle of an ingestion, again and again: one more run makes it whole."""

import os
import random
import subprocess
import sys
from pathlib import Path

import pytest

from agent_server.db import Database
from agent_server.settings import Settings
from tests.doors.conftest import environment
from tests.ollama_double import OllamaDouble

pytestmark = pytest.mark.full

FILES = 200
KILLS = 20
BATCH = 8
SHARED = "This paragraph stands in every file of the folder, word for word, and is long enough to count as one of them."
STATE = """
SELECT chunk_id, text, context, canonical, authority, tsv::text, bm25::text, embedding::text, passage_hash
FROM chunks ORDER BY chunk_id
"""
RECOUNT = """
SELECT lexeme, count(*) FROM chunks, unnest(tsv) WHERE canonical GROUP BY 1
UNION ALL SELECT '', count(*) FROM chunks WHERE canonical ORDER BY 1
"""


def _write(folder: Path, version: int) -> None:
    """All files anew, so that each run has all of them to do."""
    for n in range(FILES):
        parts = "\n\n".join(
            f"## Part {n}.{k}\n\nBerth {n * 7 + k} belongs to pier {k} since {version}. {'Rope. ' * 40}"
            for k in range(3)
        )
        (folder / f"file-{n:03}.md").write_text(f"# File {n}\n\n{SHARED}\n\n{parts}\n")


def _rows(database: Database, schema: str, query: str) -> list[tuple[object, ...]]:
    with database.owner(schema) as connection:
        return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]


def test_a_bank_killed_twenty_times_equals_an_undisturbed_one(
    database: Database, settings: Settings, tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    rng = random.Random(20)
    with OllamaDouble() as double:
        environ = {**os.environ, **environment(settings), "KB_EMBEDDER": "ollama", "KB_OLLAMA_URL": double.url}
        environ["KB_EMBED_BATCH_SIZE"] = str(BATCH)
        kb = [sys.executable, "-m", "agent_server.doors.cli.main"]

        def run(*arguments: str) -> None:
            subprocess.run([*kb, *arguments], env=environ, cwd=tmp_path, check=True, capture_output=True, timeout=120)

        run("collection", "create", "KILLED")
        run("collection", "create", "CALM")
        killed = 0
        for version in range(KILLS):
            _write(folder, version)
            process = subprocess.Popen(
                [*kb, "ingest", "KILLED", str(folder)],
                env=environ,
                cwd=tmp_path,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            )
            try:
                process.wait(timeout=rng.uniform(0.5, 1.4))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
                killed += 1
        run("ingest", "KILLED", str(folder))
        sent = [text for request in double.embeds() for text in request]
        run("ingest", "CALM", str(folder))
    assert killed >= KILLS // 2
    assert _rows(database, "kb_killed", STATE) == _rows(database, "kb_calm", STATE)
    assert _rows(database, "kb_killed", "SELECT lexeme, ndoc FROM lexemes ORDER BY 1") == _rows(
        database, "kb_killed", RECOUNT
    )
    assert _rows(database, "kb_killed", "SELECT count(*) FROM lexeme_deltas") == [(0,)]
    assert _rows(
        database, "kb_killed", "SELECT indisvalid FROM pg_index WHERE indexrelid = 'chunks_embedding'::regclass"
    ) == [(True,)]
    assert len(sent) <= len(set(sent)) + killed * BATCH
