"""Answers of tools stay under a budget of tokens."""

from typing import Any

import pytest

from agent_server.tools import BUDGET_TOKENS, knowledge_base
from agent_server.tools.knowledge_base import tokens, within_budget


def _passage(n: int, text: str) -> dict[str, Any]:
    return {"chunk_id": f"a.md::{n}", "title": "A", "context": "A > B", "heading": ["B"], "text": text}


def _last(passages: list[dict[str, Any]]) -> int:
    return len(passages) - 1


def test_what_fits_is_left_as_it_is() -> None:
    result = {"passages": [_passage(n, "x" * 100) for n in range(3)], "trace_id": "t"}
    assert within_budget(result, 3000, _last) == result


def test_whole_passages_go_from_the_end_and_are_counted() -> None:
    result = {"passages": [_passage(n, "word " * 100) for n in range(20)]}
    out = within_budget(result, 1000, _last)
    kept = len(out["passages"])
    assert tokens(out) <= 1000
    assert [p["chunk_id"] for p in out["passages"]] == [f"a.md::{n}" for n in range(kept)]
    assert out["omitted"] == 20 - kept > 0
    assert all(p["text"] == "word " * 100 for p in out["passages"])
    assert "get_passage" in out["note"]


def test_the_first_passage_is_always_there_and_cut_at_a_marked_ellipsis() -> None:
    result = {"passages": [_passage(0, "word " * 10_000), _passage(1, "x")]}
    out = within_budget(result, 500, _last)
    (only,) = out["passages"]
    assert tokens(out) <= 510
    assert only["text"].startswith("word word")
    assert only["text"].endswith(" …")
    assert only["text_cut"] is True
    assert out["omitted"] == 1


def test_the_given_result_is_not_changed() -> None:
    passage = _passage(0, "word " * 10_000)
    within_budget({"passages": [passage]}, 500, _last)
    assert "text_cut" not in passage


def test_headings_and_titles_without_end_do_not_fill_the_answer() -> None:
    passage = _passage(0, "short") | {"title": "t" * 100_000, "context": "c" * 100_000, "heading": ["h" * 100_000]}
    out = within_budget({"passages": [passage]}, 1000, _last)
    assert tokens(out) <= 1000
    assert out["passages"][0]["text"] == "short"


def test_an_empty_answer_stays_empty() -> None:
    assert within_budget({"passages": []}, 10, _last) == {"passages": []}


@pytest.mark.parametrize(("text", "expected"), [("abcd", 2), ("漢字漢字", 5), ("", 1)])
def test_tokens_are_four_characters_or_one_ideograph(text: str, expected: int) -> None:
    assert tokens(text) == expected


def test_a_default_search_of_default_passages_fits_the_default_budget() -> None:
    full = _passage(0, "x" * 800) | dict.fromkeys(("source", "page", "score", "dense_rank", "lexical_rank"), 12345)
    result = {"passages": [full] * knowledge_base.DEFAULT_TOP_K}
    assert "omitted" not in within_budget(result, BUDGET_TOKENS, _last)
