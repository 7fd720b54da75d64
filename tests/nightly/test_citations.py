"""Citations in the database stay as fresh as the passages, and cost nothing where nothing changed."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest

from agent_server.catalog import Collection, create_collection
from agent_server.db import Database
from agent_server.ingest.pipeline import ingest, remove
from agent_server.ingest.steps import IngestOptions
from nightly import citations
from nightly.citations import refresh
from tests.hash_embedder import HashEmbedder

RULES = """# 9 CFR Part 31 Barges

## § 31.1 Scope

(a) See § 31.2(b) and the [guide](guide.md#fees).

## § 31.2 Fees

(a) One.

(b) Two."""
GUIDE = "# Guide\n\nAs § 31.1(a) of 9 CFR part 31 says, see § 31.2(a) and PEP 8.\n\n## Fees\n\nFive."
PLAIN = "# Plain\n\nNothing is cited here."


@pytest.fixture
def bank(tmp_path: Path) -> Path:
    folder = tmp_path / "bank"
    folder.mkdir()
    for name, text in {"rules.md": RULES, "guide.md": GUIDE, "plain.md": PLAIN}.items():
        (folder / name).write_text(text)
    return folder


@pytest.fixture
def collection(database: Database, hash_embedder: HashEmbedder) -> Collection:
    return create_collection(database, "LAW", hash_embedder.identity())


@pytest.fixture
def sync(database: Database, collection: Collection, bank: Path, hash_embedder: HashEmbedder) -> Callable[[], Any]:
    """Ingest the folder, then refresh the citations; what the refresh did."""

    def run() -> citations.CitationsReport:
        ingest(database, collection.name, [bank], hash_embedder, IngestOptions(bank=bank, isolate=False))
        return refresh(database, collection)

    return run


def rows(database: Database, query: str) -> list[tuple[Any, ...]]:
    with database.owner("kb_law") as connection:
        return connection.execute(query).fetchall()  # type: ignore[arg-type]


def links(database: Database) -> set[tuple[str, str, str]]:
    """Edges as (source, words, what stands at the target)."""
    found = rows(
        database,
        "SELECT a.source, l.anchor, b.source || ': ' || rtrim(substr(b.text, l.to_start + 1, 7), E' \\n'),"
        " substr(a.text, l.from_start + 1, l.from_end - l.from_start)"
        " FROM links l JOIN chunks a ON a.id = from_chunk JOIN chunks b ON b.id = to_chunk WHERE relation = 'cites'",
    )
    assert all(anchor == words for _, anchor, _, words in found)
    return {(source, anchor, target) for source, anchor, target, _ in found}


def dangling(database: Database) -> set[tuple[str, str, str]]:
    return set(rows(database, "SELECT source, anchor, reason FROM dangling_links d JOIN chunks c ON c.id = from_chunk"))


def states(database: Database) -> list[tuple[Any, ...]]:
    """Every row of the edge tables, with the transaction that wrote it."""
    tables = ("links", "dangling_links", "edge_sources")
    return [
        row
        for table in tables
        for row in rows(database, f"SELECT '{table}', xmin::text, ctid::text FROM {table} ORDER BY ctid")
    ]


EXPECTED = {
    ("rules.md", "§ 31.2(b)", "rules.md: (b) Two"),
    ("rules.md", "[guide](guide.md#fees)", "guide.md: ## Fees"),
    ("guide.md", "§ 31.1(a) of 9 CFR part 31", "rules.md: (a) See"),
    ("guide.md", "§ 31.2(a)", "rules.md: (a) One"),
}
NO_PEP = ("guide.md", "PEP 8", "no document called PEP 8 in the collection")


def test_references_become_edges_and_what_leads_nowhere_is_kept(database: Database, sync: Callable[[], Any]) -> None:
    report = sync()
    assert (report.sources, report.links, report.dangling) in {(3, 4, 1), (0, 0, 0)}  # 0: the installed hook did it
    assert links(database) == EXPECTED
    assert dangling(database) == {NO_PEP}


def test_an_edge_keeps_the_words_of_the_sentence_that_cites(database: Database, sync: Callable[[], Any]) -> None:
    sync()
    kept = dict(rows(database, "SELECT anchor, said FROM links"))
    assert {"say", "cfr", "pep"} <= set(kept["§ 31.2(a)"])
    assert not {"five", "fee"} & set(kept["§ 31.2(a)"])


def test_an_unchanged_bank_rebuilds_and_writes_nothing(database: Database, sync: Callable[[], Any]) -> None:
    sync()
    before = states(database)
    assert sync().sources == 0
    assert states(database) == before


def test_reading_everything_again_finds_the_same(
    database: Database, collection: Collection, sync: Callable[[], Any]
) -> None:
    sync()
    before = links(database), dangling(database), len(states(database))
    assert refresh(database, collection, everything=True).sources == 3
    assert (links(database), dangling(database), len(states(database))) == before


def test_only_changed_sources_and_those_that_point_at_them_are_read(
    database: Database, collection: Collection, bank: Path, sync: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sync()
    read: list[str] = []
    edges_of = citations.edges_of
    monkeypatch.setattr(citations, "edges_of", lambda book, shelf: (read.append(book.source), edges_of(book, shelf))[1])
    (bank / "plain.md").write_text(PLAIN + " Nor here.")
    sync()
    assert read == ["plain.md"]
    read.clear()
    (bank / "guide.md").write_text(GUIDE + "\n\n## More\n\nSix.")
    sync()
    assert read == ["guide.md", "rules.md"]
    assert links(database) == EXPECTED


def test_deleting_a_source_leaves_no_edge_and_re_ingesting_brings_all_back(
    database: Database, bank: Path, sync: Callable[[], Any]
) -> None:
    sync()
    (bank / "rules.md").unlink()
    sync()
    assert links(database) == set()
    assert dangling(database) == {
        NO_PEP,
        ("guide.md", "§ 31.1(a) of 9 CFR part 31", "no document called 9 CFR 31 in the collection"),
        ("guide.md", "§ 31.2(a)", "no § 31.2(a)"),
    }
    (bank / "rules.md").write_text(RULES)
    sync()
    assert links(database) == EXPECTED
    assert dangling(database) == {NO_PEP}


def test_removing_by_name_does_the_same(database: Database, collection: Collection, sync: Callable[[], Any]) -> None:
    sync()
    remove(database, collection.name, ["guide.md"])
    refresh(database, collection)
    assert links(database) == {("rules.md", "§ 31.2(b)", "rules.md: (b) Two")}
    assert dangling(database) == {
        ("rules.md", "[guide](guide.md#fees)", "no document called guide.md in the collection")
    }
    sync()
    assert links(database) == EXPECTED


def test_a_renamed_file_keeps_its_edges_and_links_by_its_old_name_dangle(
    database: Database, bank: Path, sync: Callable[[], Any]
) -> None:
    sync()
    (bank / "guide.md").rename(bank / "manual.md")
    sync()
    assert links(database) == {
        (source.replace("guide", "manual"), anchor, target)
        for source, anchor, target in EXPECTED
        if not anchor.startswith("[guide]")
    }
    assert ("rules.md", "[guide](guide.md#fees)", "no document called guide.md in the collection") in dangling(database)


def test_a_document_that_arrives_is_found_by_those_that_looked_for_it(
    database: Database, bank: Path, sync: Callable[[], Any]
) -> None:
    sync()
    (bank / "pep-0008.md").write_text("# Style\n\nBe short.")
    sync()
    assert ("guide.md", "PEP 8", "pep-0008.md: # Style") in links(database)
    assert dangling(database) == set()


def test_other_rules_read_every_source_again(
    database: Database, collection: Collection, sync: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sync()
    monkeypatch.setattr(citations, "RULES", citations.RULES + 1)
    assert refresh(database, collection).sources == 3
    assert links(database) == EXPECTED


def test_a_run_that_broke_off_is_made_good_by_the_next(
    database: Database, collection: Collection, sync: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sync()
    with monkeypatch.context() as patched, pytest.raises(ValueError, match="cut") as raised:
        patched.setattr(citations, "edges_of", _break_at("guide.md", citations.edges_of))
        refresh(database, collection, everything=True)
    assert "while the citations of guide.md were read" in raised.value.__notes__
    assert links(database) == EXPECTED  # of the others anew, of guide.md as they were
    assert refresh(database, collection).sources == 2  # and rules.md, which points at it
    assert links(database) == EXPECTED


def _break_at(source: str, edges_of: Callable[..., Any]) -> Callable[..., Any]:
    def broken(book: Any, shelf: Any) -> Any:
        if book.source == source:
            raise ValueError("cut off")
        return edges_of(book, shelf)

    return broken


def test_two_refreshes_at_once_make_every_edge_once(
    database: Database, collection: Collection, sync: Callable[[], Any]
) -> None:
    sync()
    count = len(states(database))
    with ThreadPoolExecutor(2) as pool:
        for _ in range(3):
            done = list(pool.map(lambda _: refresh(database, collection, everything=True), range(2)))
            assert all(report.sources == 3 for report in done)
    assert links(database) == EXPECTED
    assert len(states(database)) == count


def test_an_ingestion_at_the_same_time_loses_no_edge_for_good(
    database: Database, collection: Collection, bank: Path, sync: Callable[[], Any]
) -> None:
    sync()
    with ThreadPoolExecutor(2) as pool:
        for n in range(3):
            (bank / "guide.md").write_text(GUIDE + f"\n\nRound {n}.")
            for work in [pool.submit(sync), pool.submit(refresh, database, collection, everything=True)]:
                work.result()
    refresh(database, collection)
    assert links(database) == EXPECTED


def test_a_source_too_large_to_be_held_has_no_edges_and_stops_nobody(
    database: Database, collection: Collection, sync: Callable[[], Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    sync()
    most = rows(database, "SELECT max(n) FROM (SELECT count(*) AS n FROM chunks GROUP BY source) AS x")[0][0]
    assert most > 1
    monkeypatch.setattr(citations, "MAX_PASSAGES", 1)
    refresh(database, collection, everything=True)
    assert {source for source, _, _ in links(database)} <= {"plain.md"}


def test_the_reader_of_a_collection_may_follow_its_edges(
    database: Database, collection: Collection, sync: Callable[[], Any]
) -> None:
    sync()
    with database.reader(collection.reader_role, collection.schema_name) as connection:
        assert connection.execute("SELECT count(*) FROM links").fetchone() == (4,)
        with pytest.raises(psycopg.errors.ReadOnlySqlTransaction):
            connection.execute("DELETE FROM links")
