"""The reranker orders the best of the fused list anew; whatever goes wrong leaves that list as it is."""

import threading
from collections.abc import Iterator
from typing import Any

import pytest

from agent_server.catalog import get_collection
from agent_server.db import Database
from agent_server.models import SearchResult
from agent_server.retrieval import trace
from agent_server.retrieval.candidates import RERANK_DEPTH, Reranker, SearchOptions
from agent_server.retrieval.explain import explain
from agent_server.retrieval.replay import replay
from agent_server.retrieval.rerank import RerankFailed, ask, scores_of
from agent_server.retrieval.search import search
from tests.conftest import Builder
from tests.corpus import File, fill
from tests.hash_embedder import HashEmbedder
from tests.rerank_double import RerankDouble, rerank_double

PASSAGES = 40
QUESTION = "harbor loan"


def _harbor(database: Database) -> None:
    passages = [f"The harbor loan number w{n} of the year. " + "harbor loan " * (PASSAGES - n) for n in range(PASSAGES)]
    fill(database, "HARBOR", [File(f"p{n:02}.txt", (text,)) for n, text in enumerate(passages)])


@pytest.fixture(scope="module")
def stock() -> Builder:
    return _harbor


@pytest.fixture
def double() -> Iterator[RerankDouble]:
    with rerank_double() as made:
        yield made


def _search(database: Database, reranker: Reranker | None, **options: Any) -> SearchResult:
    asked = SearchOptions(**{"top_k": 5, "fusion": "lexical", **options}, reranker=reranker)
    return search(database, "HARBOR", QUESTION, None, asked)


def _names(result: SearchResult) -> list[str]:
    return [p.source.removesuffix(".txt") for p in result.passages]


def test_the_best_of_the_fused_list_are_shown_in_the_rerankers_order(database: Database, double: RerankDouble) -> None:
    fused = _names(_search(database, None, top_k=RERANK_DEPTH))
    double.favours = f"w{int(fused[-1][1:])} "
    found = _search(database, Reranker(double.url, "tiny"))
    assert found.degraded == ()
    # Those of equal scores stay in their order; the words' first hit is an anchor and would be kept anyway.
    assert _names(found) == [fused[-1], *fused[:4]]
    assert found.timings_ms["rerank"] > 0
    (asked,) = double.seen
    assert double.paths == ["/v1/rerank"]
    assert (asked["model"], asked["query"], asked["top_n"]) == ("tiny", QUESTION, RERANK_DEPTH)
    assert len(asked["documents"]) == RERANK_DEPTH
    assert "harbor loan number" in asked["documents"][0]


def test_without_a_reranker_or_with_it_turned_off_nobody_is_asked(database: Database, double: RerankDouble) -> None:
    double.favours = "w9 "
    fused = _names(_search(database, None))
    off = _search(database, Reranker(double.url), rerank=False)
    assert _names(off) == fused
    assert (off.degraded, double.seen) == ((), [])
    assert "rerank" not in off.timings_ms


@pytest.mark.parametrize(
    "answer",
    [
        lambda r: {"results": r},
        lambda r: [{"index": x["index"], "score": x["relevance_score"]} for x in r],
        lambda r: {"model": "m", "results": [{**x, "document": {"text": "t"}} for x in reversed(r)]},
    ],
)
def test_each_shape_of_an_answer_is_read(double: RerankDouble, answer: Any) -> None:
    double.answer, double.favours = answer, "b"
    assert ask(Reranker(double.url), "q", ["a", "b", "c"]) == [0.0, 1.0, 0.0]
    assert ask(Reranker(f"{double.url}/"), "q", ["b"]) == [1.0]


@pytest.mark.parametrize(
    ("answer", "fault"),
    [
        ({"results": [{"index": 0, "relevance_score": 1.0}]}, "scored 1 of 2"),
        ([{"index": 0, "score": 1}, {"index": 0, "score": 2}], "document 0 twice"),
        ([{"index": 0, "score": 1}, {"index": 2, "score": 2}], "document 2 and there are 2"),
        ([{"index": -1, "score": 1}], "document -1"),
        ([{"index": 0, "score": float("nan")}], "score nan"),
        ([{"index": 0, "score": float("inf")}], "score inf"),
        ([{"index": 0, "score": "high"}], "not an index with a score"),
        ([{"index": True, "score": 1.0}], "not an index with a score"),
        ([{"index": "0", "score": 1.0}], "not an index with a score"),
        (["a"], "not an index with a score"),
        ({"error": "no such model"}, "no list of results"),
        ("text", "no list of results"),
        (None, "no list of results"),
    ],
)
def test_an_answer_without_one_finite_score_for_each_passage_is_refused(answer: Any, fault: str) -> None:
    with pytest.raises(RerankFailed, match=fault):
        scores_of(answer, 2)


def _late(double: RerankDouble) -> None:
    double.hold = threading.Event()


def _dripping(double: RerankDouble) -> None:
    double.hold, double.drops = threading.Event(), True


def _not_found(double: RerankDouble) -> None:
    double.status, double.answer = 404, lambda _: b"no such path"


def _no_json(double: RerankDouble) -> None:
    double.answer = lambda _: b"<html>proxy</html>"


def _one_short(double: RerankDouble) -> None:
    double.answer = lambda results: results[1:]


def _endless(double: RerankDouble) -> None:
    double.answer = lambda _: b" " * 1_100_000


@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (_late, "did not answer within 0.2 s"),
        (_dripping, "did not answer within 0.2 s"),
        (_not_found, "answered 404: no such path"),
        (_no_json, "no JSON"),
        (_one_short, f"scored {RERANK_DEPTH - 1} of {RERANK_DEPTH}"),
        (_endless, "more than 1000000 bytes"),
    ],
)
def test_a_reranker_that_fails_leaves_the_fused_order_and_is_named(
    database: Database, double: RerankDouble, fault: Any, reason: str
) -> None:
    fault(double)
    timeout_s = 0.2 if double.hold else 5.0
    found = _search(database, Reranker(double.url, timeout_s=timeout_s))
    assert _names(found) == _names(_search(database, None))
    assert [d.arm for d in found.degraded] == ["rerank"]
    assert reason in found.degraded[0].reason


@pytest.mark.parametrize("url", ["http://127.0.0.1:9", "http://bad host:1", "http://[::1"])
def test_a_reranker_that_is_not_there_is_named(database: Database, url: str) -> None:
    found = _search(database, Reranker(url))
    assert [d.arm for d in found.degraded] == ["rerank"]
    assert len(found.passages) == 5


def test_a_trace_records_the_reranker_and_a_replay_asks_it_again(database: Database, double: RerankDouble) -> None:
    double.favours = "w7 "
    reranker = Reranker(double.url, "tiny")
    found = _search(database, reranker)
    with database.owner() as connection:
        schema = get_collection(connection, "HARBOR").schema_name
    row = trace.get_trace(database, schema, found.trace_id)
    assert (row["request"]["rerank"], row["request"]["reranker"]) == (True, "tiny")
    assert row["candidates"]["reranked"] == RERANK_DEPTH
    again = replay(database, "HARBOR", schema, row, None, SearchOptions(reranker=reranker))
    assert not again.is_changed
    without = replay(database, "HARBOR", schema, row, None)
    assert "reranked" in {c.name for c in without.candidates}
    plain = _search(database, None)
    row = trace.get_trace(database, schema, plain.trace_id)
    assert row["request"]["rerank"] is False
    assert "reranker" not in row["request"]


def test_an_explanation_tells_the_places_that_the_search_shows(database: Database, double: RerankDouble) -> None:
    double.favours = "w7 "
    options = SearchOptions(top_k=3, fusion="lexical", reranker=Reranker(double.url))
    told = explain(database, "HARBOR", QUESTION, None, options)
    assert [p.chunk_id for p in told.shown] == [
        p.chunk_id for p in _search(database, options.reranker, top_k=3).passages
    ]
    assert [p.rank for p in told.passages[:3]] == [1, 2, 3]


def test_both_arms_and_the_reranker_work_together(database: Database, double: RerankDouble) -> None:
    double.favours = "w7 "
    options = SearchOptions(top_k=5, reranker=Reranker(double.url))
    found = search(database, "HARBOR", QUESTION, HashEmbedder(), options)
    assert found.passages[0].source == "p07.txt"
