from datetime import date

import pytest

from agent_server.ingest.extract.headings import LineHeading, levels, read_heading
from tests.ingest.shape import block_with, kinds, outline, read, refused

TXT = "text/plain"


def test_blocks_are_parted_by_blank_lines_and_list_items_stand_alone() -> None:
    doc = read("One line\nand more.\n\n- first\n  more\n- second\n(a) third\n\n\nLast.", TXT)
    assert kinds(doc) == [
        ("paragraph", "One line\nand more."),
        ("list_item", "- first\n  more"),
        ("list_item", "- second"),
        ("list_item", "(a) third"),
        ("paragraph", "Last."),
    ]


def test_numbered_and_capital_headings_nest_below_the_title() -> None:
    text = (
        "RIVER LIBRARY\nLENDING RULES\nIn force today\n\n1 MEMBERS\n\n1.1 Who may join\n\nAnyone.\n\n"
        "1.2 Cards\n\nOne each.\n\n2 LOANS\n\nThree weeks.\n\nCHANGES\n\nNone.\n"
    )
    doc = read(text, TXT)
    assert doc.title == "RIVER LIBRARY LENDING RULES"
    assert outline(doc) == [
        (1, "RIVER LIBRARY LENDING RULES"),
        (2, "1 MEMBERS"),
        (3, "1.1 Who may join"),
        (3, "1.2 Cards"),
        (2, "2 LOANS"),
        (2, "CHANGES"),
    ]
    assert block_with(doc, "One each.")[1] == ("RIVER LIBRARY LENDING RULES", "1 MEMBERS", "1.2 Cards")


@pytest.mark.parametrize("gap", ["\n", "\n\n"])
def test_an_article_and_the_title_below_it_are_one_heading_below_its_chapter(gap: str) -> None:
    doc = read(f"CHAPTER I\nGeneral matters\n\nArticle 6{gap}Lawful uses\n\n1. Uses are lawful if agreed.", TXT)
    assert outline(doc) == [(1, "CHAPTER I General matters"), (2, "Article 6 Lawful uses")]
    assert block_with(doc, "Uses are")[1] == ("CHAPTER I General matters", "Article 6 Lawful uses")


def test_chapters_sections_and_articles_on_one_line() -> None:
    text = (
        "1. Scope\n\nSection - Start\n\nArticle 1 - Aim\n\nText.\n\n2. Duties\n\nSection - Care\n\n"
        "Article 2 - Care\n\nText."
    )
    assert outline(read(text, TXT)) == [
        (1, "1. Scope"),
        (2, "Section - Start"),
        (3, "Article 1 - Aim"),
        (1, "2. Duties"),
        (2, "Section - Care"),
        (3, "Article 2 - Care"),
    ]


def test_underlined_titles_have_levels_by_their_line() -> None:
    text = (
        "CITY OF X\nRULE 7  NOISE\n=============\n\nText.\n\n"
        "1. QUIET HOURS\n--------------\n(a) From ten.\n\n"
        "Appendix A. Fines\n-----------------\nNone."
    )
    doc = read(text, TXT)
    assert outline(doc) == [(1, "CITY OF X RULE 7 NOISE"), (2, "1. QUIET HOURS"), (2, "Appendix A. Fines")]
    assert block_with(doc, "From ten")[0] == "list_item"


def test_a_contract_with_articles_and_numbered_sections() -> None:
    text = (
        "ARTICLE 6 PAYMENT\n\n6.1 Due date\n\nSoon.\n\nSection 3. Delivery terms\n\nLater.\n\n§ 12 Notices\n\nWritten."
    )
    assert [title for _, title in outline(read(text, TXT))] == [
        "ARTICLE 6 PAYMENT",
        "6.1 Due date",
        "Section 3. Delivery terms",
        "§ 12 Notices",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "1. Wash the car\n\n2. Dry the car\n\n3. Drive the car",
        "1. Wash the car\n2. Dry the car",
        "The rule is stated in\nSection 4 of the handbook, and it\nsays so.",
        "Section 4 of the handbook says so",
        "It was decided on\n12 June 2024 that the\n4.5 Percent limit stays.",
        "1 July 2024: the limit was raised\nfrom four to five.",
        "1 July 2024",
        "4.2 percent of the sum",
        "THIS NOTICE IS WRITTEN IN CAPITALS AND GOES ON FOR LONG.",
        "NW-4021",
        "ID   NAME   PRICE\n1    TEA    2\n2    CAKE   3",
        "Article 6 applies.",
        "Hello there\n\nA short line without a stop\n\nBye",
        "- UPPER CASE ITEM",
    ],
)
def test_items_sentences_dates_and_table_rows_are_no_headings(text: str) -> None:
    assert outline(read(text, TXT)) == []


def test_columns_make_a_table() -> None:
    text = "Codes:\n\n  Code   Name\n  -----  ------\n  A-1    Apple\n         pie\n\n| a | b |\n|---|---|\n| 1 | 2 |"
    assert [kind for kind, _ in kinds(read(text, TXT))] == ["paragraph", "table", "table"]


def test_a_date_line_near_the_top_dates_the_document() -> None:
    assert read("NOTICE TO ALL\n\nDate: 2024-05-06\n\nText.", TXT).dated == date(2024, 5, 6)
    assert read("Text of 2024-05-06.", TXT).dated is None


def test_the_first_of_many_chapters_is_not_the_title() -> None:
    doc = read("1. Scope\n\nText.\n\n2. Duties\n\nText.", TXT, "rules/house_rules.txt")
    assert doc.title == "house rules"


def test_nul_characters_are_gone_and_noted() -> None:
    doc = read(b"good\x00 line\r\nnext", TXT)
    assert doc.text == "good line\nnext"
    assert doc.notes == ("removed 1 NUL character",)


def test_only_removed_characters_is_empty() -> None:
    assert refused("\u200b\x00\n", TXT).status == "empty"


def test_levels_put_deeper_numbers_below_whatever_comes_first() -> None:
    ranks = ["num:2", "num:1", "num:2", "num:3"]
    assert levels([LineHeading(rank, "") for rank in ranks]) == [2, 1, 2, 3]
    assert levels([]) == []


def test_a_heading_line_tells_whether_it_waits_for_a_title() -> None:
    heading = read_heading("Article 6")
    assert heading is not None
    assert heading.needs_title
    assert read_heading("") is None


def test_an_article_with_a_very_long_title_is_a_heading_all_the_same() -> None:
    title = "Article 89 - Safeguards and exceptions for keeping records of the harbor in the public interest, " + (
        "for research into tides and for the counting of boats, of nets and of ropes"
    )
    found = read_heading(title)
    assert found is not None
    assert found.text == title
    assert read_heading(title.replace(" - ", " ")) is None
