"""Faults that people met in systems like this one, on the whole way from a file to an answer.

The rows of a fault that one module settles alone are tested beside that module.
"""

import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import psycopg
import pytest

from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.embedding import Embedded, Vectors
from agent_server.errors import ContractMismatch, InvalidArgument
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.report import IngestReport
from agent_server.ingest.steps import IngestOptions
from agent_server.retrieval.search import search
from tests.hash_embedder import HashEmbedder
from tests.ingest.pdfs import book

Sync = Callable[..., IngestReport]


class Spoiling(HashEmbedder):
    """Gives what `spoil` makes of the right rows."""

    spoil: Callable[[Sequence[str], Vectors], Vectors] = staticmethod(lambda _, rows: rows)

    def embed_passages(self, texts: Sequence[str]) -> Embedded:
        got = super().embed_passages(texts)
        return Embedded(vectors=self.spoil(texts, got.vectors), failures=got.failures)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    root = tmp_path / "docs"
    root.mkdir()
    return root


@pytest.fixture
def embedder() -> Spoiling:
    return Spoiling()


@pytest.fixture
def sync(database: Database, embedder: Spoiling, folder: Path) -> Sync:
    create_collection(database, "DOCS", embedder.identity())

    def run(**options: int) -> IngestReport:
        return ingest(database, "DOCS", [folder], embedder, IngestOptions(bank=folder, isolate=False, **options))

    return run


def rows(database: Database, query: str) -> list[tuple[object, ...]]:
    with database.owner("kb_docs") as connection:
        return connection.execute(query).fetchall()  # type: ignore[call-overload, no-any-return]


def sections(count: int) -> str:
    return "\n\n".join(f"# Part {n}\n\nBerth {n} belongs to pier {n * 3} and has a bollard." for n in range(count))


# B01, B02, B03: letters that Postgres, JSON or UTF-8 refuse


def test_nul_controls_and_half_surrogates_anywhere_in_a_file_cost_nothing_but_themselves(
    database: Database, sync: Sync, folder: Path
) -> None:
    text = (
        '---\ntitle: "Har\\0bour \\uD835 rules"\nke\x01y: "va\\0lue"\nlist: ["a\\0b", {"c\x7fd": "e\\uDC00"}]\n---\n'
        "# Har\0bour\x08 dues\n\nThe due\0s are pa\x02id at noon, \ud83d\ude00 or \ud83d.\n\n"
    )
    text += "Ships come and go. " * 30  # among few letters so many odd ones would be no text
    (folder / "rules\x07.md").write_bytes(text.encode("utf-8", "surrogatepass"))
    (folder / "page.html").write_text("<title>Mo&#0;les</title><h1>Mo\x00les</h1><p>The mo\x00le is &#xD835; long.</p>")
    outcomes = {o.source: o for o in sync().outcomes}
    assert {str(o.status) for o in outcomes.values()} == {"indexed"}
    assert "removed 2 NUL characters; removed 4 control characters" in outcomes["rules\\x07.md"].reason
    found = search(database, "DOCS", "when are dues paid", None).passages[0]
    assert "The dues are paid at noon, 😀 or \ufffd." in found.text
    assert found.heading == ("Harbour dues",)
    stored = rows(database, "SELECT title, metadata::text FROM files ORDER BY source")
    assert not any(c in str(stored) for c in ("\\\\u0000", "\\x00", "\\x01", "\\x7f"))
    assert search(database, "DOCS", "mole", None).passages[0].source == "page.html"


# B05: one word, several ways to write it


@pytest.mark.parametrize(
    ("written", "asked"),
    [
        ("The cafe\u0301 has a menu.", "café"),
        ("The caf\u00e9 has a menu.", "cafe\u0301"),
        ("The po\u00adlicy is old.", "policy"),
        ("An e\ufb03cient crane.", "efficient"),
        ("An efficient crane.", "e\ufb03cient"),
        ("Zero\u200bwidth spaces.", "zerowidth"),
    ],
)
def test_a_word_is_found_however_it_is_written(
    database: Database, sync: Sync, folder: Path, written: str, asked: str
) -> None:
    (folder / "a.txt").write_text(written)
    sync()
    found = search(database, "DOCS", asked, None).passages[0]
    assert found.lexical_rank == 1


# B25: another model, of another width or of the same


@pytest.mark.parametrize("other", [HashEmbedder(32), HashEmbedder(digest="hash-2")])
def test_another_model_is_refused_by_ingestion_and_search_with_the_cure(
    database: Database, sync: Sync, folder: Path, other: HashEmbedder
) -> None:
    (folder / "a.txt").write_text("The ferry costs ninepence.")
    sync()
    for call in (
        lambda: ingest(database, "DOCS", [folder], other, IngestOptions(bank=folder)),
        lambda: search(database, "DOCS", "ferry", other),
    ):
        with pytest.raises(ContractMismatch) as refused:
            call()
        assert "kb reembed" in refused.value.hint
    assert other.calls == []


# B26, B27: vectors that cannot be stored, or that rank before everything


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 70_000.0, 1e-9, 0.0])
def test_a_vector_that_cannot_be_stored_costs_its_own_passage_its_vector_and_is_told(
    database: Database, sync: Sync, folder: Path, embedder: Spoiling, value: float
) -> None:
    (folder / "a.md").write_text(sections(5))

    def spoil(texts: Sequence[str], vectors: Vectors) -> Vectors:
        bad = [n for n, text in enumerate(texts) if "Berth 3" in text]
        vectors[bad] = value
        return vectors

    embedder.spoil = spoil
    outcome = sync().outcomes[0]
    assert (str(outcome.status), outcome.chunks) == ("partial", 5)
    assert "1 of 5 passages have no vector (passage 3: the embedder gave no vector" in outcome.reason
    without = rows(database, "SELECT chunk_index FROM chunks WHERE embedding IS NULL")
    assert without == [(3,)]
    assert rows(database, "SELECT count(*) FROM kb.vector_cache") == [(4,)]
    passages = search(database, "DOCS", "bollard of berth 1", HashEmbedder()).passages
    assert len(passages) == 5
    assert next(p for p in passages if p.chunk_index == 3).dense_rank is None


@pytest.mark.parametrize("value", [0.0, np.nan, 1e-9])
def test_a_question_without_direction_is_not_searched_with(
    database: Database, sync: Sync, folder: Path, value: float
) -> None:
    (folder / "a.txt").write_text("The ferry costs ninepence.")
    sync()

    class Lost(HashEmbedder):
        def embed_query(self, text: str) -> Vectors:
            return np.full(64, value, np.float32)

    result = search(database, "DOCS", "ferry", Lost())
    assert [(p.dense_rank, p.lexical_rank) for p in result.passages] == [(None, 1)]
    assert [(d.arm, "without direction" in d.reason) for d in result.degraded] == [("dense", True)]


# B43, B45: writers at the same time


@pytest.mark.parametrize("count", [2, 4])
def test_runs_at_once_over_changed_files_leave_each_passage_once(
    database: Database, sync: Sync, folder: Path, count: int
) -> None:
    for n in range(12):
        (folder / f"n{n}.md").write_text(f"{sections(3)}\n\nThe old text of file {n}.\n")
    sync()
    for n in range(12):
        (folder / f"n{n}.md").write_text(f"{sections(3)}\n\nThe new text of file {n}.\n")
    gate = threading.Barrier(count)
    faults: list[BaseException] = []

    def run() -> None:
        gate.wait()
        try:
            report = sync()
            assert {o.mark for o in report.outcomes} <= {"+", "="}
        except BaseException as error:  # noqa: BLE001  reported below
            faults.append(error)

    threads = [threading.Thread(target=run) for _ in range(count)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert faults == []
    state = "SELECT chunk_id, text, canonical, tsv::text, bm25::text, embedding::text FROM chunks ORDER BY 1"
    left = rows(database, state)
    counts = rows(database, "SELECT lexeme, ndoc FROM lexemes ORDER BY 1")
    assert not any("old text" in str(text) for _, text, *_ in left)
    assert rows(database, "SELECT source, chunk_index FROM chunks GROUP BY 1, 2 HAVING count(*) > 1") == []
    recount = """
    SELECT lexeme, count(*) FROM chunks, unnest(tsv) WHERE canonical GROUP BY 1
    UNION ALL SELECT '', count(*) FROM chunks WHERE canonical ORDER BY 1
    """
    assert counts == rows(database, recount)
    assert {o.mark for o in sync().outcomes} == {"="}
    assert rows(database, state) == left


def test_a_writer_that_loses_a_deadlock_tries_again_and_nobody_is_told(
    database: Database, sync: Sync, folder: Path
) -> None:
    (folder / "a.txt").write_text("The ferry costs ninepence.")
    sync()
    (folder / "a.txt").write_text("The ferry costs tenpence.")
    reports: list[IngestReport] = []
    with psycopg.connect(database.dsn) as holder:
        holder.execute("SET deadlock_timeout = '60s'")  # so that it is the other one that Postgres stops
        holder.execute("LOCK TABLE kb_docs.files IN SHARE MODE")
        thread = threading.Thread(target=lambda: reports.append(sync()))
        thread.start()
        waiting = "SELECT count(*) FROM pg_locks WHERE relation = 'kb_docs.files'::regclass AND NOT granted"
        while holder.execute(waiting).fetchone() == (0,):
            assert thread.is_alive()
        holder.execute("SELECT pg_advisory_xact_lock(hashtextextended('file DOCS a.txt', 0))")
    thread.join()
    assert [o.mark for o in reports[0].outcomes] == ["+"]
    assert search(database, "DOCS", "tenpence", None).passages


# B48: names that Postgres would cut


def test_the_longest_names_have_schemas_and_readers_of_their_own_and_longer_ones_are_refused(
    database: Database, folder: Path, embedder: Spoiling
) -> None:
    (folder / "a.txt").write_text("The ferry costs ninepence.")
    names = ["A" * 39 + last for last in "XY"]
    made = [create_collection(database, name, embedder.identity()) for name in names]
    assert len({c.schema_name for c in made} | {c.reader_role for c in made}) == 4
    assert all(len(name) < 64 for c in made for name in (c.schema_name, c.reader_role))
    ingest(database, names[0], [folder], embedder, IngestOptions(bank=folder, isolate=False))
    assert [len(search(database, name, "ferry", embedder).passages) for name in names] == [1, 0]
    for name in ("kb_" + "a" * 60 + "_one", "A" * 41):
        with pytest.raises(InvalidArgument, match="not a collection name"):
            create_collection(database, name, embedder.identity())


# B49: an answer with too few rows, or rows of another width


@pytest.mark.parametrize("spoil", [lambda _, v: v[:-1], lambda _, v: v[:, :-1]], ids=["one row less", "narrower"])
def test_rows_that_are_not_those_asked_for_leave_what_was_there_before(
    database: Database, sync: Sync, folder: Path, embedder: Spoiling, spoil: Callable[..., Vectors]
) -> None:
    (folder / "a.md").write_text(sections(10))
    sync()
    before = rows(database, "SELECT chunk_id, text, embedding::text FROM chunks ORDER BY 1")
    (folder / "a.md").write_text(sections(10).replace("bollard", "ladder"))
    (folder / "b.md").write_text("Another file.")
    embedder.spoil = spoil
    report = sync()
    assert {o.source: str(o.status) for o in report.outcomes} == {"a.md": "failed", "b.md": "failed"}
    assert all("the embedder answered" in o.reason for o in report.outcomes)
    assert rows(database, "SELECT chunk_id, text, embedding::text FROM chunks ORDER BY 1") == before
    embedder.spoil = Spoiling.spoil
    assert {o.mark for o in sync().outcomes} == {"+"}
    stored = rows(database, "SELECT context || E'\\n\\n' || text, embedding::text FROM chunks WHERE source = 'a.md'")
    assert len(stored) == 10


# B50: only what is done is skipped


@pytest.mark.parametrize(
    "unfinished",
    [
        "status = 'failed'",
        "status = 'removed'",
        "sha256 = repeat('0', 64)",
        "pipeline_version = 'older'",
    ],
)
def test_a_ledger_row_that_says_less_than_done_never_makes_a_run_skip(
    database: Database, sync: Sync, folder: Path, unfinished: str
) -> None:
    (folder / "a.txt").write_text("The ferry costs ninepence.")
    sync()
    with database.owner("kb_docs") as connection:
        connection.execute("DELETE FROM chunks")
        connection.execute(f"UPDATE files SET {unfinished}")
    assert [o.mark for o in sync().outcomes] == ["+"]
    assert search(database, "DOCS", "ferry", None).passages


def test_what_took_too_long_is_tried_again_and_what_is_too_large_is_not(
    database: Database, sync: Sync, folder: Path, embedder: Spoiling
) -> None:
    (folder / "large.txt").write_text("The ferry costs ninepence. " * 40_000)

    def run(seconds: float, **options: bool) -> dict[str, tuple[str, str]]:
        bounds = IngestOptions(bank=folder, extract_timeout_s=seconds, max_file_bytes=1_000_000, **options)
        report = ingest(database, "DOCS", [folder], embedder, bounds)
        return {o.source: (o.mark, str(o.status)) for o in report.outcomes}

    large = {"large.txt": ("!", "too_large")}
    assert run(60) == large
    (folder / "slow.pdf").write_bytes(book(lambda pdf: [pdf.text_block("The tide comes in. " * 300) for _ in range(9)]))
    assert run(0.01) == {**large, "slow.pdf": ("!", "too_large")}
    assert run(60, dry_run=True) == {**large, "slow.pdf": ("+", "indexed")}
    assert run(60) == {**large, "slow.pdf": ("+", "indexed")}
    assert search(database, "DOCS", "tide", None).passages


# B52: nothing of a deleted file is left


def test_a_deleted_file_takes_its_edges_vectors_and_counts_with_it(
    database: Database, sync: Sync, folder: Path
) -> None:
    (folder / "a.md").write_text("# Fares\n\nThe halyard fare is told in section 7 of the other file.\n")
    (folder / "b.md").write_text("# 7 Halyards\n\nA halyard hoists a sail.\n")
    sync()
    with database.owner("kb_docs") as connection:
        connection.execute("DELETE FROM links")
        for here, there in (("a.md::0", "b.md::0"), ("b.md::0", "a.md::0")):
            connection.execute(
                "INSERT INTO links (from_chunk, to_chunk, relation, anchor, from_start, from_end, to_start, to_end,"
                " target_label)"
                " SELECT f.id, t.id, 'cites', 'section 7', 0, 9, 0, 0, '7' FROM chunks f, chunks t"
                " WHERE f.chunk_id = %s AND t.chunk_id = %s",
                (here, there),
            )
    assert rows(database, "SELECT count(*) FROM links") == [(2,)]
    (folder / "b.md").unlink()
    sync()
    assert rows(database, "SELECT count(*) FROM links") == [(0,)]
    assert rows(database, "SELECT source FROM chunks") == [("a.md",)]
    assert rows(database, "SELECT count(*) FROM lexemes WHERE lexeme = 'hoist'") == [(0,)]
    assert not search(database, "DOCS", "hoists", None).passages


# B55: again and again


def test_the_same_file_three_times_is_one_file(database: Database, sync: Sync, folder: Path) -> None:
    (folder / "a.md").write_text(sections(17))
    marks = [[o.mark for o in sync().outcomes] for _ in range(3)]
    assert marks == [["+"], ["="], ["="]]
    assert rows(database, "SELECT count(*) FROM chunks") == [(17,)]


# B56: links and loops


def test_a_folder_that_links_to_itself_or_out_of_the_root_is_listed_and_not_followed(
    database: Database, sync: Sync, folder: Path, tmp_path: Path
) -> None:
    (tmp_path / "secret").mkdir()
    (tmp_path / "secret" / "s.txt").write_text("The secret word is halyard.")
    (folder / "a.txt").write_text("The ferry costs ninepence.")
    (folder / "loop").symlink_to(folder)
    (folder / "out").symlink_to(tmp_path / "secret")
    (folder / "hosts.txt").symlink_to("/etc/hosts")
    outcomes = {o.source: (o.mark, o.reason) for o in sync().outcomes}
    link = ("!", "a symbolic link: links are not followed")
    assert outcomes == {"a.txt": ("+", ""), "loop": link, "out": link, "hosts.txt": link}
    assert not search(database, "DOCS", "halyard", None).passages


# B21, B23: sizes that Postgres refuses


def test_a_text_of_very_many_different_words_or_of_one_very_long_word_is_stored(
    database: Database, sync: Sync, folder: Path
) -> None:
    (folder / "words.txt").write_text(" ".join("w" * 200 + f"{n:06}" for n in range(5_500)))
    rng = np.random.default_rng(7)
    (folder / "noise.txt").write_text("".join(map(chr, rng.integers(97, 123, 12_000))))
    assert [o.mark for o in sync(batch_size=1000).outcomes] == ["+", "+"]
    assert search(database, "DOCS", "w" * 200 + "005499", None).passages[0].source == "words.txt"
