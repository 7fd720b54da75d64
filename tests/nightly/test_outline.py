"""Numbers of headings and paragraphs become the tree that a reader sees."""

import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from nightly.references.numbering import Label, heading_label, roman
from nightly.references.places import Place
from tests.nightly.books import book
from tests.nightly.timing import assert_linear


def tree(text: str, source: str = "rules.md") -> list[str]:
    """All places as paths: "§4/a/1"."""
    out: list[str] = []

    def walk(place: Place, path: str) -> None:
        for child in place.children:
            own = f"{path}/{child.word}{' ' if child.word else ''}{child.number}".lstrip("/")
            out.append(own)
            walk(child, own)

    walk(book(text, source).outline.root, "")
    return out


def paragraphs(*lines: str) -> str:
    return "# § 7.1 Fees\n\n" + "\n\n".join(lines)


@pytest.mark.parametrize(
    ("title", "label"),
    [
        ("§ 12.4 Late fees", Label("section", "12.4")),
        ("Section 12.4—Late fees", Label("section", "12.4")),
        ("4.2 Late fees", Label("", "4.2")),
        ("4. Fees", Label("", "4")),
        ("Article 6 - Lawfulness", Label("article", "6")),
        ("Appendix B to Part 12", Label("appendix", "b")),
        ("2(b) Application", Label("", "2", ("b",))),
        ("Paragraph 2(c)(1)", Label("", "2", ("c", "1"))),
        ("(a)(1) Opening", Label("", "", ("a", "1"))),
        ("B-1—Model clauses", Label("", "b-1")),
        ("Form C-1—Sample", Label("form", "c-1")),
        ("I. Instructions", Label("", "i")),
        ("Definitions", None),
    ],
)
def test_a_heading_is_read_as_its_number(title: str, label: Label | None) -> None:
    assert heading_label(title) == label


def test_roman_numerals_have_their_values() -> None:
    assert [roman(n) for n in ["i", "iv", "v", "ix", "x", "xiv", "xix", "xl", "l", "iix", "abc"]] == [
        1,
        4,
        5,
        9,
        10,
        14,
        19,
        40,
        50,
        0,
        0,
    ]


def test_paragraphs_lie_in_one_another_as_their_signs_say() -> None:
    text = paragraphs("(a) One:", "(1) Two:", "(i) Three", "(ii) Four", "(2) Five", "(b) Six")
    base = "section 7.1"
    assert tree(text) == [
        base,
        f"{base}/a",
        f"{base}/a/1",
        f"{base}/a/1/i",
        f"{base}/a/1/ii",
        f"{base}/a/2",
        f"{base}/b",
    ]


def test_the_letter_i_and_the_numeral_i_are_told_apart_by_what_follows() -> None:
    letters = [f"({c}) Term {c}" for c in "abcdefghi"]
    base = "section 7.1"
    assert tree(paragraphs(*letters, "(j) Term j"))[-2:] == [f"{base}/i", f"{base}/j"]
    assert tree(paragraphs(*letters[:-1], "(i) first", "(ii) second"))[-2:] == [f"{base}/h/i", f"{base}/h/ii"]
    both = [*letters, "(1) one:", "(i) x", "(ii) y", "(j) Term j"]
    assert tree(paragraphs(*both))[-4:] == [f"{base}/i/1", f"{base}/i/1/i", f"{base}/i/1/ii", f"{base}/j"]


def test_a_sign_used_again_below_an_announcement_is_a_deeper_list() -> None:
    text = paragraphs(
        "(a) Any:", "(1) one", "(2) two:", "(i) x", "(A) Required to:", "(1) open", "(2) keep", "(B) Other"
    )
    base = "section 7.1/a/2/i"
    assert tree(text)[-4:] == [f"{base}/A", f"{base}/A/1", f"{base}/A/2", f"{base}/B"]


def test_a_list_within_a_sentence_has_places_and_a_reference_in_it_has_none() -> None:
    text = paragraphs("(1) The fee is due: (a) at once, where paragraphs (b) and (c) say so; (b) later; or (c) never.")
    base = "section 7.1/1"
    assert tree(text) == ["section 7.1", base, f"{base}/a", f"{base}/b", f"{base}/c"]


def test_compound_signs_name_each_level_and_repeat_it() -> None:
    text = paragraphs("(a)(1) One", "(2) Two", "(b)(1) Three", "(b)(2) Four")
    base = "section 7.1"
    assert tree(text) == [base, f"{base}/a", f"{base}/a/1", f"{base}/a/2", f"{base}/b", f"{base}/b/1", f"{base}/b/2"]


def test_clauses_with_dotted_numbers_lie_in_their_section() -> None:
    text = "# 2 Loans\n\n2.1 The Lender lends.\n\n2.2 The Borrower pays:\n\n(a) on time;\n\n(b) in full.\n\n# 3 Fees\n\n3.1 None."
    assert tree(text) == ["2", "2/2.1", "2/2.2", "2/2.2/a", "2/2.2/b", "3", "3/3.1"]


def test_appendices_stand_beside_the_sections_and_number_anew() -> None:
    text = "# Part 7\n\n## § 7.1 Fees\n\n(a) One\n\n## Appendix A\n\n### I. Forms\n\n1. First\n\n### II. Tables\n\n1. Other"
    assert tree(text) == [
        "part 7", "part 7/section 7.1", "part 7/section 7.1/a",
        "appendix a", "appendix a/i", "appendix a/i/1", "appendix a/ii", "appendix a/ii/1",
    ]  # fmt: skip


def test_where_all_headings_are_alike_the_order_of_numbers_tells_what_lies_in_what() -> None:
    text = "## § 7.1 Fees\n\n(a) One\n\n## In general.\n\n(1) Two\n\n## Exceptions.\n\n(b) Three\n\n## § 7.2 Other\n\n(a) Four"
    assert tree(text) == [
        "section 7.1", "section 7.1/a", "section 7.1/a/1", "section 7.1/b", "section 7.2", "section 7.2/a",
    ]  # fmt: skip


def test_sections_that_lost_their_number_get_it_back_where_the_count_leaves_no_doubt() -> None:
    lost = "## § 7.1 Scope\n\n(a) One\n\n(b) Two\n\n## Definitions.\n\n(a) Term\n\n## Exempt.\n\n(a) Who\n\n## § 7.4 Duties\n\n(a) All"
    assert [p for p in tree(lost) if "/" not in p] == ["section 7.1", "section 7.2", "section 7.3", "section 7.4"]
    doubtful = lost.replace("§ 7.4", "§ 7.5")
    assert [p.strip() for p in tree(doubtful) if "/" not in p] == ["section 7.1", "section", "section", "section 7.5"]


def test_numbers_in_fences_are_no_places() -> None:
    assert tree("# § 7.1 Fees\n\n```\n(a) code\n1. more\n```\n\n(a) text") == ["section 7.1", "section 7.1/a"]


def test_every_place_lies_within_the_place_that_holds_it() -> None:
    outline = book(paragraphs("(a) One:", "(1) Two", "(b) Three: (i) x; (ii) y.", "(c) Four")).outline
    for place in outline.places[1:]:
        assert place.parent is not None
        assert place.parent.start <= place.start <= place.body <= place.end <= place.parent.end
        assert outline.at(place.start) is place


LINES = ["## § 1.1 A", "## § 1.2 B", "# C", "### Appendix A", "## 2(a) D", "(a) x", "(b) y:", "(1) z", "(i) w", "1. q", "1.1 Text",
         "Table 1. T", "text: (a) one; (b) two", "```", "IV. r", "## I. S", "## A. T", "(a)(1) u"]  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(st.lists(st.sampled_from(LINES), min_size=1, max_size=30))
def test_any_order_of_signs_makes_a_tree(lines: list[str]) -> None:
    outline = book("\n\n".join(lines)).outline
    for place in outline.places[1:]:
        assert place.parent is not None and place in place.parent.children
        assert place.start <= place.end <= len(outline.manuscript.text)
    assert [p.start for p in outline.places] == sorted(p.start for p in outline.places)


@pytest.mark.parametrize("piece", ["(a) x\n\n", "1. x\n\n", "## § 1.1 x\n\n", "1.1 Text\n\n", "(i) x\n\n", "## x\n\n(a) y\n\n",
                                   "a: (a) x; ", "(a)(1)(i) ", "## 2(a) x\n\n", "## Appendix A\n\n"])  # fmt: skip
def test_time_grows_with_the_text_and_not_with_its_square(piece: str) -> None:
    def seconds(size: int) -> float:
        made = book(piece * (size // len(piece)) + "end")
        started = time.process_time()
        assert made.outline.places
        return time.process_time() - started

    assert_linear(seconds, 8_000)
