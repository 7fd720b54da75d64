"""Recall: verified claims by words and names alone, with their passages."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from psycopg import sql as psycopg_sql

from agent_server import sql
from agent_server.catalog import Collection, create_collection
from agent_server.db import Conn, Database, fetch_all
from agent_server.errors import InvalidArgument
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.steps import IngestOptions
from agent_server.retrieval import recall
from agent_server.retrieval.recall import recall_claims
from agent_server.retrieval.recalled import RecallResult
from agent_server.settings import Settings
from nightly import claims
from nightly.claims_review import Filter, decide
from tests.conftest import Builder
from tests.corpus import File, collection_of, fill, put
from tests.doors.conftest import environment
from tests.hash_embedder import HashEmbedder
from tests.ollama_double import OllamaDouble

GLOSSARY = File(
    "rules/terms.md",
    (
        "**Berth fee** means the sum that is due for one night at the quay.\n\n"
        "**Standing** means the condition of a membership. A member is in good standing if no berth fee is unpaid.",
        "**Slipway** means a ramp on which boats are launched.\n\n"
        "The Harbour Safety Board (HSB) meets every year. A boat is new if it has never been launched.",
    ),
    authority=1.0,
    heading="Definitions",
)
RULES = File(
    "rules/moorings.md",
    (
        "(a) A visitor must pay the berth fee within 3 days after arrival.\n\n"
        "(b) A boat may stay at the guest quay for 14 days.\n\n"
        "(c) The berth fee is $20 for one night.",
        "| Code | Meaning |\n|---|---|\n| QX-4021 | Berth fee unpaid after 3 days |\n| QX-4022 | Boat left |",
    ),
    authority=0.7,
    heading="Moorings and berth fee",
)
GUIDE = File(
    "guide.md", ("Berth fee: what you pay for a night.\n\nSlipway: the wet ramp.",), authority=0.1, heading="Glossary"
)


def _harbour(database: Database) -> None:
    collection = fill(database, "HARBOUR", [GLOSSARY, RULES, GUIDE])
    claims.refresh(database, collection)


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Builder | None:
    return _harbour if "harbour" in request.fixturenames else None


@pytest.fixture
def harbour(database: Database) -> Collection:
    return collection_of(database, "HARBOUR")


def _recall(database: Database, collection: Collection, query: str, limit: int = 5) -> RecallResult:
    return recall_claims(database, [collection], query, limit)


# -- what is found ----------------------------------------------------------------------------------------------


def test_a_question_for_a_term_gets_its_definition_with_the_passage_of_highest_authority_first(
    database: Database, harbour: Collection
) -> None:
    asked = (
        *("What is a slipway?", "what does slipway mean", "define slipways", "Slipway", "SLIPWAY, definition"),
        *("What does the term slipway mean?", "the term slipway", "What are the meanings of the word 'slipway'?"),
    )
    for result in (_recall(database, harbour, query) for query in asked):
        first = result.claims[0]
        assert first.statement == "Slipway means a ramp on which boats are launched."
        where = (first.chunk_id, first.source, first.heading)
        assert where == ("rules/terms.md::1", "rules/terms.md", ("Definitions",))
        assert first.quote in first.text
        assert first.text == GLOSSARY.passages[1]
        assert (first.kind, first.authority, first.rank) == ("definition", 1.0, 1)
        assert {c.subject.lower() for c in result.claims} == {"slipway"}
        assert result.diagnostic is None


def test_a_code_is_recalled_in_every_spelling(database: Database, harbour: Collection) -> None:
    for query in ("QX-4021", "QX 4021", "qx4021", "what does code QX-4021 mean?", "What is QX-4021?"):
        (claim,) = _recall(database, harbour, query).claims
        assert claim.statement == "QX-4021: Berth fee unpaid after 3 days.", query


def test_an_abbreviation_is_recalled_by_itself_and_by_its_words(database: Database, harbour: Collection) -> None:
    for query in ("What does HSB stand for?", "what is the Harbour Safety Board"):
        assert _recall(database, harbour, query).claims[0].subject == "HSB"


def test_the_whole_name_comes_before_its_end(database: Database, harbour: Collection) -> None:
    statements = [c.statement for c in _recall(database, harbour, "What does good standing mean?").claims]
    assert "in good standing if" in statements[0]
    assert statements[1:] == [] or statements[1].startswith("Standing means")


def test_a_thing_told_by_its_condition_is_recalled(database: Database, harbour: Collection) -> None:
    assert "never been launched" in _recall(database, harbour, "What is a new boat?").claims[0].statement


def test_a_question_in_a_sentence_is_answered_by_the_claim_that_its_words_make_up(
    database: Database, harbour: Collection
) -> None:
    first = _recall(database, harbour, "Within how many days must a visitor pay the berth fee?").claims[0]
    assert first.quote == "A visitor must pay the berth fee within 3 days after arrival."
    assert first.statement.startswith("Moorings and berth fee: ")


def test_the_figure_asked_for_with_the_article_is_an_answer(database: Database, harbour: Collection) -> None:
    found = _recall(database, harbour, "What is the berth fee?").claims
    assert "The berth fee is $20 for one night." in [c.quote for c in found]


def test_copies_elsewhere_and_contradictions_stand_with_a_claim(database: Database, harbour: Collection) -> None:
    put(
        database,
        harbour,
        File("copy.md", ("The berth fee is $20 for one night.",), 0.7, heading="Moorings and berth fee"),
    )
    put(
        database,
        harbour,
        File("old.md", ("The berth fee is $15 for one night.",), 0.1, heading="Moorings and berth fee"),
    )
    claims.refresh(database, harbour)
    claim = next(
        c for c in _recall(database, harbour, "how much is the berth fee for one night").claims if "$20" in c.quote
    )
    assert claim.also_in == ("rules/moorings.md::0",) or claim.also_in == ("copy.md::0",)
    (other,) = claim.contradicted_by
    assert (other["chunk_id"], other["reason"]) == ("old.md::0", "20 against 15")
    assert other["authority"] == pytest.approx(0.1)


def test_the_limit_bounds_the_claims(database: Database, harbour: Collection) -> None:
    assert len(_recall(database, harbour, "berth fee", 1).claims) == 1


# -- what is not found ------------------------------------------------------------------------------------------


UNDEFINED = (
    "What is a balloon payment?",
    "What is a launching fee?",
    "What does guest fee mean?",
    "define photosynthesis",
    "What is a visitor?",
    "What does guest quay mean?",
    "What is the cost of a kayak?",
    "What does the term visitor mean?",
    "What is the fee for the word?",
)


def test_a_term_that_is_not_defined_gets_nothing_and_is_told_why(database: Database, harbour: Collection) -> None:
    for query in UNDEFINED:
        result = _recall(database, harbour, query)
        assert result.claims == (), query
        assert result.diagnostic is not None
        assert "verified claims of HARBOUR" in result.diagnostic
        assert "search_knowledge_base" in result.diagnostic


def test_a_question_that_no_claim_is_about_gets_nothing(database: Database, harbour: Collection) -> None:
    assert _recall(database, harbour, "How do I teach my parrot to whistle in the evening?").claims == ()
    # One known word and one that no claim holds: half of the question at most.
    assert _recall(database, harbour, "is a parrot launched").claims == ()


def test_a_collection_without_claims_or_without_verified_ones_says_so(database: Database) -> None:
    empty = fill(database, "EMPTY", [])
    assert "no claims yet" in (_recall(database, empty, "slipway").diagnostic or "")
    proposed = fill(
        database, "PROPOSED", [File("a.md", ("The buoy must be taken in within 3 days.",), heading="Moorings")]
    )
    claims.refresh(database, proposed)
    assert "1 are proposed" in (_recall(database, proposed, "buoy").diagnostic or "")


def test_odd_questions_are_answered_without_a_fault(database: Database, harbour: Collection) -> None:
    for query in ("what is it", "🚀", "' OR 1=1 --", "!!!", "a & | !", "\\"):
        result = _recall(database, harbour, query)
        assert result.claims == (), query
        assert result.diagnostic


def test_what_cannot_be_asked_is_refused_by_name(database: Database, harbour: Collection) -> None:
    for query, limit, name in (
        ("", 5, "query"),
        (" \n", 5, "query"),
        ("x" * 5000, 5, "query"),
        ("a", 0, "limit"),
        ("a", 51, "limit"),
    ):
        with pytest.raises(InvalidArgument) as caught:
            _recall(database, harbour, query, limit)
        assert caught.value.details["field"] == name


def test_only_verified_claims_are_recalled(database: Database, harbour: Collection) -> None:
    with database.owner(harbour.schema_name) as connection:
        decide(connection, harbour, Filter(subject="slipway"), "rejected", "Ann", "")
    assert _recall(database, harbour, "slipway").claims == ()
    put(database, harbour, File(GLOSSARY.source, ()))
    assert _recall(database, harbour, "standing").claims == ()


def test_a_claim_of_one_collection_is_not_seen_from_another(database: Database, harbour: Collection) -> None:
    other = fill(database, "OTHER", [File("a.md", ("“Quay” means a place for boats.",), heading="Definitions")])
    claims.refresh(database, other)
    assert _recall(database, other, "slipway").claims == ()
    both = recall_claims(database, [harbour, other], "quay")
    assert [(c.collection, c.subject) for c in both.claims] == [("OTHER", "Quay")]
    assert both.collections == ("HARBOUR", "OTHER")


def test_a_readers_role_may_read_claims_and_change_none(database: Database, harbour: Collection) -> None:
    with database.reader(harbour.reader_role, harbour.schema_name) as connection:
        assert connection.execute("SELECT count(*) FROM claims").fetchone() is not None
        connection.rollback()
        with pytest.raises(Exception, match=r"permission denied|read-only"):
            connection.execute("UPDATE claims SET status = 'verified'")
        connection.rollback()


# -- plan -------------------------------------------------------------------------------------------------------


#: More claims about other things: an index over a handful of rows is never worth its while.
MANY = """INSERT INTO claims (kind, subject, subject_keys, statement, fingerprint, status, chunk, quote, quote_start,
                              quote_end, passage_hash, extractor, confidence, verified_at, verified_by, tsv, bm25)
          SELECT 'limit', 'buoy ' || n, ARRAY['buoy ' || n], 'Buoys.', sha256(n::text::bytea), 'verified', min, 'x', 0,
                 1, '', 'made', 1, now(), 'Ann', to_tsvector('english', 'buoy' || n % 50 || ' lie' || n), '{}/1000000000'
          FROM generate_series(1, 3000) AS n, (SELECT min(id) FROM chunks) AS first"""


@pytest.mark.parametrize(
    ("query", "index"),
    [
        ("What is a slipway?", "claims_subjects"),
        ("QX-4021", "claims_subjects"),
        ("Within how many days must a visitor pay the berth fee?", "claims_tsv"),
    ],
)
def test_claims_are_found_through_their_indexes_and_never_read_from_end_to_end(
    database: Database, harbour: Collection, monkeypatch: pytest.MonkeyPatch, query: str, index: str
) -> None:
    with database.owner(harbour.schema_name) as connection:
        connection.execute(MANY)
        connection.execute("ANALYZE claims, claim_lexemes")
    plans: dict[str, str] = {}

    def explained(connection: Conn, name: str, values: dict[str, Any] | None = None) -> list[dict[str, Any]]:
        statement = psycopg_sql.SQL("EXPLAIN ") + sql.load(name, given=values or ()).query()
        plans[name] = "\n".join(row[0] for row in connection.execute(statement, values or {}).fetchall())
        return fetch_all(connection, name, values)

    monkeypatch.setattr(recall, "fetch_all", explained)
    assert _recall(database, harbour, query).claims
    assert f"Bitmap Index Scan on {index}" in plans["recall"]
    for name in ("recall", "recall_passages", "claim_terms"):
        assert "Seq Scan" not in plans[name], plans[name]
    assert "Index Scan using chunks_pkey" in plans["recall_passages"]


# -- no model ---------------------------------------------------------------------------------------------------

_PROGRAM = """
import sys
from agent_server.doors.cli.main import main
code = main(["recall", QUERY, "--json"])
runtimes = ("onnxruntime", "tokenizers", "agent_server.embedding.local", "agent_server.embedding.ollama")
print(code, [m for m in runtimes if m in sys.modules], file=sys.stderr)
"""


def _in_a_process(
    settings: Settings, query: str = "what is a slipway", **more: str
) -> subprocess.CompletedProcess[str]:
    environ = {k: v for k, v in os.environ.items() if not k.startswith(("KB_", "OLLAMA_"))}
    environ |= environment(settings) | more
    program = _PROGRAM.replace("QUERY", repr(query))
    return subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environ)


def test_no_runtime_of_a_model_is_imported(harbour: Collection, settings: Settings) -> None:
    done = _in_a_process(settings, KB_EMBEDDER="local")
    assert "Slipway means a ramp" in done.stdout
    assert done.stderr.strip() == "0 []"


@pytest.fixture
def double() -> Iterator[OllamaDouble]:
    with OllamaDouble() as running:
        yield running


def test_ollama_sees_no_request(harbour: Collection, settings: Settings, double: OllamaDouble) -> None:
    done = _in_a_process(settings, KB_EMBEDDER="ollama", KB_OLLAMA_URL=double.url)
    assert "Slipway means a ramp" in done.stdout
    assert double.state.requests == []


RULEBOOK = Path(__file__).parents[2] / "knowledge-bank" / "documents" / "FINANCE" / "rules" / "lending-rulebook.md"


def test_terms_of_the_lending_rulebook_are_recalled_from_it_and_ollama_sees_no_request(
    database: Database, settings: Settings, double: OllamaDouble, hash_embedder: HashEmbedder
) -> None:
    collection = create_collection(database, "FINANCE", hash_embedder.identity())
    ingest(database, "FINANCE", [RULEBOOK], hash_embedder, IngestOptions(isolate=False))
    claims.refresh(database, collection)
    for term in ("qualifying income", "adverse action", "counteroffer", "cure period", "insider"):
        first = _recall(database, collection, f"what is {term}").claims[0]
        assert first.quote.startswith(f"**{term.capitalize()}** means")
        assert first.quote in first.text
        assert first.heading[-1] == "§ 1.4 Definitions"
    done = _in_a_process(settings, "what is qualifying income", KB_EMBEDDER="ollama", KB_OLLAMA_URL=double.url)
    assert json.loads(done.stdout)["claims"][0]["statement"].startswith("Qualifying income means the monthly gross")
    assert done.stderr.strip() == "0 []"
    assert double.state.requests == []
