"""What questions ask for, and the keys that terms are looked up by."""

import pytest

from agent_server.retrieval.intent import read_intent
from agent_server.terms import fold_term

ASKING = [
    ("What does laytime mean?", "laytime"),
    ("What is a term mooring?", "term mooring"),
    ("What does the term laytime mean for a tug?", "laytime"),
    ("what do “Covered Boats” refer to", "covered boat"),
    ("What is meant by a hold on a berth?", "hold"),
    ("What is a guest berth?", "guest berth"),
    ("What's demurrage?", "demurrage"),
    ("Who is an insider?", "insider"),
    ("Who counts as a resident boater?", "resident boater"),
    ("What counts as notice to the harbor office?", "notice"),
    ("define Set-off", "set off"),
    ("Definition of spring tide", "spring tide"),
    ("meaning of slack water", "slack water"),
    ("How is a short stay defined?", "short stay"),
    ("How does the rulebook define a tender?", "tender"),
    ("laytime, definition", "laytime"),
    ("spring tide", "spring tide"),
    ("Laytime", "laytime"),
    ("What does E-19 stand for?", "e 19"),
    ("What does code E-19 on a pump mean?", "e 19"),
    ("What is good standing?", "standing"),
]


@pytest.mark.parametrize(("question", "term"), ASKING, ids=[q for q, _ in ASKING])
def test_a_question_for_a_meaning_is_recognised_with_its_term(question: str, term: str) -> None:
    intent = read_intent(question)
    assert intent.definitional
    assert term in intent.asked


@pytest.mark.parametrize(
    "question",
    [
        "How long may a boat lie at the guest berth?",
        "When must I pay the fee?",
        "Can I bring a dog?",
        "What is the largest boat?",
        "What is the maximum stay?",
        "Which form do I need for a mooring and where do I send it?",
        "My boat was late last night and nobody answered the radio",
        "?!",
        "",
    ],
)
def test_other_questions_ask_for_no_meaning(question: str) -> None:
    assert not read_intent(question).definitional
    assert read_intent(question).asked == ()


def test_what_is_asked_for_comes_before_what_it_may_be_short_for() -> None:
    asked = read_intent("What does guest berth mean for a tug?").asked
    assert asked.index("guest berth") < asked.index("berth")
    assert "tug" not in asked


def test_a_question_uses_the_stretches_of_its_words_longest_first() -> None:
    used = read_intent("May a tug lie at the guest berth in winter?").used
    assert "guest berth" in used
    assert "tug" in used
    assert used.index("guest berth") < used.index("berth")
    assert not {"the guest berth", "at", "the", "may"} & set(used)


def test_a_long_question_gives_a_bounded_number_of_keys() -> None:
    intent = read_intent("What is the " + "harbor master of the northern " * 400 + "?")
    assert len(intent.asked) <= 60
    assert len(intent.used) <= 60


@pytest.mark.parametrize(
    ("written", "key"),
    [
        ("Debt-to-Income Ratios", "debt to income ratio"),
        ("the debt‑to‑income ratio", "debt to income ratio"),
        ("“Parties’”", "party"),
        ("boat's length", "boat length"),
        ("Business", "business"),
        ("Fées", "fee"),
        ("classes", "class"),
        ("C++", "c++"),
        ("C", "c"),
        ("NW-4021", "nw 4021"),
        ("The", "the"),
        ("…", ""),
    ],
)
def test_a_term_has_one_key_however_it_is_written(written: str, key: str) -> None:
    assert fold_term(written) == key


def test_words_that_mean_different_things_keep_different_keys() -> None:
    assert fold_term("applicant") != fold_term("application")
    assert fold_term("C") != fold_term("C++")
