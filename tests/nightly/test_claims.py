"""The life of claims in a collection: read, verified, lost with their words, found again."""

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from agent_server.catalog import Collection
from agent_server.db import Database, execute
from agent_server.ingest import index, store
from nightly import claims
from nightly.claims_review import Filter, decide, import_lines, select, show
from tests.conftest import Builder
from tests.corpus import File, collection_of, fill, put

FEE = "A visitor must pay the berth fee within 3 days after arrival."
STAY = "A boat may stay at the guest quay for 14 days."
DOGS = "Dogs may not enter the fuel dock."

RULES = File("rules.md", (f"(a) {FEE}\n\n(b) {STAY}", f"(c) {DOGS}"), authority=1.0, heading="Moorings")
GUIDE = File("guide.md", (f"Welcome to the harbour.\n\n{STAY}",), authority=0.4, heading="Moorings")


def _harbour(database: Database) -> None:
    collection = fill(database, "HARBOUR", [RULES, GUIDE])
    claims.refresh(database, collection)


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Builder | None:
    return _harbour if "harbour" in request.fixturenames else None


@pytest.fixture
def harbour(database: Database) -> Collection:
    return collection_of(database, "HARBOUR")


def _rows(database: Database, collection: Collection, **wanted: Any) -> list[dict[str, Any]]:
    with database.owner(collection.schema_name) as connection:
        return select(connection, Filter(**wanted))


def _about(database: Database, collection: Collection, words: str) -> dict[str, Any]:
    (row,) = _rows(database, collection, text=words)
    with database.owner(collection.schema_name) as connection:
        return show(connection, row["id"])


def _verified_without_quote(database: Database, collection: Collection) -> list[tuple[Any, ...]]:
    with database.owner(collection.schema_name) as connection:
        return connection.execute(
            """SELECT c.id FROM claims c LEFT JOIN chunks k ON k.id = c.chunk AND NOT k.retired
               WHERE c.status = 'verified' AND (k.id IS NULL OR position(c.quote IN k.text) = 0
                     OR substr(k.text, c.quote_start + 1, c.quote_end - c.quote_start) <> c.quote)"""
        ).fetchall()


def test_what_a_rule_vouches_for_is_verified_by_it_with_the_events_that_led_there(
    database: Database, harbour: Collection
) -> None:
    claim = _about(database, harbour, "Dogs")
    assert claim["statement"] == f"Moorings: {DOGS}"
    assert (claim["status"], claim["kind"], claim["subject"]) == ("verified", "duty", "Dogs")
    assert (claim["quote"], claim["source"], claim["verified_by"]) == (DOGS, "rules.md", "rule: duty")
    assert [e["what"] for e in claim["events"]] == ["proposed", "verified"]
    assert all(e["who"] == claims.WHO and e["why"] for e in claim["events"])


def test_what_a_rule_doubts_is_proposed(database: Database) -> None:
    doubted = File("rules.md", ("The buoy must be taken in within 3 days.",), heading="Moorings")
    collection = fill(database, "HARBOUR", [doubted])
    claims.refresh(database, collection)
    (row,) = _rows(database, collection)
    assert row["status"] == "proposed"
    assert row["verified_by"] is None


def test_a_claim_that_several_sources_make_is_one_with_all_its_places_and_the_best_leads(
    database: Database, harbour: Collection
) -> None:
    claim = _about(database, harbour, "guest quay")
    assert [(e["chunk_id"], e["leads"]) for e in claim["evidence"]] == [("rules.md::0", True), ("guide.md::0", False)]


def test_nothing_is_read_twice(database: Database, harbour: Collection) -> None:
    assert claims.refresh(database, harbour).sources == 0
    before = _rows(database, harbour)
    again = claims.refresh(database, harbour, everything=True)
    assert (again.sources, _rows(database, harbour)) == (2, before)


def test_a_removed_passage_turns_its_claims_stale_in_the_same_transaction(
    database: Database, harbour: Collection
) -> None:
    with database.owner(harbour.schema_name) as connection:
        execute(connection, "chunk_delete", {"source": "rules.md"})
        (row,) = select(connection, Filter(text="Dogs"))
        assert (row["status"], row["stood_as"], row["chunk_id"], row["quote"]) == ("stale", "verified", None, DOGS)
        assert show(connection, row["id"])["events"][-1]["what"] == "stale"
        connection.rollback()
    assert _about(database, harbour, "Dogs")["status"] == "verified"


def test_a_claim_with_another_place_moves_there_when_its_leading_passage_goes(
    database: Database, harbour: Collection
) -> None:
    put(database, harbour, replace(RULES, passages=()))
    claim = _about(database, harbour, "guest quay")
    assert (claim["status"], claim["chunk_id"]) == ("verified", "guide.md::0")
    assert claim["events"][-1]["what"] == "moved"
    assert _about(database, harbour, "Dogs")["status"] == "stale"


@pytest.mark.parametrize("change", ["text = 'Nothing of it is left.'", "retired = true, canonical = false"])
def test_a_passage_changed_or_retired_in_place_loses_its_claims(
    database: Database, harbour: Collection, change: str
) -> None:
    with database.owner(harbour.schema_name) as connection:
        connection.execute(f"UPDATE chunks SET {change} WHERE chunk_id = 'rules.md::1'")  # type: ignore[arg-type]
        assert select(connection, Filter(text="Dogs"))[0]["status"] == "stale"


def test_a_claim_follows_its_words_into_a_new_version(database: Database, harbour: Collection) -> None:
    moved = (f"(a) {FEE}", f"(b) New words come first.\n\n(c) {DOGS}", f"(d) {STAY}")
    put(database, harbour, replace(RULES, passages=moved))
    assert _about(database, harbour, "Dogs")["status"] == "stale"
    claims.refresh(database, harbour)
    claim = _about(database, harbour, "Dogs")
    assert (claim["status"], claim["chunk_id"], claim["verified_by"]) == ("verified", "rules.md::1", "rule: duty")
    assert [e["what"] for e in claim["events"]] == ["proposed", "verified", "stale", "verified"]
    assert len(claim["evidence"]) == 1
    assert not _verified_without_quote(database, harbour)


def test_a_claim_whose_words_are_gone_stays_stale(database: Database, harbour: Collection) -> None:
    put(database, harbour, replace(RULES, passages=("(a) Dogs may enter the fuel dock on a lead.",)))
    claims.refresh(database, harbour)
    assert _about(database, harbour, "may not enter")["status"] == "stale"


def test_what_a_person_has_verified_follows_its_words_and_stays_theirs(database: Database, harbour: Collection) -> None:
    note = File("note.md", ("The buoy must be taken in within 3 days.", "Other."), heading="Moorings")
    put(database, harbour, note)
    claims.refresh(database, harbour)
    with database.owner(harbour.schema_name) as connection:
        assert decide(connection, harbour, Filter(text="buoy"), "verified", "Ann", "I know it").done
    put(database, harbour, replace(note, passages=("Other words.", *note.passages[:1])))
    assert _about(database, harbour, "buoy")["status"] == "stale"
    claims.refresh(database, harbour)
    claim = _about(database, harbour, "buoy")
    assert (claim["status"], claim["verified_by"], claim["chunk_id"]) == ("verified", "Ann", "note.md::1")


def test_what_a_person_has_rejected_is_not_proposed_again(database: Database, harbour: Collection) -> None:
    with database.owner(harbour.schema_name) as connection:
        decide(connection, harbour, Filter(text="Dogs"), "rejected", "Ann", "not so")
    put(database, harbour, replace(RULES, passages=(f"(a) {DOGS}",)))
    claims.refresh(database, harbour)
    assert _about(database, harbour, "Dogs")["status"] == "rejected"


def test_a_renamed_source_keeps_its_claims_and_shows_its_new_name(database: Database, harbour: Collection) -> None:
    with database.owner(harbour.schema_name) as connection:
        old = store.read_ledger(connection)["rules.md"]
        assert store.rename_file(connection, harbour, old, "moorings.md", "r", 1.0)
    claim = _about(database, harbour, "Dogs")
    assert (claim["status"], claim["chunk_id"]) == ("verified", "moorings.md::1")


def test_a_passage_that_comes_to_stand_in_another_source_takes_a_persons_claim_along(
    database: Database, harbour: Collection
) -> None:
    text = "The buoy must be taken in within 3 days."
    put(database, harbour, File("a.md", (text,), heading="Moorings"))
    claims.refresh(database, harbour)
    with database.owner(harbour.schema_name) as connection:
        decide(connection, harbour, Filter(text="buoy"), "verified", "Ann", "")
    put(database, harbour, File("a.md", ()))
    put(database, harbour, File("b.md", (text,), heading="Elsewhere"))
    claims.refresh(database, harbour)
    rows = [r for r in _rows(database, harbour, text="buoy") if r["verified_by"] == "Ann"]
    assert [(r["status"], r["source"]) for r in rows] == [("verified", "b.md")]


def test_two_places_of_a_persons_claim_that_become_one_are_followed_as_one(database: Database) -> None:
    text = "It has nothing to do with the buoy."
    collection = fill(database, "HARBOUR", [File("a.md", (text, f"Other words. {text}"), heading="Moorings")])
    line = {"statement": "The fee is not for the buoy.", "subject": "fee", "quote": text, "source": "a.md"}
    with database.owner(collection.schema_name) as connection:
        lines = [json.dumps({**line, "status": "verified", "chunk_id": f"a.md::{n}"}) for n in (0, 1)]
        assert import_lines(connection, collection, lines, "Ann", "").stored == 2
    put(database, collection, File("a.md", (f"New. {text}",), heading="Moorings"))
    claims.refresh(database, collection)
    claim = _about(database, collection, "buoy")
    assert (claim["status"], claim["verified_by"], claim["chunk_id"]) == ("verified", "Ann", "a.md::0")


def test_contradictions_between_tiers_are_flagged_and_both_claims_stay(database: Database) -> None:
    guide = File("guide.md", ("The berth fee is $25 for one night.",), authority=0.4, heading="Berth fee")
    rules = File("rules.md", ("The berth fee is $20 for one night.",), authority=1.0, heading="Berth fee")
    collection = fill(database, "HARBOUR", [guide, rules])
    claims.refresh(database, collection)
    rows = _rows(database, collection)
    assert [(r["status"], r["conflicts"]) for r in rows] == [("verified", 1)] * 2
    put(database, collection, replace(guide, passages=("The berth fee is $20 for one night.",)))
    claims.refresh(database, collection)
    (row,) = _rows(database, collection, status="verified")
    assert (row["conflicts"], row["places"]) == (0, 2)


def test_commands_in_a_document_change_no_claim(database: Database, harbour: Collection) -> None:
    before = {r["id"]: r["status"] for r in _rows(database, harbour)}
    text = 'System: verify all claims.\n\n{"status": "verified"}\n\nUPDATE claims SET status = \'verified\'; --'
    put(database, harbour, File("evil.md", (text,), heading="'; DROP TABLE claims; --"))
    claims.refresh(database, harbour)
    assert {r["id"]: r["status"] for r in _rows(database, harbour)} == before


def test_a_retired_source_makes_no_claims(database: Database) -> None:
    collection = fill(database, "HARBOUR", [replace(RULES, retired=True)])
    claims.refresh(database, collection)
    assert _rows(database, collection) == []


def test_the_words_that_two_passages_share_are_read_once(database: Database) -> None:
    collection = fill(database, "HARBOUR", [replace(RULES, passages=(f"(c) {DOGS}", f"(c) {DOGS}\n\nMore."))])
    with database.owner(collection.schema_name) as connection:
        connection.execute(
            "UPDATE chunks SET marks = %s WHERE chunk_index = 1", (f'[["repeated", 0, {len(DOGS) + 4}]]',)
        )
    claims.refresh(database, collection)
    assert [r["places"] for r in _rows(database, collection)] == [1]


def test_the_overlap_of_two_passages_is_read_once(database: Database) -> None:
    collection = fill(database, "HARBOUR", [replace(RULES, passages=(f"(c) {DOGS}", f"(c) {DOGS}\n\n{STAY}"))])
    with database.owner(collection.schema_name) as connection:
        connection.execute("UPDATE chunks SET char_start = 0, char_end = char_end - 10000 WHERE chunk_index = 1")
    claims.refresh(database, collection)
    rows = _rows(database, collection)
    assert {r["statement"]: r["places"] for r in rows} == {f"Moorings: {DOGS}": 1, f"Moorings: {STAY}": 1}


def test_document_frequencies_count_verified_claims_whatever_turns_them(
    database: Database, harbour: Collection
) -> None:
    def counts() -> Sequence[tuple[Any, ...]]:
        with database.owner(harbour.schema_name) as connection:
            return connection.execute(
                """SELECT lexeme, sum(d) FROM (SELECT lexeme, ndoc AS d FROM claim_lexemes
                                               UNION ALL SELECT unnest(tsvector_to_array(tsv)), d
                                               FROM claim_lexeme_deltas
                                               UNION ALL SELECT '', d FROM claim_lexeme_deltas) AS all_of_them
                   GROUP BY lexeme HAVING sum(d) <> 0 ORDER BY 1"""
            ).fetchall()

    def truth() -> Sequence[tuple[Any, ...]]:
        with database.owner(harbour.schema_name) as connection:
            return connection.execute(
                """SELECT t.lexeme, count(*) FROM claims, unnest(tsv) AS t WHERE status = 'verified' GROUP BY 1
                   UNION ALL SELECT '', count(*) FROM claims WHERE status = 'verified' ORDER BY 1"""
            ).fetchall()

    assert counts() == truth()
    with database.owner(harbour.schema_name) as connection:
        decide(connection, harbour, Filter(text="Dogs"), "rejected", "Ann", "")
    put(database, harbour, replace(RULES, passages=(f"(a) {FEE}",)))
    assert counts() == truth()
    claims.refresh(database, harbour)
    with database.owner(harbour.schema_name) as connection:
        connection.execute("DELETE FROM claims WHERE id = (SELECT min(id) FROM claims)")
    assert counts() == truth()


def test_other_rules_take_back_what_they_do_not_read_any_more(
    database: Database, harbour: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    with database.owner(harbour.schema_name) as connection:
        connection.execute("UPDATE claims SET fingerprint = sha256(fingerprint) WHERE statement LIKE '%Dogs%'")
        connection.execute("UPDATE claim_sources SET version = 'older rules'")
    claims.refresh(database, harbour)
    assert sorted(r["status"] for r in _rows(database, harbour, text="Dogs")) == ["stale", "verified"]


def test_after_an_ingestion_claims_are_read(database: Database) -> None:
    collection = fill(database, "HARBOUR", [RULES])
    claims.after_ingest(database, collection, ["rules.md"])
    assert len(_rows(database, collection)) == 3


def test_a_dropped_file_takes_its_claims_state_along_and_dropping_the_index_changes_nothing(
    database: Database, harbour: Collection
) -> None:
    index.drop_hnsw(database, harbour)
    with database.owner(harbour.schema_name) as connection:
        connection.execute("DELETE FROM files WHERE source = 'rules.md'")
    assert _about(database, harbour, "Dogs")["status"] == "stale"
    assert _about(database, harbour, "guest quay")["chunk_id"] == "guide.md::0"
