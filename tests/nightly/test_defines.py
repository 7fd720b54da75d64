"""Terms and definition edges are as fresh as their passages, and go with them."""

from dataclasses import replace
from typing import Any

import pytest

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.retrieval.candidates import SearchOptions
from agent_server.retrieval.search import search
from nightly import defines
from tests.conftest import Builder
from tests.corpus import File, collection_of, fill, put
from tests.hash_embedder import HashEmbedder

RULES = File(
    "rules.md",
    [
        "**Berth** means a place for one boat.\n\n**Guest berth** means a berth for a visiting boat.",
        "Guest berths are let by the night. A berth has water.",
        "No boat lies at a guest berth in winter.",
    ],
    heading="Definitions",
)
GUIDE = File("guide.md", ["Ask for a guest berth by radio.", "The term slack means still water."])


def _harbor(database: Database) -> None:
    fill(database, "HARBOR", [RULES, GUIDE])


@pytest.fixture
def stock(request: pytest.FixtureRequest) -> Builder | None:
    return _harbor if "harbor" in request.fixturenames else None


@pytest.fixture
def harbor(database: Database) -> Collection:
    return collection_of(database, "HARBOR")


def terms(database: Database) -> list[tuple[Any, ...]]:
    with database.owner("kb_harbor") as connection:
        return connection.execute(
            "SELECT folded, chunk_id, form, substr(text, from_start + 1, from_end - from_start)"
            " FROM terms t JOIN chunks c ON c.id = t.chunk ORDER BY 2, from_start"
        ).fetchall()


def edges(database: Database) -> set[tuple[Any, ...]]:
    with database.owner("kb_harbor") as connection:
        return set(
            connection.execute(
                "SELECT f.chunk_id, substr(f.text, from_start + 1, from_end - from_start), anchor, target_label,"
                " t.chunk_id, substr(t.text, to_start + 1, to_end - to_start)"
                " FROM links JOIN chunks f ON f.id = from_chunk JOIN chunks t ON t.id = to_chunk"
                " WHERE relation = 'defines'"
            ).fetchall()
        )


def test_terms_are_stored_with_their_key_and_the_words_that_define_them(database: Database, harbor: Collection) -> None:
    report = defines.refresh(database, harbor)
    assert (report.sources, report.terms) == (2, 3)
    assert terms(database) == [
        ("slack", "guide.md::1", "means", "slack means still water."),
        ("berth", "rules.md::0", "means", "**Berth** means a place for one boat."),
        ("guest berth", "rules.md::0", "means", "**Guest berth** means a berth for a visiting boat."),
    ]


def test_uses_lead_to_definitions_within_the_source_alone(database: Database, harbor: Collection) -> None:
    defines.refresh(database, harbor)
    whole = "**Berth** means a place for one boat."
    guest = "**Guest berth** means a berth for a visiting boat."
    assert edges(database) == {
        ("rules.md::1", "Guest berths", "Guest berths", "guest berth", "rules.md::0", guest),
        ("rules.md::1", "berth", "berth", "berth", "rules.md::0", whole),
        ("rules.md::2", "guest berth", "guest berth", "guest berth", "rules.md::0", guest),
    }


def test_nothing_is_read_again_while_nothing_changes(database: Database, harbor: Collection) -> None:
    defines.refresh(database, harbor)
    again = defines.refresh(database, harbor)
    assert (again.sources, again.terms, again.edges) == (0, 0, 0)
    everything = defines.refresh(database, harbor, everything=True)
    assert (everything.sources, everything.terms, everything.edges) == (2, 3, 3)
    assert len(terms(database)) == 3
    assert len(edges(database)) == 3


def test_a_changed_source_alone_is_read_again(database: Database, harbor: Collection) -> None:
    defines.refresh(database, harbor)
    put(
        database,
        harbor,
        replace(GUIDE, passages=["The term slack means still water. The term ebb means falling water."]),
    )
    assert [t[0] for t in terms(database)] == ["berth", "guest berth"]  # gone with their passages
    report = defines.after_ingest(database, harbor, ["guide.md"])
    assert (report.sources, report.terms) == (1, 2)
    assert [t[0] for t in terms(database)] == ["slack", "ebb", "berth", "guest berth"]


def test_a_removed_source_leaves_nothing_and_comes_back_whole(database: Database, harbor: Collection) -> None:
    defines.refresh(database, harbor)
    before = terms(database), edges(database)
    put(database, harbor, replace(RULES, passages=[]))
    assert defines.refresh(database, harbor).sources == 0
    assert [t[0] for t in terms(database)] == ["slack"]
    assert edges(database) == set()
    put(database, harbor, RULES)
    defines.refresh(database, harbor)
    assert (terms(database), edges(database)) == before


def test_rules_that_changed_read_every_source_again(
    database: Database, harbor: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    defines.refresh(database, harbor)
    monkeypatch.setattr(defines, "RULES", defines.RULES + 1)
    assert defines.refresh(database, harbor).sources == 2


def test_a_source_of_many_passages_is_read_in_parts(
    database: Database, harbor: Collection, monkeypatch: pytest.MonkeyPatch
) -> None:
    defines.refresh(database, harbor)
    before = terms(database), edges(database)
    monkeypatch.setattr(defines, "PASSAGES_AT_ONCE", 1)
    defines.refresh(database, harbor, everything=True)
    assert (terms(database), edges(database)) == before
    monkeypatch.setattr(defines, "MAX_PASSAGES_WITH_USES", 2)
    defines.refresh(database, harbor, everything=True)
    assert len(edges(database)) == 2


def test_a_question_finds_the_definition_that_was_read(database: Database, harbor: Collection) -> None:
    question = "What does guest berth mean, and is there a berth in winter by radio?"
    options = SearchOptions(top_k=2)
    before = search(database, "HARBOR", question, HashEmbedder(), options)
    defines.refresh(database, harbor)
    after = search(database, "HARBOR", question, HashEmbedder(), options)
    assert all(p.edge is None for p in before.passages)
    assert after.passages[0].chunk_id == "rules.md::0"
    assert after.passages[0].edge is not None
