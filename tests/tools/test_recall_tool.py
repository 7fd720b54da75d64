"""`recall_claims` as a model calls it."""

import json
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from agent_server.db import Database
from agent_server.errors import InvalidArgument, UnknownCollection
from agent_server.settings import Settings
from agent_server.tools import Toolbox, dispatch, schemas
from agent_server.tools.knowledge_base import tokens
from agent_server.tools.recall_claims import within_budget
from nightly import claims
from tests.corpus import File, fill

RECALL = "recall_claims"


@pytest.fixture
def box(database: Database, settings: Settings) -> Toolbox:
    for name, term in (("FINANCE", "Berth fee"), ("SECRET", "Slipway")):
        text = f"**{term}** means the thing that stands in the papers of {name}."
        claims.refresh(database, fill(database, name, [File("terms.md", (text,), 0.7, heading="Definitions")]))
    return Toolbox(database, None, settings)


@pytest.fixture
def calls(database: Database) -> Callable[[str], list[tuple[Any, ...]]]:
    def read(schema: str) -> list[tuple[Any, ...]]:
        with database.owner(schema) as connection:
            return connection.execute("SELECT tool, outcome FROM tool_calls ORDER BY id").fetchall()

    return read


def test_a_claim_comes_with_its_passage_and_all_that_it_takes_to_cite_it(box: Toolbox) -> None:
    result = dispatch(box, RECALL, {"collection": "finance", "query": "what is a berth fee?"})
    (claim,) = result["claims"]
    assert claim["statement"] == "Berth fee means the thing that stands in the papers of FINANCE."
    assert claim["quote"] in claim["text"]
    assert (claim["chunk_id"], claim["source"], claim["heading"]) == ("terms.md::0", "terms.md", ["Definitions"])
    assert {"page", "title", "authority", "kind", "also_in", "contradicted_by", "collection"} <= set(claim)
    assert json.loads(json.dumps(result)) == result


def test_without_a_collection_all_that_the_caller_may_see_are_looked_through(
    box: Toolbox, calls: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    assert dispatch(box, RECALL, {"query": "slipway"})["claims"][0]["collection"] == "SECRET"
    assert calls("kb_finance") == calls("kb_secret") == [(RECALL, "ok")]


def test_a_collection_that_may_not_be_seen_is_never_looked_into(
    box: Toolbox, calls: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    scoped = replace(box, allowed=frozenset({"finance"}))
    result = dispatch(scoped, RECALL, {"query": "slipway"})
    assert result["claims"] == []
    assert result["collections"] == ["FINANCE"]
    assert "SECRET" not in json.dumps(result)
    with pytest.raises(UnknownCollection):
        dispatch(scoped, RECALL, {"query": "slipway", "collection": "SECRET"})
    assert calls("kb_secret") == []
    assert "SECRET" not in json.dumps(schemas(scoped))
    nobody = replace(box, allowed=frozenset())
    assert "no collection" in dispatch(nobody, RECALL, {"query": "slipway"})["diagnostic"]


def test_arguments_are_coerced_where_that_is_harmless_and_refused_by_name_otherwise(
    box: Toolbox, calls: Callable[[str], list[tuple[Any, ...]]]
) -> None:
    assert dispatch(box, RECALL, '{"query": "berth fee", "collection": "FINANCE", "limit": "5"}')["claims"]
    for given, field in (
        ({"query": "x", "limit": 0}, "limit"),
        ({"query": "x", "limit": True}, "limit"),
        ({"query": "  "}, "query"),
        ({}, "query"),
        ({"query": "x", "top_k": 5}, "top_k"),
        ({"query": "x", "collection": True}, "collection"),
    ):
        with pytest.raises(InvalidArgument, match=f"^{field}: "):
            dispatch(box, RECALL, given)
    assert ("recall_claims", "invalid_argument") in calls("kb_finance")


def test_whole_claims_are_left_out_to_keep_the_answer_short_and_counted() -> None:
    claim = {"statement": "s", "quote": "q", "text": "word " * 200}
    result = within_budget({"claims": [dict(claim) for _ in range(20)]}, 1000)
    assert tokens(result) <= 1000
    assert len(result["claims"]) + result["omitted"] == 20
    assert within_budget({"claims": [claim]}, 3000) == {"claims": [claim]}


def test_the_passage_of_the_only_claim_left_is_cut_around_its_quote() -> None:
    text = "before " * 3000 + "THE QUOTE" + " after" * 3000
    result = within_budget({"claims": [{"statement": "s", "quote": "THE QUOTE", "text": text}]}, 500)
    (only,) = result["claims"]
    assert "THE QUOTE" in only["text"]
    assert only["text_cut"] is True
    assert tokens(result) <= 520
