"""What a reader must neither hang on nor throw away: hostile table rules, headings like running titles."""

import time

from fpdf import FPDF

from agent_server.ingest.extract.pdf_lines import PdfLine, drop_running_lines
from agent_server.ingest.extract.pdf_marks import Bookmark, keep_marked
from tests.ingest.shape import kinds, outline, read

PDF, TXT = "application/pdf", "text/plain"
WORDS = ("apples", "bricks", "carts", "doors", "eggs")


def pages_of(*pages: tuple[str, ...]) -> list[list[PdfLine]]:
    return [[PdfLine(n, text, size=10.0) for text in lines] for n, lines in enumerate(pages, start=1)]


def texts(pages: list[list[PdfLine]]) -> list[list[str]]:
    return [[line.text for line in lines] for lines in pages]


def paged(heading: str, *, marked: bool) -> bytes:
    """Five pages that open with a numbered heading, all in letters of one size."""
    pdf = FPDF()
    pdf.set_font("Helvetica", size=10)
    for number, word in enumerate(WORDS, start=1):
        pdf.add_page()
        if marked:
            pdf.start_section(f"{heading} {number}")
        lines = (
            f"{heading} {number}",
            f"The keeper of {word} writes down what was lent.",
            f"He asks for the {word} after a month.",
            f"Nobody keeps {word} for longer than that.",
            f"Lost {word} are paid for.",
        )
        for line in lines:
            pdf.cell(0, 6, line, new_x="LMARGIN", new_y="NEXT")
    return bytes(pdf.output())


def test_a_wide_rule_with_pipes_is_still_the_rule_of_a_table() -> None:
    table = "a | b\n" + "-" * 600 + "|" + "-" * 600 + "\n1 | 2"
    assert kinds(read(table, TXT)) == [("table", table)]


def test_lines_that_nearly_rule_a_table_are_read_in_linear_time() -> None:
    def seconds(letters: int) -> float:
        text = "ab\n" + "|-" * (letters // 2) + "x"
        start = time.process_time()
        read(text, TXT)
        return time.process_time() - start

    # Cubic time would make it 64 times as long, for whole minutes; the floor keeps small numbers from mattering.
    assert seconds(32_000) < 16 * max(seconds(8_000), 0.02)


def test_an_outline_keeps_chapter_titles_that_stand_at_the_top_of_every_page() -> None:
    doc = read(paged("Lesson", marked=True), PDF)
    assert outline(doc) == [(1, f"Lesson {n}") for n in range(1, 6)]


def test_articles_that_open_every_page_are_no_running_titles() -> None:
    doc = read(paged("ARTICLE", marked=False), PDF)
    assert all(f"ARTICLE {n}" in doc.text for n in range(1, 6))


def test_a_running_chapter_title_and_page_numbers_still_go() -> None:
    pages = pages_of(
        *(("Chapter 2", f"About {w}.", f"More on {w}.", f"Page {n}") for n, w in enumerate(WORDS)),
    )
    assert texts(drop_running_lines(pages)) == [[f"About {word}.", f"More on {word}."] for word in WORDS]


def test_two_pages_with_text_are_too_few_to_tell_a_running_title() -> None:
    pages = [*pages_of(*(("Fee table", f"About {word}.", f"Total {n}") for n, word in enumerate(WORDS[:2]))), []]
    assert drop_running_lines(pages) == pages


def test_a_title_that_the_outline_finds_below_does_not_bring_the_running_one_back() -> None:
    pages = pages_of(
        *(("Rules", f"About {w}.", "Rules" if n == 2 else "Text.", f"End {w}.") for n, w in enumerate(WORDS)),
    )
    kept = [lines[1:] for lines in pages]
    assert texts(keep_marked(kept, pages, [Bookmark("Rules", 3, 1)])) == texts(kept)
    assert texts(keep_marked(kept, pages, [Bookmark("Rules", 1, 1)]))[0] == texts(pages)[0]
