"""References in prose are read as a reader reads them, and in linear time."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightly.references.grammar import references
from nightly.references.markup import code_spans, pointers
from tests.nightly.books import book
from tests.nightly.timing import assert_linear

#: Words, and for each reference in them "what is named", with "of ..." where it says whose, "~" for a range's member.
TABLE = [
    ("see section 4.2.", ["§ 4.2"]),
    ("under § 31.9(a)(1),", ["§ 31.9(a)(1)"]),
    ("§§ 31.9(a)(1) and (2)(i) of this part", ["§ 31.9(a)(1) of part", "§ 31.9(a)(2)(i) of part"]),
    ("paragraph (c)(2) of this section", ["Paragraph (c)(2) of section"]),
    ("paragraphs (a) through (c)", ["Paragraph (a)", "~Paragraph (b)", "Paragraph (c)"]),
    ("§§ 31.3(a)-(d)", ["§ 31.3(a)", "~§ 31.3(b)", "~§ 31.3(c)", "§ 31.3(d)"]),
    ("§ 31.2(p)(1)(i) through (iv)",
     ["§ 31.2(p)(1)(i)", "~§ 31.2(p)(1)(ii)", "~§ 31.2(p)(1)(iii)", "§ 31.2(p)(1)(iv)"]),
    ("§ 31.4(a)(4), (a)(10)(iii), and (a)(23), (29), or (30)",
     ["§ 31.4(a)(4)", "§ 31.4(a)(10)(iii)", "§ 31.4(a)(23)", "§ 31.4(a)(29)", "§ 31.4(a)(30)"]),
    ("this paragraph (a)(7)(i), (ii), and (iii)",
     ["Paragraph (a)(7)(i)", "Paragraph (a)(7)(ii)", "Paragraph (a)(7)(iii)"]),
    ("Article 6(1), point (f)", ["Article 6(1), Point (f)"]),
    ("point (c) or (e) of Article 6(1)", ["Article 6(1), Point (c)", "Article 6(1), Point (e)"]),
    ("the second subparagraph of Article 49(1)", ["Article 49(1)"]),
    ("point (g) of the first subparagraph of paragraph 1", ["Paragraph 1, Point (g)"]),
    ("Article 46 or 47, or the", ["Article 46", "Article 47"]),
    ("Articles 12 to 15", ["Article 12", "~Article 13", "~Article 14", "Article 15"]),
    ("paragraphs 1 and 2 of this Article", ["Paragraph 1 of article", "Paragraph 2 of article"]),
    ("paragraph 2 of that Article", ["Paragraph 2 of that"]),
    ("Appendix B to this part", ["Appendix B of part"]),
    ("Appendix A, Part I, Paragraph D", ["Appendix A, Part I, Paragraph D"]),
    ("section E of Appendix A", ["Appendix A, § E"]),
    ("Part I.E. of this appendix", ["Part I.E of appendix"]),
    ("comment 2(c)-1", ["Comment 2(c), Entry (1)"]),
    ("comments 4(a)-2 through -4", ["Comment 4(a), Entry (2)", "~Comment 4(a), Entry (3)", "Comment 4(a), Entry (4)"]),
    ("comments 2(d)-2.i and .ii", ["Comment 2(d), Entry (2)(i)", "Comment 2(d), Entry (2)(ii)"]),
    ("PEP 8", ["PEP 8"]),
    ("PEPs 8, 20, and 257", ["PEP 8", "PEP 20", "PEP 257"]),
    ("RFC 2119, section 3", ["RFC 2119 § 3"]),
    ("section 3 of RFC 2119", ["RFC 2119 § 3"]),
    ("clause 2.14", ["Clause 2.14"]),
    ("Forms C-1 through C-3", ["Form C-1", "~Form C-2", "Form C-3"]),
    ("12 CFR 31.4(b)", ["12 CFR 31 § 31.4(b)"]),
    ("12 CFR part 31", ["12 CFR 31"]),
    ("section 7 of the Barge Act", ["Barge Act § 7"]),
    ("§ 31.9(c) of Regulation Q", ["Regulation Q § 31.9(c)"]),
    ("Article 6 of Directive 95/46/EC", ["Directive 95/46/EC Article 6"]),
    ("Article 263 TFEU", ["TFEU Article 263"]),
    ("Policy 4410 section 2", ["Policy 4410, § 2"]),
    ("section 4(c) of Regulation HB-220", ["Regulation HB-220 § 4(c)"]),
    ("section 5 of that regulation", ["§ 5 of that document"]),
    ("section 8.1 of the rulebook", ["rulebook § 8.1"]),
    ("part 6 of the fee schedule", ["fee schedule Part 6"]),
    ("section 5.8 of the Boat Rules and in the Raft Rules", ["Boat Rules § 5.8"]),
    ("the table above", ["Table above"]),
    ("Table 3", ["Table 3"]),
    # what only looks like one
    ("in part I think so", []),
    ("Part of the fee", []),
    ("article five", []),
    ("a section on fees", []),
    ("§ 31.4 or 5 loans", ["§ 31.4"]),
    ("paragraph 1 costs $2,000 or 3.5%", ["Paragraph 1"]),
    ("section 12%", []),
    ("subject to regulation is good", []),
    ("under this policy. A boat is", []),
]  # fmt: skip


def _said(text: str) -> list[str]:
    return [("~" if r.member else "") + r.label + (f" of {r.within}" if r.within else "") for r in references(text)]


@pytest.mark.parametrize(("text", "expected"), TABLE)
def test_a_reference_names_what_a_reader_takes_from_it(text: str, expected: list[str]) -> None:
    assert _said(text) == expected
    # Nothing else comes of it in the middle of a sentence.
    assert _said(f"As is said in {text} and elsewhere.")[: len(expected)] == expected


@pytest.mark.parametrize("text", ["section\n4.2", "section\u00a04.2", "§\u2009 31.4", "Article\n   6(1)"])
def test_a_line_may_end_within_a_reference(text: str) -> None:
    assert len(_said(text)) == 1


def test_a_blank_line_ends_a_reference() -> None:
    assert _said("paragraph\n\n(a) Other") == []
    assert _said("see section 4.2 and\n\n4.3 Fees") == ["§ 4.2"]


def test_the_words_of_a_reference_are_those_that_name_it() -> None:
    text = "as §§ 31.9(a)(1) and (2)(i) say, and point (a) of Article 6(1)"
    assert [text[r.start : r.end] for r in references(text)] == ["§§ 31.9(a)(1)", "(2)(i)", "point (a) of Article 6(1)"]


def test_a_range_too_long_to_be_meant_member_by_member_has_its_ends_only() -> None:
    assert _said("sections 1 to 500") == ["§ 1", "§ 500"]


WORDS = [
    "section ", "§", "§§ ", "4.2", "(a)", "(1)", "(ii)", " and ", ", ", " through ", "of ", "this ", "paragraph ",
    "Article ", "6", "comment ", "-2", "PEP ", "12 CFR ", "Appendix ", "A", "\n", "\n\n", ".", "the ", "Act", "`", "[", "]",
]  # fmt: skip


@settings(max_examples=300, deadline=None)
@given(st.lists(st.sampled_from(WORDS), max_size=60).map("".join))
def test_references_of_any_text_are_in_order_within_it_and_not_blank(text: str) -> None:
    found = list(references(text))
    for ref in found:
        assert 0 <= ref.start < ref.end <= len(text)
        assert text[ref.start : ref.end].strip() == text[ref.start : ref.end]
        assert "\n\n" not in text[ref.start : ref.end]
    assert [r.start for r in found if not r.member] == sorted(r.start for r in found if not r.member)


HOSTILE = [
    "section ", "§§ 1(a)", "§ 1, ", "(a)", "(a)(1) and ", "paragraph (a) of ", "of this section ", "Article 1(1), point ",
    "PEPs 1, ", "comment 1-1, ", "12 CFR ", "The Big Act of ", "of the ", " ", "1.1.", "-", "`", "[a](b) ", "[", "_",
    ":pep:`", "first subparagraph of ", "Regulation ", "\u00a0", "through ", "| a | ", "the table above ",
]  # fmt: skip


@pytest.mark.parametrize("piece", HOSTILE)
def test_time_grows_with_the_text_and_not_with_its_square(piece: str) -> None:
    def seconds(size: int) -> float:
        text = piece * (size // len(piece))
        started = time.process_time()
        list(references(text))
        code_spans(text)
        return time.process_time() - started

    assert_linear(seconds, 15_000)


@pytest.mark.parametrize("source", ["a.md", "a.rst"])
@pytest.mark.parametrize(
    "piece", ["[a](b) ", "[[", "`a`_ ", "`a <b", ":ref:`", "a_ ", ".. _a:\n", "`", "<a id='x'>", "{#a}\n"]
)
def test_links_of_any_text_are_found_in_linear_time(piece: str, source: str) -> None:
    def seconds(size: int) -> float:
        made = book(piece * (size // len(piece)) + "x", source)
        started = time.process_time()
        pointers(made.manuscript)
        assert isinstance(made.spots, dict)
        return time.process_time() - started

    assert_linear(seconds, 8_000)
