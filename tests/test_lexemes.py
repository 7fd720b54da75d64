"""One function for documents and questions: what is one code to a person is one lexeme here."""

import pytest

from agent_server.lexemes import LexicalText, entry_lexemes, fold, label_lexemes, lexical_text, quote_lexeme


@pytest.mark.parametrize("spelling", ["NW-4021", "NW 4021", "NW4021"])
def test_a_codes_spellings_are_one(spelling: str) -> None:
    assert lexical_text(spelling) == LexicalText("NW 4021", ("#nw4021",))
    assert lexical_text(spelling, question=True) == LexicalText("NW 4021", ("#nw4021", "#=nw4021"))


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("§ 1002.9(a)(1)", {"#1002.9", "#1002.9a", "#1002.9a1"}),
        ("1.401(k)-1", {"#1.401", "#1.401k", "#1.401k1"}),
        ("401(k)", {"#401k"}),
        ("401k", {"#401k"}),
        ("ISO-9001", {"#iso9001"}),
        ("CVE-2026-2332", {"#cve2026", "#cve2026-2332"}),
        ("2024-01-31", {"#2024-01", "#2024-01-31"}),
        ("AB-12/34-X", {"#ab12", "#ab12-34", "#ab12-34x"}),
        ("C++, C# and .NET", {"#c++", "#c#", "#.net"}),
        ("user_id", {"#user_id"}),
        ("jane@example.com", {"#jane@example.com"}),
        (
            "https://example.com/docs/setup.html",
            {"#example.com/docs/setup.html", "#example.com", "#setup.html"},
        ),
        ("a long-term plan, and/or 4021 of them", set()),
    ],
)
def test_a_document_holds_an_identifier_whole_and_in_its_beginnings(text: str, forms: set[str]) -> None:
    assert set(lexical_text(text).extras) == forms


def test_a_question_asks_for_the_whole_identifier_and_for_passages_that_bear_its_number() -> None:
    assert lexical_text("1002.9(a)(1)", question=True).extras == ("#1002.9a1", "#=1002.9", "#=1002.9a", "#=1002.9a1")


@pytest.mark.parametrize(
    ("label", "lexemes"),
    [("§ 8.4", ("#=8.4",)), ("Article 17", ("#=article17",)), ("5112.4", ("#=5112.4",)), ("", ()), ("Appendix B", ())],
)
def test_a_passage_bears_its_own_number(label: str, lexemes: tuple[str, ...]) -> None:
    assert label_lexemes(label) == lexemes


@pytest.mark.parametrize(
    ("text", "lexemes"),
    [
        ("| NW-4021 | R | Income too low |", ("#=nw4021", "#=4021")),
        ("| Code | Meaning |\n|---|---|\n| E-19 | Hot |\n| `DVC-418` | Not seen |", ("#=e19", "#=dvc418", "#=418")),
        ("### HV-117\nValuation missing", ("#=hv117", "#=117")),
        ("- **CB 27**: three late payments", ("#=cb27",)),
        ("NW4021 – income too low", ("#=nw4021", "#=4021")),
        ("RC-515   Account closed", ("#=rc515", "#=515")),
        ("NW-4021\n    Income too low", ("#=nw4021", "#=4021")),
        ("# Circular 24-03: More time", ("#=circular24-03",)),
        ("| 24-03 | 2024-04-01 | More time |", ()),
        ("Refused with NW-4021 | see HV-117.", ()),
        ("is named on Form\nTRN-1. The school", ()),
        ("2024-01-31 | a day\n1,100 | an amount\n30 days: a period", ()),
    ],
)
def test_a_code_at_the_start_of_a_row_an_item_or_a_heading_is_an_entry(text: str, lexemes: tuple[str, ...]) -> None:
    assert entry_lexemes(text) == lexemes


def test_a_number_alone_asks_for_the_code_that_it_is_the_number_of_and_in_a_sentence_it_does_not() -> None:
    assert lexical_text(" 4021?", question=True).extras == ("#=4021",)
    assert "#=4021" not in lexical_text("a loan of 4021 dollars", question=True).extras


@pytest.mark.parametrize("question", ["code 4021 meaning", "What does No. 4021 mean?", "is number 4021 a refusal"])
def test_a_number_that_is_called_a_code_asks_for_the_code_that_it_is_the_number_of(question: str) -> None:
    assert "#=4021" in lexical_text(question, question=True).extras
    assert "#=4021" not in lexical_text(question).extras


def test_a_name_with_a_number_is_an_identifier_where_a_capital_says_so() -> None:
    assert set(lexical_text("see Article 17(2) and PEP 604").extras) == {
        "#17-2",
        "#article17",
        "#article17-2",
        "#pep604",
    }
    assert "#article17" in lexical_text("what does article 17 say", question=True).extras


def test_a_question_tries_a_word_with_the_number_behind_it_and_a_document_only_capitals() -> None:
    assert lexical_text("nw 4021", question=True).extras[0] == "#nw4021"
    assert lexical_text("in 2024 the form W 2").extras == ()
    assert lexical_text("form NW 4021").extras == ("#nw4021",)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("thyroid/metabolic panel", "thyroid metabolic panel"),
        ("section 4.2 costs 12.50", "section 4.2 costs 12.50"),
        ("-40 degrees, +5", " 40 degrees,  5"),
        ("e.g. jane@example.com", "e g. jane example com"),
        ("don't", "don't"),
    ],
)
def test_words_are_parted_where_people_part_them(text: str, words: str) -> None:
    assert lexical_text(text).words == words


@pytest.mark.parametrize(
    ("text", "folded"),
    [
        ("cafe\u0301", "cafe"),
        ("café", "cafe"),
        ("po\u00adlicy", "policy"),
        ("e\ufb03cient", "efficient"),
        ("zero\u200bwidth", "zerowidth"),
        ("Ελλάδα", "Ελλαδα"),
        ("Größe", "Große"),
        ("हिन्दी", "हिन्दी"),
    ],
)
def test_accents_and_invisible_characters_are_folded_where_they_do_not_tell_words_apart(text: str, folded: str) -> None:
    assert fold(text) == folded


def test_scripts_without_spaces_become_bigrams() -> None:
    assert lexical_text("使用Docker部署").extras == ("~使用", "~部署")
    assert lexical_text("使用Docker部署").words.split() == ["Docker"]
    assert lexical_text("测").extras == ("~测",)


def test_extras_carry_their_frequency_into_the_tsvector() -> None:
    assert lexical_text("NW-4021, NW-4021 and NW-4022").extras_tsvector == "'#nw4021':1,2 '#nw4022':3"


def test_a_quoted_lexeme_holds_no_operator() -> None:
    assert quote_lexeme("it's \\ & |") == "'it''s \\\\ & |'"


def test_very_long_identifiers_and_many_repeats_stay_within_postgres_limits() -> None:
    text = lexical_text("x_" + "y" * 5000 + " " + "NW-4021 " * 1000)
    assert max(map(len, text.extras)) <= 121
    positions = text.extras_tsvector.split(":")[-1].split(",")
    assert len(positions) <= 255
