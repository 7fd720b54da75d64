"""Tool calls against a real collection."""

import json
import tempfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.errors import InvalidArgument, UnknownCollection, UnknownPassage
from agent_server.ingest.pipeline import ingest
from agent_server.settings import Settings
from agent_server.tools import Toolbox, UnknownTool, dispatch, schemas
from agent_server.tools.knowledge_base import SHOWN_COPIES, tokens
from tests.conftest import Builder
from tests.hash_embedder import HashEmbedder

SEARCH, GET = "search_knowledge_base", "get_passage"


def _long_document() -> str:
    paragraphs = (
        f"Section {n} says that clause {n} of the lending rule holds for member {n}. " * 4 for n in range(1, 15)
    )
    return "# Lending\n\n" + "\n\n".join(paragraphs)


def _papers(database: Database) -> None:
    embedder = HashEmbedder()
    for name in ("FINANCE", "SECRET"):
        create_collection(database, name, embedder.identity(), description=f"papers of {name}")
    with tempfile.TemporaryDirectory() as home:
        folder = Path(home)
        (folder / "lending.md").write_text(_long_document())
        (folder / "codes.md").write_text("# Codes\n\nNW-4021 means that the income is too low for the loan.\n")
        copy = "# Codes\n\nHV-117 means that the valuation is too old for the loan.\n"
        for n in range(8):
            (folder / f"copy{n}.md").write_text(copy)
        ingest(database, "FINANCE", [folder], embedder)


@pytest.fixture(scope="session")
def stock() -> Builder:
    return _papers


@pytest.fixture
def box(database: Database, settings: Settings, hash_embedder: HashEmbedder) -> Toolbox:
    return Toolbox(database, hash_embedder, settings)


@pytest.fixture
def calls(database: Database) -> Callable[[], list[tuple[Any, ...]]]:
    def read() -> list[tuple[Any, ...]]:
        with database.owner("kb_finance") as connection:
            return connection.execute(
                "SELECT tool, arguments, outcome, trace_id FROM tool_calls ORDER BY id"
            ).fetchall()

    return read


def test_a_search_answers_with_the_contract(box: Toolbox) -> None:
    result = dispatch(box, SEARCH, {"collection": "FINANCE", "query": "what does NW-4021 mean?"})
    assert result["passages"][0]["chunk_id"].startswith("codes.md::")
    assert {"query", "collection", "passages", "support", "answerable", "diagnostic", "degraded", "trace_id"} <= set(
        result
    )
    assert json.loads(json.dumps(result)) == result


def test_a_collection_is_found_ignoring_case_and_blanks_around_it(box: Toolbox) -> None:
    for name in ("finance", " FINANCE ", "Finance\n"):
        assert dispatch(box, SEARCH, {"collection": name, "query": "loan"})["collection"] == "FINANCE"


def test_an_unknown_collection_is_refused_with_the_names_there_are(box: Toolbox) -> None:
    for name in ("nope", "", " kb ", "KB", "kb; drop table x", "FINANCE'--", "\0", "\ud800", "x" * 10_000):
        with pytest.raises(UnknownCollection) as caught:
            dispatch(box, SEARCH, {"collection": name, "query": "loan"})
        assert caught.value.details["known"] == ["FINANCE", "SECRET"]
        assert len(caught.value.message) < 150


def test_what_is_not_allowed_reads_like_what_is_not_there(box: Toolbox) -> None:
    scoped = replace(box, allowed=frozenset({"finance"}))
    told = []
    for name in ("SECRET", "ABSENT"):
        with pytest.raises(UnknownCollection) as caught:
            dispatch(scoped, SEARCH, {"collection": name, "query": "loan"})
        told.append(json.dumps(caught.value.to_json()).replace(name, "NAME"))
    assert told[0] == told[1]
    assert [s["function"]["parameters"]["properties"]["collection"]["enum"] for s in schemas(scoped)] == [
        ["FINANCE"]
    ] * 3
    assert "SECRET" not in json.dumps(schemas(scoped))


def test_a_top_k_that_cannot_be_used_is_refused_and_logged(
    box: Toolbox, calls: Callable[[], list[tuple[Any, ...]]]
) -> None:
    bad = [True, "", 5.5, None, float("nan"), 0, -1, 1e9]
    for value in bad:
        with pytest.raises(InvalidArgument, match=r"^top_k: "):
            dispatch(box, SEARCH, {"collection": "FINANCE", "query": "loan", "top_k": value})
    logged = [(tool, outcome, trace) for tool, _, outcome, trace in calls()]
    assert logged == [(SEARCH, "invalid_argument", None)] * len(bad)


def test_arguments_as_json_text_are_read(box: Toolbox) -> None:
    result = dispatch(box, SEARCH, '{"collection": "FINANCE", "query": "loan", "top_k": "2"}')
    assert len(result["passages"]) == 2


def test_a_blank_question_is_refused(box: Toolbox) -> None:
    for query in ("", "   ", "\0"):
        with pytest.raises(InvalidArgument, match=r"^query: "):
            dispatch(box, SEARCH, {"collection": "FINANCE", "query": query})


def test_an_unknown_tool_is_refused_with_the_tools_there_are(box: Toolbox) -> None:
    with pytest.raises(UnknownTool) as caught:
        dispatch(box, "drop_table", {})
    assert caught.value.details["known"] == [SEARCH, GET, "recall_claims"]


def test_an_unknown_argument_is_refused(box: Toolbox) -> None:
    with pytest.raises(InvalidArgument, match="path: is no argument"):
        dispatch(box, SEARCH, {"collection": "FINANCE", "query": "x", "path": "/etc/hostname"})


def test_each_call_is_logged_with_its_trace(box: Toolbox, calls: Callable[[], list[tuple[Any, ...]]]) -> None:
    result = dispatch(box, SEARCH, {"collection": "FINANCE", "query": "loan\0 \ud800"})
    ((tool, given, outcome, trace_id),) = calls()
    assert (tool, outcome, str(trace_id)) == (SEARCH, "ok", result["trace_id"])
    assert given["query"].startswith("loan")


def test_copies_are_cut_to_a_few_and_counted(box: Toolbox) -> None:
    result = dispatch(box, SEARCH, {"collection": "FINANCE", "query": "HV-117 valuation", "top_k": 1})
    (passage,) = result["passages"]
    assert len(passage["also_in"]) == SHOWN_COPIES
    assert passage["also_in_total"] == 7


def test_an_answer_stays_under_the_budget(box: Toolbox) -> None:
    small = replace(box, budget_tokens=700)
    result = dispatch(small, SEARCH, {"collection": "FINANCE", "query": "lending rule clause member", "top_k": 20})
    assert tokens(result) <= 700
    assert result["omitted"] > 0
    assert result["passages"]


def test_a_passage_is_read_with_its_neighbours_in_order(box: Toolbox) -> None:
    result = dispatch(box, GET, {"collection": "FINANCE", "chunk_id": "lending.md::3", "before": "1", "after": 1.0})
    assert [p["chunk_id"] for p in result["passages"]] == ["lending.md::2", "lending.md::3", "lending.md::4"]
    assert "trace_id" not in result


def test_a_document_that_begins_there_has_no_neighbour_before(box: Toolbox) -> None:
    first = dispatch(box, SEARCH, {"collection": "FINANCE", "query": "NW-4021"})["passages"][0]["chunk_id"]
    result = dispatch(box, GET, {"collection": "FINANCE", "chunk_id": first, "before": 10})
    assert result["passages"][-1]["chunk_id"] == first
    assert {p["source"] for p in result["passages"]} == {"codes.md"}


def test_over_the_budget_the_farthest_neighbours_go_first_and_the_passage_stays(box: Toolbox) -> None:
    small = replace(box, budget_tokens=700)
    result = dispatch(small, GET, {"collection": "FINANCE", "chunk_id": "lending.md::4", "before": 3, "after": 3})
    assert "lending.md::4" in [p["chunk_id"] for p in result["passages"]]
    assert result["omitted"] > 0


def test_a_passage_that_is_not_there_is_a_typed_error(box: Toolbox) -> None:
    for chunk_id in ("nope", "lending.md::999", "lending.md", "", "\0", "\ud800", "' OR 1=1 --", "../x::1"):
        with pytest.raises(UnknownPassage):
            dispatch(box, GET, {"collection": "FINANCE", "chunk_id": chunk_id})


def test_neighbours_out_of_bounds_are_refused(box: Toolbox) -> None:
    for field in ("before", "after"):
        for value in (-1, 11, "x"):
            with pytest.raises(InvalidArgument, match=f"^{field}: "):
                dispatch(box, GET, {"collection": "FINANCE", "chunk_id": "lending.md::1", field: value})


def test_one_collection_does_not_show_passages_of_another(box: Toolbox) -> None:
    with pytest.raises(UnknownPassage):
        dispatch(box, GET, {"collection": "SECRET", "chunk_id": "lending.md::1"})
