"""The doctor finds what is broken, and what it tells to type cures it."""

import ast
import os
import shlex
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import psycopg
import pytest
import typer.main

from agent_server import doctor
from agent_server.catalog import create_collection, get_collection
from agent_server.db import Database, fetch_one
from agent_server.doctor import files, indexes, nights, server, vectors
from agent_server.doctor.check import Check
from agent_server.doors.cli.main import build_app
from agent_server.errors import EmbedderUnavailable
from agent_server.settings import Settings
from tests.doors.conftest import Kb, environment
from tests.hash_embedder import HashEmbedder

ROUNDS = 3


@dataclass(frozen=True)
class Ground:
    """What a test may break, and how it types what the doctor says."""

    kb: Kb
    database: Database
    settings: Settings
    documents: Path
    embedder: HashEmbedder

    def findings(self) -> dict[str, dict[str, Any]]:
        return {c["name"]: c for c in self.kb("doctor", "--json").json["checks"] if c["status"] != "ok"}

    def sql(self, *statements: str) -> None:
        with psycopg.connect(self.database.dsn, autocommit=True) as connection:
            connection.execute("SET search_path = kb_finance, public")
            for statement in statements:
                connection.execute(statement)  # type: ignore[arg-type]

    @property
    def reader(self) -> str:
        with self.database.owner() as connection:
            return get_collection(connection, "FINANCE").reader_role

    def type(self, cure: str) -> None:
        """Run a cure as it is printed; FOLDER is where the documents are now."""
        words = [str(self.documents) if w == "FOLDER" else w for w in shlex.split(cure)]
        assert words[0] == "kb", cure
        if words[1:3] == ["db", "psql"]:  # takes the place of the process
            program = [sys.executable, "-m", "agent_server.doors.cli.main", *words[1:]]
            subprocess.run(program, env=os.environ | environment(self.settings), check=True, capture_output=True)
        else:
            said = self.kb(*words[1:])
            assert said.code in (0, 3) or words[1] == "doctor", said.err

    def cured_of(self, name: str) -> None:
        """See the finding, then type all cures as printed, round for round, until nothing is found."""
        found = self.findings()
        assert name in found
        for _ in range(ROUNDS):
            for cure in dict.fromkeys(c["cure"] for c in found.values()):
                self.type(cure)
            found = self.findings()
            if not found:
                return
        assert found == {}


@pytest.fixture
def ground(bank: Kb, database: Database, settings: Settings, documents: Path, hash_embedder: HashEmbedder) -> Ground:
    return Ground(bank, database, settings, documents, hash_embedder)


# -- what is told -----------------------------------------------------------------------------------------------


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


# -- broken, found, cured as printed ----------------------------------------------------------------------------

INVALID = "UPDATE pg_index SET indisvalid = false WHERE indexrelid = '{}'::regclass"
OTHER_INDEX = "DROP INDEX chunks_embedding; CREATE INDEX chunks_embedding ON chunks USING hnsw"
#: A row that an index does not know of: it was not ready when the row came.
UNREADY = "UPDATE pg_index SET indisready = {} WHERE indexrelid = '{}'::regclass"
COPY_OF_A_ROW = (
    "INSERT INTO chunks (source, chunk_index, text, context, heading_path, label, char_start, char_end, passage_hash,"
    " paragraph_hashes, paragraph_spans, canonical, authority, retired, tsv, bm25, embedding)"
    " SELECT source, 90, text, context, heading_path, label, char_start, char_end, {}, paragraph_hashes,"
    " paragraph_spans, true, authority, false, tsv, bm25, {} FROM chunks WHERE source = 'guide.md'"
)
MANY_ROWS = (
    "INSERT INTO chunks (source, chunk_index, text, context, heading_path, label, char_start, char_end, passage_hash,"
    " paragraph_hashes, paragraph_spans, canonical, authority, retired, tsv, bm25, embedding)"
    " SELECT source, n, text, context, heading_path, label, char_start, char_end, int4send(n), paragraph_hashes,"
    " paragraph_spans, true, authority, false, to_tsvector('simple', 'word' || n), bm25, embedding"
    " FROM chunks, generate_series({}, {}) AS n WHERE source = 'guide.md' AND chunk_index = 0"
)
FAR_AWAY = "(SELECT array_agg(CASE WHEN n % 2 = 0 THEN 1 ELSE -1 END) FROM generate_series(1, 64) n)::real[]::halfvec"
LINK = (
    "INSERT INTO links (from_chunk, to_chunk, relation, anchor, from_start, from_end, to_start, to_end, target_label)"
    " SELECT min(id), max(id), 'cites', {}, 0, 5, 0, 1, 'x' FROM chunks"
)

BY_SQL = {
    "dense index dropped": ("FINANCE dense index", ["DROP INDEX chunks_embedding"]),
    "dense index invalid": ("FINANCE dense index", [INVALID.format("chunks_embedding")]),
    "dense index of another distance": (
        "FINANCE dense index",
        [*OTHER_INDEX.split("; ")[:1], f"{OTHER_INDEX.split('; ')[1]} (embedding halfvec_l2_ops) WHERE canonical"],
    ),
    "dense index over all rows": (
        "FINANCE dense index",
        [*OTHER_INDEX.split("; ")[:1], f"{OTHER_INDEX.split('; ')[1]} (embedding halfvec_cosine_ops)"],
    ),
    "word index dropped": ("FINANCE chunks_tsv", ["DROP INDEX chunks_tsv"]),
    "word index invalid": ("FINANCE chunks_tsv", [INVALID.format("chunks_tsv")]),
    "paragraph index dropped": ("FINANCE chunks_paragraphs", ["DROP INDEX chunks_paragraphs"]),
    "another index invalid": ("FINANCE searches_at", [INVALID.format("searches_at")]),
    "other indexes dropped": ("FINANCE other indexes", ["DROP INDEX searches_at, chunks_copies, links_to"]),
    "an index of the shared schema invalid": ("shared indexes", [INVALID.format("kb.runs_started")]),
    "a row missing in the dense index": (
        "FINANCE dense entries",
        [
            UNREADY.format("false", "chunks_embedding"),
            COPY_OF_A_ROW.format("'\\x01'", FAR_AWAY),
            UNREADY.format("true", "chunks_embedding"),
        ],
    ),
    "a row missing in the word index": (
        "FINANCE word entries",
        [
            MANY_ROWS.format(1, 300),
            UNREADY.format("false", "chunks_tsv"),
            MANY_ROWS.format(301, 310),
            UNREADY.format("true", "chunks_tsv"),
        ],
    ),
    "a planner setting of the database": ("FINANCE plan", ['ALTER DATABASE "{database}" SET enable_indexscan = off']),
    "a planner setting of the role": ("FINANCE plan", ['ALTER ROLE "{reader}" SET enable_bitmapscan = off']),
    "zero vectors": ("FINANCE vectors", ["UPDATE chunks SET embedding = array_fill(0, ARRAY[64])::halfvec"]),
    "a vector lost": ("FINANCE vectors", ["UPDATE chunks SET embedding = NULL WHERE source = 'guide.md'"]),
    "a column of any width": (
        "FINANCE width",
        [
            "DROP INDEX chunks_embedding",
            "ALTER TABLE chunks ALTER COLUMN embedding TYPE halfvec",
        ],
    ),
    "a contract of another width": ("FINANCE width", ["UPDATE kb.collections SET dimensions = 32"]),
    "no copy stands": ("FINANCE copies", ["UPDATE chunks SET canonical = false WHERE source = 'guide.md'"]),
    "two copies stand": (
        "FINANCE copies",
        ["DROP INDEX chunks_canonical", COPY_OF_A_ROW.format("passage_hash", "embedding")],
    ),
    "a term count too high": ("FINANCE term counts", ["UPDATE lexemes SET ndoc = ndoc + 1 WHERE lexeme = 'incom'"]),
    "a wrong number of passages": ("FINANCE term counts", ["UPDATE lexemes SET ndoc = 0 WHERE lexeme = ''"]),
    "a term that stands nowhere": ("FINANCE term counts", ["INSERT INTO lexemes VALUES ('ghost', 3)"]),
    "counts not merged": ("FINANCE term counts", ["INSERT INTO lexeme_deltas VALUES ('loan', 1), ('loan', -1)"]),
    "a claim's term count": ("FINANCE claims' term counts", ["INSERT INTO claim_lexemes VALUES ('ghost', 3)"]),
    "no mean length": ("FINANCE mean length", ["UPDATE kb.collections SET avg_length = NULL"]),
    "a mean length of long ago": ("FINANCE mean length", ["UPDATE kb.collections SET avg_length = avg_length * 2"]),
    "an edge whose words are not there": ("FINANCE edges", [LINK.format("'never said'")]),
    "an edge from a passage that is gone": (
        "FINANCE edges",
        [
            LINK.format("(SELECT left(text, 5) FROM chunks ORDER BY id LIMIT 1)"),
            "SET session_replication_role = replica",
            "DELETE FROM chunks WHERE id = (SELECT to_chunk FROM links LIMIT 1)",
        ],
    ),
    "a claim whose words are not there": (
        "FINANCE claims",
        [
            "UPDATE claims SET quote = 'nobody wrote this'",
            "UPDATE claim_evidence SET quote = 'nobody wrote this'",
        ],
    ),
    "a claim that drifted from its evidence": ("FINANCE claims", ["UPDATE claims SET quote_start = quote_start + 1"]),
    "a wrong chunk_count": ("FINANCE files", ["UPDATE files SET chunk_count = 7 WHERE source = 'guide.md'"]),
    "an indexed file without passages": ("FINANCE files", ["DELETE FROM chunks WHERE source = 'guide.md'"]),
    "an indexed file of no passages": (
        "FINANCE files",
        ["DELETE FROM chunks WHERE source = 'guide.md'", "UPDATE files SET chunk_count = 0 WHERE source = 'guide.md'"],
    ),
    "a failed file": ("FINANCE files", ["UPDATE files SET status = 'failed' WHERE source = 'guide.md'"]),
    "a reader that may not log in": ("FINANCE reader role", ['ALTER ROLE "{reader}" NOLOGIN']),
    "a reader that may not read": (
        "FINANCE reader role",
        ['REVOKE ALL ON ALL TABLES IN SCHEMA kb_finance FROM "{reader}"'],
    ),
    "a reader that may write": ("FINANCE reader role writing", ['GRANT INSERT ON chunks TO "{reader}"']),
    "a reader with powers": ("FINANCE reader role powers", ['ALTER ROLE "{reader}" CREATEDB']),
    "a reader that is a member": ("FINANCE reader role membership", ['GRANT pg_read_all_data TO "{reader}"']),
    "a reader that sees the shared schema": ("FINANCE reader role reach", ['GRANT USAGE ON SCHEMA kb TO "{reader}"']),
    "a schema that is open to all": ("FINANCE reader role reach", ["GRANT USAGE ON SCHEMA kb TO PUBLIC"]),
    "too little memory for a build": (
        "build memory",
        [
            "INSERT INTO kb.vector_cache SELECT '\\x01', NULL WHERE false",
            "ALTER DATABASE \"{database}\" SET maintenance_work_mem = '64kB'",
            "CREATE TABLE wide (v vector(1500))",
            "INSERT INTO wide SELECT array_fill(n, ARRAY[1500]) FROM generate_series(1, 20) n",
            "CREATE INDEX ON wide USING hnsw (v vector_l2_ops)",
        ],
    ),
    "traces kept too long": (
        "FINANCE traces",
        [
            "INSERT INTO tool_calls (at, tool, arguments, outcome) VALUES (now() - interval '99 days', 'x', '{{}}', 'ok')"
        ],
    ),
    "a migration behind": ("migrations", ["UPDATE public.schema_version SET version_num = '0004'"]),
}


@pytest.mark.parametrize(("name", "damage"), BY_SQL.values(), ids=BY_SQL)
def test_what_is_broken_in_the_database_is_found_and_cured_as_printed(
    ground: Ground, name: str, damage: list[str]
) -> None:
    known = {"reader": ground.reader, "database": psycopg.conninfo.conninfo_to_dict(ground.database.dsn)["dbname"]}
    ground.database.close()
    ground.sql(*(statement.format(**known) for statement in damage))
    ground.cured_of(name)


def _rewrite(folder: Path) -> None:
    (folder / "guide.md").write_text("# Guide\n\nMembers may ask nobody.\n")


BY_FILE: dict[str, Callable[[Path], object]] = {
    "a file changed": _rewrite,
    "a file changed, of the same size": lambda folder: (folder / "one.txt").write_text("x" * 54 + "\n"),
    "a file gone": lambda folder: (folder / "guide.md").unlink(),
    "a file new": lambda folder: (folder / "new.md").write_text("# New\n\nA new rule of the house.\n"),
}


@pytest.mark.parametrize("damage", BY_FILE.values(), ids=BY_FILE)
def test_a_folder_that_is_not_what_was_indexed_is_found_and_cured_as_printed(
    ground: Ground, damage: Callable[[Path], object]
) -> None:
    damage(ground.documents)
    ground.cured_of("FINANCE folder documents")


def test_a_folder_that_has_moved_is_found_and_cured_by_its_new_place(ground: Ground, tmp_path: Path) -> None:
    moved = tmp_path / "elsewhere" / "documents"
    moved.parent.mkdir()
    shutil.move(ground.documents, moved)
    replace(ground, documents=moved).cured_of("FINANCE folder documents")


@pytest.mark.parametrize("damage", [_rewrite, BY_FILE["a file gone"]], ids=["changed", "gone"])
def test_of_a_folder_that_single_files_came_from_only_those_are_asked_for(
    ground: Ground, damage: Callable[[Path], object]
) -> None:
    ground.sql("UPDATE roots SET whole = false")
    (ground.documents / "not_asked_for.md").write_text("# Other\n\nNobody wanted this.\n")
    assert ground.findings() == {}
    damage(ground.documents)
    ground.cured_of("FINANCE folder documents")
    assert "not_asked_for.md" not in ground.kb("files", "FINANCE").out


def test_a_reader_that_may_enter_another_collection_is_found_and_cured_as_printed(ground: Ground) -> None:
    create_collection(ground.database, "OTHER", ground.embedder.identity())
    ground.sql(f'GRANT USAGE ON SCHEMA kb_other TO "{ground.reader}"')
    ground.cured_of("FINANCE reader role reach")


def test_a_model_of_another_digest_is_found_and_cured_as_printed(ground: Ground) -> None:
    ground.embedder.digest = "another"
    ground.cured_of("FINANCE model")


def test_a_model_that_says_its_name_and_gives_other_vectors_is_found_and_cured_as_printed(
    ground: Ground, monkeypatch: pytest.MonkeyPatch
) -> None:
    turned = ground.embedder._vector
    monkeypatch.setattr(ground.embedder, "_vector", lambda text: turned(text)[::-1].copy())
    ground.cured_of("FINANCE canaries")


def test_a_passage_that_the_model_refuses_at_the_mending_is_said_in_the_ledger(ground: Ground) -> None:
    ground.sql("UPDATE chunks SET embedding = NULL WHERE source = 'guide.md'", "DELETE FROM kb.vector_cache")
    ground.embedder.poison = "branch"
    ground.cured_of("FINANCE vectors")
    assert "poison" in ground.kb("files", "FINANCE", "--status", "partial").out


def test_the_mending_says_what_it_did_and_nothing_where_all_was_well(ground: Ground) -> None:
    assert ground.kb("doctor", "--fix", "--json").json["fixed"] == []
    ground.sql(f'ALTER ROLE "{ground.reader}" NOLOGIN', "DROP INDEX searches_at, chunks_embedding")
    said = ground.kb("doctor", "--fix")
    assert said.code == 0
    assert said.out.splitlines()[:3] == [
        "fixed  FINANCE: reader role made anew",
        "fixed  FINANCE: index searches_at made",
        "fixed  FINANCE: dense index built over 3 passages",
    ]


def test_one_cure_for_several_findings_is_told_once(ground: Ground) -> None:
    ground.sql("DROP INDEX searches_at, chunks_embedding")
    assert ground.kb("doctor").out.count("cure: kb doctor --fix") == 1


def test_what_cannot_be_mended_now_is_said_and_keeps_the_rest_from_nothing(ground: Ground) -> None:
    ground.sql("UPDATE chunks SET embedding = NULL", "DELETE FROM kb.vector_cache", "DROP INDEX searches_at")
    ground.embedder.lost_after = len(ground.embedder.calls)
    said = ground.kb("doctor", "--fix", "--json")
    assert said.code == 1
    assert said.json["left"] == ["FINANCE: the hash embedder is switched off"]
    assert "FINANCE: index searches_at made" in said.json["fixed"]
    assert "left   FINANCE: the hash embedder is switched off" in ground.kb("doctor", "--fix").out
    ground.embedder.lost_after = None
    ground.cured_of("FINANCE vectors")


def test_an_embedder_that_is_not_there_is_an_error_with_its_own_advice(
    bank: Kb, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(_: Settings) -> HashEmbedder:
        raise EmbedderUnavailable("nobody answers", hint="ollama serve")

    monkeypatch.setattr("agent_server.doctor.make_embedder", lost)
    found = {c["name"]: c for c in bank("doctor", "--json").json["checks"]}
    assert (found["embedder"]["status"], found["embedder"]["cure"]) == ("error", "ollama serve")


def test_an_empty_database_is_found_and_cured_as_printed(ground: Ground) -> None:
    role = ground.reader
    ground.database.close()
    ground.sql(
        f'DROP OWNED BY "{role}"',
        f'DROP ROLE "{role}"',
        "DROP SCHEMA kb, kb_finance CASCADE",
        "DROP TABLE public.schema_version",
        "DROP EXTENSION vector CASCADE",
    )
    assert {name: c["cure"] for name, c in ground.findings().items()} == {
        "pgvector": "kb init",
        "migrations": "kb init",
    }
    ground.cured_of("migrations")


def test_a_night_that_failed_is_found_and_cured_as_printed(ground: Ground, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("nightly.jobs.make_embedder", lambda _: ground.embedder)
    ground.sql("INSERT INTO kb.runs (started_at, ended_at, outcome) VALUES (now(), now(), 'failed')")
    ground.cured_of("nights")


def test_a_server_that_does_not_answer_is_a_finding_and_not_a_crash(
    plain_kb: Kb, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KB_DATABASE_URL", "postgresql://nobody@127.0.0.1:1/nothing")
    said = plain_kb("doctor", "--json")
    assert said.code == 1
    assert [c["name"] for c in said.json["checks"]] == ["postgres"]


# -- what no test can break: the machine, the server's version, the clock ---------------------------------------

NOW = datetime(2026, 3, 29, 12, tzinfo=UTC)
GIB = 1024**3
SERVER = {"database": 'a"b', "maintenance_bytes": 64 * 1024**2, "buffer_bytes": GIB, "workers": 2}
ROOM = {"largest_bytes": GIB // 32, "total_bytes": GIB // 16}


def test_a_server_that_is_too_old_is_an_error() -> None:
    assert server.check_postgres(160000).status == "ok"
    assert server.check_postgres(150007).status == "error"
    assert server.check_pgvector("0.8.1").status == "ok"
    assert server.check_pgvector("0.7.4").cure == "kb db psql -c 'ALTER EXTENSION vector UPDATE'"
    assert server.check_pgvector("").cure == "kb init"


def test_a_database_of_a_newer_program_is_not_to_be_migrated_by_this_one() -> None:
    found = server.check_migrations("0009", "0005")
    assert found.status == "error"
    assert "newest" in found.cure


@pytest.mark.parametrize(("drift_s", "status"), [(0, "ok"), (-4, "ok"), (20, "warn"), (-20, "warn"), (3600, "error")])
def test_clocks_that_differ_are_found(drift_s: int, status: str) -> None:
    assert server.check_clock(NOW + timedelta(seconds=drift_s), NOW).status == status


def test_memory_that_suffices_is_well_and_each_kind_that_does_not_is_found() -> None:
    def found(shm: int | None = GIB, room: dict[str, int] = ROOM, **changed: int) -> set[str]:
        return {c.name for c in server.check_memory(SERVER | changed, room, shm) if c.status == "warn"}

    assert found() == set()
    assert found(maintenance_bytes=1024**2) == {"build memory"}
    assert found(shm=64 * 1024, workers=2) == {"shared memory"}
    assert found(shm=64 * 1024, workers=0) == found(shm=None) == set()
    assert found(room={"largest_bytes": 1, "total_bytes": 2 * GIB}) == {"buffers"}


def test_too_little_shared_memory_is_cured_as_printed(ground: Ground) -> None:
    def measured() -> dict[str, Any]:
        with ground.database.owner_autocommit() as connection:
            return (fetch_one(connection, "doctor_server") or {}) | {"maintenance_bytes": GIB}

    found = [c for c in server.check_memory(measured(), ROOM, 64 * 1024) if c.status != "ok"]
    assert [c.name for c in found] == ["shared memory"]
    ground.type(found[0].cure)
    assert [c for c in server.check_memory(measured(), ROOM, 64 * 1024) if c.status != "ok"] == []


@pytest.mark.parametrize(("free", "status"), [(10 * GIB, "ok"), (GIB // 2, "warn"), (GIB // 8, "error"), (None, "ok")])
def test_a_disk_that_runs_full_is_found(free: int | None, status: str) -> None:
    machine = server.Machine(None, Path("/data"), free)
    assert server.check_disk(machine, ROOM).status == status


def test_the_machine_of_another_host_is_not_taken_for_this_one(settings: Settings) -> None:
    far = settings.model_copy(update={"database_url": type(settings.database_url)("postgresql://kb@db.example.org/kb")})
    row = {"shared_memory": "posix", "data_directory": "/"}
    assert server.look_at_machine(far, row) == server.Machine(None, None, None)
    near = server.look_at_machine(settings, row)
    assert near.disk_free_bytes
    assert server.look_at_machine(settings, row | {"shared_memory": "mmap"}).shared_memory_free_bytes is None


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


def test_dead_rows_are_found_when_they_are_many_and_a_large_share() -> None:
    assert indexes.check_dead("X", {"live": 100, "dead": 900}).status == "ok"
    assert indexes.check_dead("X", {"live": 100_000, "dead": 2000}).status == "ok"
    assert indexes.check_dead("X", {"live": 2000, "dead": 2000}).cure == "kb doctor --fix"


def test_no_dense_index_is_needed_where_nothing_is_searched() -> None:
    assert next(indexes.check_indexes("X", [], 0)).status == "ok"
    assert next(indexes.check_indexes("X", [], 1)).status == "error"


def test_canaries_bear_the_last_digits_and_no_more(hash_embedder: HashEmbedder) -> None:
    text = "a rule of the house"
    stored = hash_embedder.embed_passages([f"Guide\n\n{text}"]).vectors[0]

    def status(vector: Any) -> str:
        row = {"context": "Guide", "text": text, "vector": str(vector.tolist())}
        return vectors.check_canaries("X", [row], hash_embedder).status

    assert status(stored.round(3)) == "ok"
    assert status(-stored) == "error"
    assert status(stored[:32]) == "error"
    hash_embedder.poison = "rule"
    assert status(stored) == "error"


def test_many_files_that_differ_from_the_ledger_are_read_again_by_their_folder() -> None:
    rows = [{"source": f"{n}.md", "root": "r", "held": 0, "stated": 1} for n in range(9)]
    found = files.check_ledger("X", {"indexed": 9}, rows, {"r": "/a folder"})
    assert found.cure == "kb ingest X '/a folder' --again"


# -- every cure is a command that exists ------------------------------------------------------------------------


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
