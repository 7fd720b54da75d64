"""Another embedding model while the collection is searched: no search fails, the switch is one moment, nothing old
stays."""

import tempfile
import threading
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from agent_server import doctor
from agent_server.catalog import create_collection, get_collection
from agent_server.db import Conn, Database
from agent_server.embedding import Embedded
from agent_server.errors import CollectionBusy, ContractMismatch, EmbedderUnavailable, InvalidArgument
from agent_server.ingest import rebuild
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.reembed import abort, reembed
from agent_server.ingest.report import IngestReport
from agent_server.ingest.steps import IngestOptions
from agent_server.retrieval import retrieve
from agent_server.retrieval.candidates import Run
from agent_server.retrieval.search import search
from agent_server.settings import Settings
from tests.conftest import Builder
from tests.corpus import File, put
from tests.hash_embedder import HashEmbedder
from tests.ingest.searching import searched

QUESTIONS = {"what does the ferry cost": "a.md", "when is the lighthouse painted": "b.txt"}
Sync = Callable[[], IngestReport]


class Turned(HashEmbedder):
    """Vectors that have nothing to do with those of the hash embedder of the same width."""

    def _vector(self, text: str) -> NDArray[Any]:
        return np.roll(super()._vector(text), 17)


class Hooked(HashEmbedder):
    """Runs `hook` once, before its n-th batch."""

    def __init__(self, dimensions: int, *, digest: str, at: int = 1, hook: Callable[[], object]) -> None:
        super().__init__(dimensions, digest=digest)
        self._at = at
        self._hook = hook

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        if len(self.calls) == self._at:
            self._at = -1
            self._hook()
        return super().embed_passages(texts)


@pytest.fixture
def old() -> HashEmbedder:
    return HashEmbedder(64, digest="old")


@pytest.fixture
def new() -> HashEmbedder:
    return HashEmbedder(96, digest="new")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return _write(tmp_path / "docs")


def _write(root: Path) -> Path:
    (root / "sub").mkdir(parents=True)
    (root / "a.md").write_text("# Ferries\n\nThe ferry costs ninepence.\n\n## Winter\n\nNothing runs in February.\n")
    (root / "b.txt").write_text("The lighthouse is painted every third year by the harbor office.\n")
    (root / "sub" / "c.md").write_text("# Chapel\n\nThe chapel opens on Sundays.\n")
    for n in range(12):
        (root / "sub" / f"d{n}.md").write_text(f"# Number {n}\n\nBollard number {n} stands at the quay of street{n}.\n")
    (root / "sub" / "copy.md").write_text("# Number 3\n\nBollard number 3 stands at the quay of street3.\n")
    return root


def _ingest(database: Database, folder: Path, embedder: HashEmbedder) -> IngestReport:
    return ingest(database, "DOCS", [folder], embedder, IngestOptions(bank=folder, isolate=False))


def _docs(database: Database) -> None:
    embedder = HashEmbedder(64, digest="old")
    create_collection(database, "DOCS", embedder.identity())
    with tempfile.TemporaryDirectory() as home:
        _ingest(database, _write(Path(home) / "docs"), embedder)


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Builder | None:
    return _docs if "sync" in request.fixturenames else None


@pytest.fixture
def sync(database: Database, old: HashEmbedder, folder: Path) -> Sync:
    """Ingest the folder into DOCS, which holds it, with the old model."""
    with database.owner("kb_docs") as connection:
        connection.execute("UPDATE roots SET path = %s", (str(folder.resolve()),))

    def run(embedder: HashEmbedder = old) -> IngestReport:
        return _ingest(database, folder, embedder)

    return run


def _rows(database: Database, query: str) -> list[tuple[Any, ...]]:
    with database.owner("kb_docs") as connection:
        return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]


def _columns(database: Database) -> dict[str, str]:
    query = """SELECT attname, format_type(atttypid, atttypmod) || ' ' || attstorage::text FROM pg_attribute
               WHERE attrelid = 'chunks'::regclass AND attname LIKE 'embedding%' AND NOT attisdropped"""
    return dict(_rows(database, query))  # type: ignore[arg-type]


def _indexes(database: Database) -> dict[str, str]:
    query = "SELECT indexname, indexdef FROM pg_indexes WHERE schemaname = 'kb_docs' AND tablename = 'chunks'"
    return dict(_rows(database, query))  # type: ignore[arg-type]


def _vectors(database: Database) -> dict[str, str]:
    return dict(_rows(database, "SELECT chunk_id, embedding::text FROM chunks"))  # type: ignore[arg-type]


def _sound(database: Database) -> None:
    with database.owner() as connection:
        collection = get_collection(connection, "DOCS")
    with database.owner(collection.schema_name) as connection:
        assert [c for c in doctor.check_collection(connection, collection) if c.status != "ok"] == []


def _as_if_made_with(database: Database, embedder: HashEmbedder) -> dict[str, str]:
    """The vectors that ingestion with this embedder would have stored."""
    rows = _rows(database, "SELECT chunk_id, context, text FROM chunks")
    found = {r[0]: embedder.embed_passages([f"{r[1]}\n\n{r[2]}"]).vectors[0] for r in rows}
    with database.owner() as connection:
        return {
            chunk_id: connection.execute(
                "SELECT %s::halfvec::text", ("[" + ",".join(map(str, vector.tolist())) + "]",)
            ).fetchone()[0]  # type: ignore[index]
            for chunk_id, vector in found.items()
        }


def test_no_search_fails_while_a_model_of_another_width_takes_over(
    database: Database, sync: Sync, old: HashEmbedder, new: HashEmbedder, settings: Settings,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    before = _indexes(database)
    with searched(database, "DOCS", QUESTIONS, old, HashEmbedder(96, digest="new")) as seen:
        report = reembed(database, "DOCS", new, batch_size=2)
    assert seen.failures == []
    assert seen.old > 0
    assert seen.new == seen.mismatches > 0
    assert (report.state, report.passages, report.without_vector) == ("switched", len(_vectors(database)), 0)
    assert (report.before.dimensions, report.after.dimensions) == (64, 96)
    assert _columns(database) == {"embedding": "halfvec(96) m"}
    assert _indexes(database) == before
    assert _vectors(database) == _as_if_made_with(database, HashEmbedder(96))
    with database.owner() as connection:
        assert get_collection(connection, "DOCS").contract == new.identity()
    monkeypatch.setattr("agent_server.doctor.make_embedder", lambda _: HashEmbedder(96, digest="new"))
    assert [c for c in doctor.examine(settings) if c.status != "ok"] == []


def test_the_next_ingestion_with_the_new_model_reads_no_file_again(
    database: Database, sync: Callable[[HashEmbedder], IngestReport], new: HashEmbedder
) -> None:
    reembed(database, "DOCS", new)
    new.calls.clear()
    assert {o.mark for o in sync(new).outcomes} == {"="}
    assert new.calls == []


def test_passages_of_equal_text_are_embedded_once_and_going_back_embeds_nothing(
    database: Database, sync: Sync, old: HashEmbedder, new: HashEmbedder
) -> None:
    before = _vectors(database)
    report = reembed(database, "DOCS", new, batch_size=4)
    assert len(new.texts) == len(set(new.texts)) == report.embedded
    old.calls.clear()
    back = reembed(database, "DOCS", old)
    assert (old.calls, back.embedded, back.reused) == ([], 0, back.passages)
    assert _vectors(database) == before


def test_a_collection_that_has_the_model_is_left_alone(database: Database, sync: Sync, old: HashEmbedder) -> None:
    before = _vectors(database)
    old.calls.clear()
    assert reembed(database, "DOCS", old).state == "unchanged"
    assert old.calls == []
    assert _vectors(database) == before


def test_an_empty_collection_takes_the_new_model_and_is_filled_with_it(
    database: Database, folder: Path, old: HashEmbedder, new: HashEmbedder
) -> None:
    create_collection(database, "DOCS", old.identity())
    assert reembed(database, "DOCS", new).passages == 0
    ingest(database, "DOCS", [folder], new, IngestOptions(bank=folder, isolate=False))
    assert search(database, "DOCS", "what does the ferry cost", new).passages[0].source == "a.md"
    _sound(database)


def test_a_model_too_wide_for_an_index_is_refused_before_anything_is_done(database: Database, sync: Sync) -> None:
    with pytest.raises(InvalidArgument, match="4001 wide"):
        reembed(database, "DOCS", HashEmbedder(4001))
    assert _columns(database) == {"embedding": "halfvec(64) m"}


def test_the_widest_model_of_all_fits(database: Database, sync: Sync) -> None:
    wide = HashEmbedder(4000, digest="wide")
    reembed(database, "DOCS", wide)
    assert search(database, "DOCS", "what does the ferry cost", wide).passages[0].dense_rank == 1
    _sound(database)


# -- interruptions ----------------------------------------------------------------------------------------------


def test_after_the_embedder_was_lost_searches_know_nothing_and_the_next_run_goes_on(
    database: Database, sync: Sync, old: HashEmbedder, new: HashEmbedder
) -> None:
    before, indexes = _vectors(database), _indexes(database)
    new.lost_after = 3
    with searched(database, "DOCS", QUESTIONS, old) as seen, pytest.raises(EmbedderUnavailable) as lost:
        reembed(database, "DOCS", new, batch_size=2)
    assert "kb reembed DOCS" in lost.value.hint
    assert seen.failures == []
    assert (_vectors(database), _indexes(database)) == (before, indexes)
    new.lost_after = None
    done = list(new.texts)
    new.calls.clear()
    report = reembed(database, "DOCS", new, batch_size=2)
    assert report.resumed == len(done) == 6
    assert not set(new.texts) & set(done)
    assert _vectors(database) == _as_if_made_with(database, HashEmbedder(96))
    _sound(database)


def test_ctrl_c_changes_nothing_and_abort_takes_the_unfinished_vectors_away(
    database: Database, sync: Sync, old: HashEmbedder
) -> None:
    def interrupt() -> None:
        raise KeyboardInterrupt

    before, indexes = _vectors(database), _indexes(database)
    with pytest.raises(KeyboardInterrupt):
        reembed(database, "DOCS", Hooked(96, digest="new", hook=interrupt), batch_size=2)
    assert _columns(database)["embedding_next"] == "halfvec(96) m"
    with searched(database, "DOCS", QUESTIONS, old) as seen:
        assert abort(database, "DOCS") is True
    assert seen.failures == []
    assert abort(database, "DOCS") is False
    assert _columns(database) == {"embedding": "halfvec(64) m"}
    assert (_vectors(database), _indexes(database)) == (before, indexes)
    _sound(database)


def test_the_doctor_names_an_unfinished_re_embedding_and_its_cure(
    database: Database, sync: Sync, new: HashEmbedder
) -> None:
    new.lost_after = 1
    with pytest.raises(EmbedderUnavailable):
        reembed(database, "DOCS", new, batch_size=2)
    with database.owner() as connection:
        collection = get_collection(connection, "DOCS")
    with database.owner(collection.schema_name) as connection:
        found = [c for c in doctor.check_collection(connection, collection) if c.status != "ok"]
    assert [(c.name, c.status) for c in found] == [("DOCS re-embedding", "warn")]
    assert "--abort" in found[0].found
    assert found[0].cure == "kb reembed DOCS"


def test_what_was_filled_for_another_model_is_not_mixed_in(database: Database, sync: Sync, new: HashEmbedder) -> None:
    new.lost_after = 3
    with pytest.raises(EmbedderUnavailable):
        reembed(database, "DOCS", new, batch_size=2)
    third = Turned(96, digest="third")  # the same width: only the contract tells them apart
    report = reembed(database, "DOCS", third, batch_size=2)
    assert report.resumed == 0
    assert _vectors(database) == _as_if_made_with(database, third)


def test_an_index_left_invalid_by_a_killed_build_is_built_again(
    database: Database, sync: Sync, new: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    def killed(connection: object, statement: str, index: str) -> None:
        real(connection, statement, index)  # type: ignore[arg-type]
        with database.owner("kb_docs") as own:
            own.execute("UPDATE pg_index SET indisvalid = false WHERE indexrelid = 'chunks_embedding_next'::regclass")
        raise KeyboardInterrupt

    real = rebuild.build_concurrently
    indexes = _indexes(database)
    with monkeypatch.context() as patched, pytest.raises(KeyboardInterrupt):
        patched.setattr(rebuild, "build_concurrently", killed)
        reembed(database, "DOCS", new)
    assert "chunks_embedding_next" in _indexes(database)
    reembed(database, "DOCS", new)
    assert _indexes(database) == indexes
    _sound(database)


def test_two_runs_at_once_are_refused_and_abort_does_not_pull_the_rug_away(
    database: Database, sync: Sync, new: HashEmbedder
) -> None:
    refused = []

    def second() -> None:
        for work in (lambda: reembed(database, "DOCS", new), lambda: abort(database, "DOCS")):
            with pytest.raises(CollectionBusy):
                work()
            refused.append(1)

    reembed(database, "DOCS", Hooked(96, digest="new", hook=second), batch_size=2)
    assert len(refused) == 2
    _sound(database)


def test_a_table_that_is_never_free_is_given_up_with_nothing_changed(
    database: Database, sync: Sync, new: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rebuild, "LOCK_TIMEOUT_MS", 5)
    before, pauses = _columns(database), []
    with database.owner("kb_docs") as reading:
        reading.execute("SELECT FROM chunks")
        with pytest.raises(CollectionBusy, match="in use"):
            reembed(database, "DOCS", new, pause=pauses.append)
    assert len(pauses) == rebuild.LOCK_TRIES
    assert _columns(database) == before


# -- ingestion meanwhile ----------------------------------------------------------------------------------------


def test_files_that_change_meanwhile_are_caught_up_before_the_switch(
    database: Database, sync: Sync, old: HashEmbedder, folder: Path
) -> None:
    def change() -> None:
        (folder / "sub" / "c.md").write_text("# Chapel\n\nThe chapel is closed for good.\n")
        (folder / "sub" / "d3.md").unlink()  # its copy stands for it now
        (folder / "sub" / "d4.md").rename(folder / "sub" / "moved.md")
        (folder / "fresh.md").write_text("# Fresh\n\nAn entirely fresh jetty.\n")
        marks = {o.source: o.mark for o in sync().outcomes}
        assert (marks["sub/c.md"], marks["sub/d3.md"], marks["sub/moved.md"], marks["fresh.md"]) == ("+", "-", "~", "+")

    new = Hooked(96, digest="new", at=4, hook=change)
    with searched(database, "DOCS", QUESTIONS, old, HashEmbedder(96, digest="new")) as seen:
        report = reembed(database, "DOCS", new, batch_size=2)
    assert seen.failures == []
    assert (report.passages, report.without_vector) == (len(_vectors(database)), 0)
    assert _vectors(database) == _as_if_made_with(database, HashEmbedder(96))
    assert search(database, "DOCS", "fresh jetty", new).passages[0].dense_rank == 1
    assert search(database, "DOCS", "street3", new).passages[0].source == "sub/copy.md"
    assert {o.mark for o in sync(new).outcomes} == {"="}  # type: ignore[call-arg]
    _sound(database)


def test_the_switch_waits_for_a_running_ingestion_and_catches_up_what_it_wrote(
    database: Database, sync: Sync, folder: Path, new: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The ingestion stands in the middle of its last file until the re-embedding is seen to wait for it."""
    reached, go_on, errors = threading.Event(), threading.Event(), []

    class Slow(HashEmbedder):
        def embed_passages(self, texts: Sequence[str]) -> Embedded:
            reached.set()
            assert go_on.wait(30)
            return super().embed_passages(texts)

    def run() -> None:
        try:
            report = ingest(
                database, "DOCS", [folder], Slow(64, digest="old"), IngestOptions(bank=folder, isolate=False)
            )
            assert not report.not_indexed
        except BaseException as error:  # noqa: BLE001  shown by the test
            errors.append(error)

    (folder / "late.md").write_text("# Late\n\nThe latecomer was written with the old model.\n")
    ingestion = threading.Thread(target=run)
    ingestion.start()
    assert reached.wait(30)
    monkeypatch.setattr(rebuild, "MODEL_WAIT_MS", 5)
    pauses = []

    def pause(seconds: float) -> None:
        pauses.append(seconds)
        go_on.set()
        ingestion.join(30)

    reembed(database, "DOCS", new, pause=pause)
    assert errors == []
    assert pauses
    assert _vectors(database) == _as_if_made_with(database, HashEmbedder(96))
    assert "late.md::0" in _vectors(database)
    _sound(database)


def test_passages_written_past_the_lock_are_caught_up_or_refused_but_never_mixed_in(
    database: Database, sync: Sync, old: HashEmbedder, new: HashEmbedder
) -> None:
    with database.owner() as connection:
        before = get_collection(connection, "DOCS")
    hook = Hooked(64, digest="new", hook=lambda: put(database, before, File("x.md", ["A passage by hand."]), old))
    with database.owner("kb_docs") as connection:
        connection.execute("INSERT INTO roots VALUES ('r', '/r')")
    reembed(database, "DOCS", hook, batch_size=2)
    assert _vectors(database) == _as_if_made_with(database, HashEmbedder(64))
    with pytest.raises(ContractMismatch, match="re-embedded"):  # the same width: Postgres would take it
        put(database, before, File("y.md", ["A passage too late."]), old)
    assert "y.md::0" not in _vectors(database)


def test_passages_that_the_new_model_refuses_make_their_file_partial_with_the_reason(
    database: Database, sync: Sync, new: HashEmbedder, folder: Path, old: HashEmbedder
) -> None:
    (folder / "sub" / "c.md").write_text("# Chapel\n\nThe chapel was refused by the old one.\n")
    old.poison = "by the old one"
    sync()
    ledger = "SELECT source, reason FROM files WHERE status = 'partial'"
    assert [r[0] for r in _rows(database, ledger)] == ["sub/c.md"]
    new.poison = "lighthouse"
    report = reembed(database, "DOCS", new, batch_size=3)
    assert report.without_vector == 1
    assert _rows(database, ledger) == [("b.txt", "1 of 1 passages have no vector (passage 0: poison)")]
    assert _rows(database, "SELECT status, reason FROM files WHERE source = 'sub/c.md'") == [("indexed", "")]
    assert search(database, "DOCS", "lighthouse", new).passages[0].source == "b.txt"


# -- searches at the moment of the switch -----------------------------------------------------------------------


class _SwitchedMidway(HashEmbedder):
    """While the question is embedded, the collection's contract having been read, the model is switched."""

    def __init__(self, then: HashEmbedder, switch: Callable[[], object], **identity: Any) -> None:
        super().__init__(**identity)
        self._then = then
        self._switch: Callable[[], object] | None = switch
        self.used = self._identity()

    def _identity(self) -> HashEmbedder:
        return HashEmbedder(self.dimensions, digest=self.digest)

    def identity(self) -> Any:
        found = self.used.identity()
        if self._switch is not None:
            switch, self._switch = self._switch, None
            switch()
            self.used = self._then
        return found

    def embed_query(self, text: str) -> NDArray[Any]:
        return self.used.embed_query(text)


def _score(embedder: HashEmbedder, chunk_id: str, database: Database) -> Any:
    """Cosine of the question and a passage, both by this embedder."""
    question = embedder.embed_query("what does the ferry cost")
    context, text = _rows(database, f"SELECT context, text FROM chunks WHERE chunk_id = '{chunk_id}'")[0]
    passage = embedder.embed_passages([f"{context}\n\n{text}"]).vectors[0]
    return pytest.approx(float(question @ passage), abs=1e-3)


@pytest.mark.parametrize("width", [96, 64])
def test_a_search_that_read_the_contract_before_the_switch_asks_again_with_the_new_one(
    database: Database, sync: Sync, width: int
) -> None:
    new = Turned(width, digest="new")
    embedder = _SwitchedMidway(new, lambda: reembed(database, "DOCS", new), dimensions=64, digest="old")
    result = search(database, "DOCS", "what does the ferry cost", embedder)
    assert result.degraded == ()
    assert (result.passages[0].source, result.passages[0].dense_score) == ("a.md", _score(new, "a.md::0", database))


@pytest.mark.parametrize("width", [96, 64])
def test_a_search_whose_embedder_stays_behind_gets_a_contract_mismatch_and_no_false_result(
    database: Database, sync: Sync, width: int, old: HashEmbedder
) -> None:
    new = Turned(width, digest="new")
    embedder = _SwitchedMidway(old, lambda: reembed(database, "DOCS", new), dimensions=64, digest="old")
    with pytest.raises(ContractMismatch) as mismatch:
        search(database, "DOCS", "what does the ferry cost", embedder)
    assert "kb reembed" in mismatch.value.hint


def test_a_search_that_has_begun_to_read_passages_is_finished_before_the_switch(
    database: Database, sync: Sync, old: HashEmbedder, new: HashEmbedder, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The switch is tried while the search stands between two statements: it gives way."""
    gave_way: list[float] = []
    real = retrieve.set_session

    def set_session(connection: Conn, run: Run) -> None:
        real(connection, run)
        if not gave_way:
            monkeypatch.setattr(rebuild, "LOCK_TIMEOUT_MS", 5)
            with pytest.raises(CollectionBusy):
                reembed(database, "DOCS", new, pause=gave_way.append)

    monkeypatch.setattr(retrieve, "set_session", set_session)
    assert search(database, "DOCS", "what does the ferry cost", old).passages[0].dense_rank is not None
    assert gave_way
