"""Gold files are read strictly; quotes find their passages; rankings are judged by quotes."""

import json
from pathlib import Path
from typing import Any

import pytest

from agent_server.catalog import Collection
from agent_server.db import Database
from agent_server.errors import BadQuestions
from agent_server.evaluation.gold import Label, Question, Shown, Target, find, holds, judge, read_gold, targets
from tests.evaluation.conftest import LATE, QUESTIONS, Write, question

QUOTE = "The valuation of the house may be at most 120 days old on the day of the decision."


def _read(tmp_path: Path, line: str) -> tuple[Question, ...]:
    path = tmp_path / "X.jsonl"
    path.write_text(line, encoding="utf-8")
    return read_gold(path)


def test_a_gold_file_is_read_in_order_with_its_labels(write_gold: Write) -> None:
    cited = {**QUESTIONS[0], "id": "q9", "kind": "cross-reference", "citing": {"source": "a.md", "quote": "see b"}}
    found = read_gold(write_gold([*QUESTIONS, cited]))
    assert [q.id for q in found] == ["q1", "q2", "q3", "q4", "q9"]
    assert found[0].relevant == (Label("rules.md", "costs twelve dollars"),)
    assert found[3].relevant == ()
    assert found[4].citing == Label("a.md", "see b")


GOOD = question("q1", "Why?", ("a.md", "because"))


@pytest.mark.parametrize(
    ("row", "named"),
    [
        ({**GOOD, "kind": "riddle"}, "unknown kind 'riddle'"),
        ({k: v for k, v in GOOD.items() if k != "kind"}, "'kind' is missing"),
        ({k: v for k, v in GOOD.items() if k != "relevant"}, "'relevant' is missing"),
        ({**GOOD, "question": "  "}, "'question' is '  '"),
        ({**GOOD, "id": 7}, "'id' is 7"),
        ({**GOOD, "relevnat": []}, "unknown field 'relevnat'"),
        ({**GOOD, "relevant": []}, "unanswerable"),
        ({**GOOD, "kind": "unanswerable"}, "unanswerable"),
        ({**GOOD, "relevant": ["because"]}, "a label is"),
        ({**GOOD, "relevant": [{"source": "a.md", "quote": ""}]}, "a label is"),
        ({**GOOD, "relevant": [{"source": "a.md"}]}, "a label is"),
        ([GOOD], "expected an object"),
    ],
)
def test_a_faulty_line_is_refused_with_its_number_and_fault(tmp_path: Path, row: Any, named: str) -> None:
    with pytest.raises(BadQuestions, match=r"X\.jsonl:2: .*" + named):
        _read(tmp_path, json.dumps({**GOOD, "id": "q0"}) + "\n" + json.dumps(row))


def test_what_is_no_gold_file_at_all_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadQuestions, match="not JSON"):
        _read(tmp_path, "{")
    with pytest.raises(BadQuestions, match="no questions"):
        _read(tmp_path, "\n")
    with pytest.raises(BadQuestions, match="'q1' stands twice"):
        _read(tmp_path, json.dumps(GOOD) + "\n" + json.dumps(GOOD))
    with pytest.raises(BadQuestions, match="cannot be read"):
        read_gold(tmp_path / "none.jsonl")
    (tmp_path / "latin.jsonl").write_bytes(b"\xe4")
    with pytest.raises(BadQuestions, match="not UTF-8"):
        read_gold(tmp_path / "latin.jsonl")


def test_a_passage_holds_a_quote_whatever_its_line_breaks() -> None:
    assert holds(
        "Note. The valuation of the house\nmay be  at most 120 days old on the day of the decision. So.", QUOTE
    )
    assert not holds("The valuation of the house may be at most 120 days old.", QUOTE)


def test_half_of_a_quotes_words_in_sequence_stand_for_it_where_it_was_cut() -> None:
    words = QUOTE.split()  # 17 words: 9 are half
    assert holds("… " + " ".join(words[:9]), QUOTE, whole=False)
    assert holds(" ".join(words[8:]) + " Then", QUOTE, whole=False)
    assert not holds(" ".join(words[:8]) + " or less", QUOTE, whole=False)
    assert not holds(" ".join([*words[:6], "indeed", *words[6:10]]), QUOTE, whole=False)
    assert not holds("the cap of two", "the cap", whole=False)  # too few words to be no chance
    assert not holds("a within five days b", "ithin five days afte x y z", whole=False)  # whole words only


def test_a_quote_cut_in_two_is_found_in_the_parts_and_a_whole_one_only_where_it_is_whole() -> None:
    words = QUOTE.split()
    parts = [("a::0", " ".join(words[:9])), ("a::1", " ".join(words[8:])), ("a::2", " ".join(words[14:]))]
    label = Label("a", QUOTE)
    assert find(label, parts) == Target(label, frozenset({"a::0", "a::1"}), whole=False)
    assert find(label, [*parts, ("a::3", QUOTE)]) == Target(label, frozenset({"a::3"}), whole=True)
    assert find(label, []).chunk_ids == frozenset()


def test_labels_find_their_live_passages(database: Database, flats: Collection, gold: Path) -> None:
    with database.owner(flats.schema_name) as connection:
        found = targets(connection, read_gold(gold))
    assert [sorted(t.chunk_ids) for t in found["q1"]] == [["rules.md::0"]]
    assert [sorted(t.chunk_ids) for t in found["q2"]] == [["leaflet.md::0"]]
    assert found["q4"] == ()


@pytest.mark.parametrize(
    ("source", "quote", "said"),
    [
        ("rules.md", "costs thirteen dollars", "q1: 'costs thirteen dollars' in rules.md"),
        ("old.md", "Pets are forbidden in every flat.", "old.md"),  # retired
        ("none.md", "costs twelve dollars", "not in the collection"),
    ],
)
def test_a_quote_that_stands_in_no_live_passage_is_an_error(
    database: Database, flats: Collection, write_gold: Write, source: str, quote: str, said: str
) -> None:
    questions = read_gold(write_gold([question("q1", "?", (source, quote))]))
    with database.owner(flats.schema_name) as connection, pytest.raises(BadQuestions, match=said):
        targets(connection, questions)


def test_a_citing_quote_must_stand_too(database: Database, flats: Collection, write_gold: Write) -> None:
    row = {**QUESTIONS[0], "citing": {"source": "rules.md", "quote": "see nowhere"}}
    with database.owner(flats.schema_name) as connection, pytest.raises(BadQuestions, match="see nowhere"):
        targets(connection, read_gold(write_gold([row])))


def _target(quote: str, *chunk_ids: str) -> Target:
    return Target(Label("s", quote), frozenset(chunk_ids), whole=True)


def test_results_are_judged_by_the_labels_that_they_show_first() -> None:
    wanted = [_target("one", "a::1", "a::2"), _target("two", "b::1")]
    found = judge([Shown("x::1", ""), Shown("a::2", ""), Shown("a::1", ""), Shown("b::1", "")], wanted)
    assert found.found == (0, 1, 0, 1)  # the overlapping passage shows nothing new
    assert (found.total, found.ideal) == (2, (1.0, 1.0))


def test_a_passage_that_shows_two_labels_is_the_ideal_first_result() -> None:
    wanted = [_target("one", "a::1"), _target("two", "a::1", "a::2"), _target("three", "b::1")]
    assert judge([Shown("a::1", "")], wanted).found == (2,)
    assert judge([], wanted).ideal == (2.0, 1.0)


def test_a_copy_counts_where_the_shown_text_holds_the_quote() -> None:
    wanted = [_target("costs twelve dollars", "rules.md::0")]
    copy = Shown("leaflet.md::1", LATE, ("rules.md::0",))
    assert judge([copy], wanted).found == (1,)
    near = Shown("leaflet.md::1", "It costs something.", ("rules.md::0",))  # near copies share a part only
    assert judge([near], wanted).found == (0,)
    assert judge([Shown("leaflet.md::1", LATE)], wanted).found == (0,)  # another source says it too
