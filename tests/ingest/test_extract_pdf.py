import logging

import pytest

from agent_server.ingest.extract import extract
from agent_server.models import Document, FileStatus, Rejected
from tests.ingest.pdfs import Book, book, encrypted, raw_pdf, unicode_map
from tests.ingest.shape import kinds, outline, read, refused, source

PDF = "application/pdf"
LONG = (
    "The storekeeper writes down every tool that leaves the room, who took it and when it is due, and reads the "
    "list aloud at the end of each week so that nobody can say that the loan had been forgotten. "
)


def line(text: str, y: int, size: int = 12) -> bytes:
    return f"BT /F1 {size} Tf 72 {y} Td ({text}) Tj ET\n".encode("latin-1")


def test_wrapped_lines_become_one_line_per_paragraph() -> None:
    def write(pdf: Book) -> None:
        pdf.text_block(LONG * 2)
        pdf.text_block("A second one. " + LONG)

    doc = read(book(write), PDF)
    assert kinds(doc) == [("paragraph", (LONG * 2).strip()), ("paragraph", ("A second one. " + LONG).strip())]


def test_paragraphs_without_a_gap_end_at_a_short_last_line() -> None:
    def write(pdf: Book) -> None:
        pdf.text_block(LONG + "It is short.", gap=0)
        pdf.text_block("Another paragraph. " + LONG, gap=0)

    assert len(kinds(read(book(write), PDF))) == 2


def test_headings_by_outline_are_found_on_their_pages_also_when_they_wrap() -> None:
    name = "2. What is to be done when a tool comes back late and the one who took it has left the house"

    def write(pdf: Book) -> None:
        pdf.start_section("1. Loans")
        pdf.text_block("1. Loans", size=10, style="")
        pdf.text_block(LONG)
        pdf.start_section(name)
        pdf.text_block(name, size=16, style="B")
        pdf.start_section("Reminders", level=1)
        pdf.text_block("Reminders", size=10)
        pdf.text_block(LONG)

    doc = read(book(write), PDF)
    assert outline(doc) == [(1, "1. Loans"), (1, name), (2, "Reminders")]
    assert doc.blocks[-1].heading_path == (name, "Reminders")


def test_headings_by_size_and_number_without_an_outline() -> None:
    def write(pdf: Book) -> None:
        pdf.text_block("Tool Room Manual", size=20, style="B")
        pdf.text_block(LONG)
        pdf.text_block("1 Loans", size=14, style="B")
        pdf.text_block("1.1 Who may borrow", size=11, style="B")
        pdf.text_block(LONG)
        pdf.text_block(
            "2 Returns of things that were borrowed by somebody else on behalf of a neighbour",
            size=14,
            style="B",
        )
        pdf.text_block(LONG)

    doc = read(book(write), PDF)
    assert outline(doc) == [
        (1, "Tool Room Manual"),
        (2, "1 Loans"),
        (3, "1.1 Who may borrow"),
        (2, "2 Returns of things that were borrowed by somebody else on behalf of a neighbour"),
    ]
    assert doc.title == "Tool Room Manual"


def test_numbered_headings_in_ordinary_letters_are_found_and_sentences_are_not() -> None:
    def write(pdf: Book) -> None:
        pdf.text_block("4.2 Late returns")
        pdf.text_block(LONG + "See\n4.3 of the plan, which says more. " + LONG)
        pdf.text_block("GENERAL TERMS")
        pdf.text_block(LONG)

    assert [title for _, title in outline(read(book(write), PDF))] == ["4.2 Late returns", "GENERAL TERMS"]


def test_running_titles_and_page_numbers_are_dropped_but_the_title_stays() -> None:
    def write(pdf: Book) -> None:
        pdf.text_block("House Rules", size=20, style="B")
        for _ in range(40):
            pdf.text_block(LONG)

    doc = read(book(write, running="House Rules"), PDF)
    assert len(doc.pages) >= 3
    assert doc.text.count("House Rules") == 1
    assert "Page 2" not in doc.text
    assert outline(doc) == [(1, "House Rules")]


def test_two_pages_keep_their_first_lines() -> None:
    def write(pdf: Book) -> None:
        pdf.text_block("Same line.")
        pdf.add_page()
        pdf.text_block("Same line.")

    assert read(book(write), PDF).text.count("Same line.") == 2


def test_a_paragraph_goes_on_over_the_page_break() -> None:
    def write(pdf: Book) -> None:
        pdf.set_y(-40)
        pdf.text_block(LONG * 4)

    doc = read(book(write), PDF)
    assert kinds(doc) == [("paragraph", (LONG * 4).strip())]
    first, second = doc.pages
    assert (first.number, second.number) == (1, 2)
    assert doc.text[: first.end].rstrip() + " " + doc.text[second.start :] == doc.text


def test_pages_have_the_numbers_printed_on_them() -> None:
    def write(pdf: Book) -> None:
        pdf.set_page_label(label_style="r")
        pdf.text_block("Preface text.")
        pdf.add_page(label_style="D", label_start=1)
        pdf.text_block("First text.")

    doc = read(book(write), PDF)
    assert [(page.number, page.label) for page in doc.pages] == [(1, "i"), (2, "1")]
    assert [doc.text[page.start : page.end] for page in doc.pages] == ["Preface text.", "First text."]


def test_hyphens_at_line_ends_are_joined_unless_the_word_has_one() -> None:
    data = raw_pdf(
        line("Members of the cooperative and its long-term lend-", 700)
        + line("ers meet once a year and vote on all long-", 686)
        + line("term plans, on pre-", 672)
        + line("1990 debts and on the co\\255", 658)
        + line("operative bank and its work.", 644)
    )
    assert read(data, PDF).text == (
        "Members of the cooperative and its long-term lenders meet once a year and vote on all long-term plans, "
        "on pre- 1990 debts and on the cooperative bank and its work."
    )


def test_list_items_stay_apart_and_take_their_second_lines() -> None:
    def write(pdf: Book) -> None:
        pdf.text_block("The following count:", gap=1)
        for item in ("- tools " + LONG, "- nails", "1. first", "2. second " + LONG, "(a) letter"):
            pdf.text_block(item, gap=0)

    doc = read(book(write), PDF)
    assert [kind for kind, _ in kinds(doc)] == ["paragraph"] + ["list_item"] * 5
    assert kinds(doc)[1][1] == ("- tools " + LONG).strip()


def test_rows_of_a_table_stay_rows_also_when_their_cells_wrap() -> None:
    def write(pdf: Book) -> None:
        pdf.text_block(LONG)
        pdf.set_font("Helvetica", "", 10)
        with pdf.table(col_widths=(40, 20, 40)) as table:
            for cells in (
                ("Tool", "Fee", "Remark"),
                (
                    "Large orbital sander with its box and all of the paper that belongs to it",
                    "$4 a day",
                    "none on Sunday",
                ),
                (
                    "Saw",
                    "$2 a day",
                    "only together with the gloves that hang beside it at the door of the room",
                ),
            ):
                table.row(cells)
        pdf.ln(6)
        pdf.text_block("After the table. " + LONG)

    tables = [text for kind, text in kinds(read(book(write), PDF)) if kind == "table"]
    assert tables == [
        "Tool | Fee | Remark\n"
        "Large orbital sander with its box and all of the paper that belongs to it | $4 a day | none on Sunday\n"
        "Saw | $2 a day | only together with the gloves that hang beside it at the door of the room"
    ]


def test_an_empty_user_password_opens_and_another_one_is_encrypted() -> None:
    data = book(lambda pdf: pdf.text_block("Open text."))
    assert read(encrypted(data, ""), PDF).text == "Open text."
    assert refused(encrypted(data, "secret"), PDF).status is FileStatus.ENCRYPTED


def test_one_of_the_passwords_given_opens_and_none_of_them_is_told(caplog: pytest.LogCaptureFixture) -> None:
    data = encrypted(book(lambda pdf: pdf.text_block("Locked text.")), "s3cret")
    with caplog.at_level(logging.DEBUG):
        opened = extract(source(data, PDF, "a.pdf"), ("wr0ng", "\ud800", "pass\u20acword", "s3cret"))
        assert isinstance(opened, Document)
        assert opened.text == "Locked text."
        closed = extract(source(data, PDF, "a.pdf"), ("wr0ng", "\ud800"))
    assert isinstance(closed, Rejected)
    assert closed.status is FileStatus.ENCRYPTED
    assert closed.reason == "none of the passwords given opens it"
    assert "s3cret" not in f"{opened}" and "wr0ng" not in f"{closed}"
    assert caplog.records == []


def test_passwords_do_no_harm_to_files_that_need_none() -> None:
    data = book(lambda pdf: pdf.text_block("Open text."))
    for plain in (data, encrypted(data, "")):
        opened = extract(source(plain, PDF, "a.pdf"), ("s3cret",))
        assert isinstance(opened, Document)
        assert opened.text == "Open text."


def test_cut_and_broken_files_are_damaged() -> None:
    data = book(lambda pdf: [pdf.text_block(LONG * 20) for _ in range(5)])  # type: ignore[func-returns-value]
    for broken in (
        data[: len(data) // 2],
        b"%PDF-1.4\n",
        b"%PDF-1.7\n%%EOF",
        b"%PDF-1.4\n" + bytes(range(256)) * 20 + b"\n%%EOF",
    ):
        assert refused(broken, PDF).status is FileStatus.DAMAGED


def test_bytes_before_the_header_do_no_harm() -> None:
    data = book(lambda pdf: pdf.text_block("Some text."))
    assert read(b"\r\n\r\n" + data, PDF).text == "Some text."


def test_pages_without_text_are_no_text_and_some_of_them_are_noted() -> None:
    def write(pdf: Book) -> None:
        pdf.add_page()
        pdf.add_page()

    rejected = refused(book(write), PDF)
    assert rejected.status is FileStatus.NO_TEXT
    assert "1-3" in rejected.reason

    def some(pdf: Book) -> None:
        pdf.text_block("First.")
        pdf.add_page()
        pdf.add_page()
        pdf.text_block("Third.")

    doc = read(book(some), PDF)
    assert doc.notes == ("pages without text: 2",)
    assert [doc.text[page.start : page.end] for page in doc.pages] == ["First.", "", "Third."]


def test_nul_and_half_surrogates_from_fonts_never_cost_the_file() -> None:
    doc = read(raw_pdf(line("He\\000llo", 700)), PDF)
    assert doc.text == "Hello"
    assert doc.notes == ("removed 1 NUL character",)
    doc = read(raw_pdf(line("xAy", 700), extra=[unicode_map("<41> <D835>")]), PDF)
    assert doc.text == "x\ufffdy"


def test_words_that_run_together_are_read_in_another_way_or_noted() -> None:
    kerned = b"BT /F1 12 Tf 72 700 Td [" + b"".join(
        b"(%s)-120" % word for word in b"This chapter deals with loans that were never returned".split()
    )
    doc = read(raw_pdf(kerned + b"] TJ ET\n"), PDF)
    assert "chapter deals with" in doc.text or doc.notes == ("pages whose words run together: 1",)
    doc = read(raw_pdf(line("Thischapterdealswithloansthatwereneverreturned", 700)), PDF)
    assert doc.notes == ("pages whose words run together: 1",)


def test_a_page_that_unpacks_to_more_than_the_limit_is_too_large() -> None:
    bomb = raw_pdf(b" " * 100_000_000, compress=True)
    assert len(bomb) < 200_000
    assert refused(bomb, PDF).status is FileStatus.TOO_LARGE


def test_title_from_metadata_only_if_a_person_wrote_it() -> None:
    def write(pdf: Book) -> None:
        pdf.text_block("Tool Room Manual", size=20, style="B")
        pdf.text_block(LONG)

    assert read(book(write, title="The Manual"), PDF).title == "The Manual"
    for junk in ("Microsoft Word - manual_v3.docx", "untitled", "scan.pdf", "x"):
        assert read(book(write, title=junk), PDF).title == "Tool Room Manual"
    assert read(book(lambda pdf: pdf.text_block("just words")), PDF, "a/fee_list.pdf").title == "fee list"


def test_pypdf_is_silent_and_its_logger_is_left_as_it_was(caplog: pytest.LogCaptureFixture) -> None:
    logger = logging.getLogger("pypdf")
    before = (list(logger.handlers), logger.propagate, logger.level)
    data = raw_pdf(line("Some text", 700)).replace(b"startxref\n", b"startxref\n9")
    with caplog.at_level(logging.DEBUG):
        assert read(data, PDF).text == "Some text"
    assert caplog.records == []
    assert (list(logger.handlers), logger.propagate, logger.level) == before


@pytest.mark.parametrize("seed", range(40))
def test_no_change_of_bytes_makes_it_raise(seed: int) -> None:
    data = bytearray(book(lambda pdf: pdf.text_block(LONG)))
    for step in range(30):
        data[(seed * 7919 + step * 104729) % len(data)] = (seed * 31 + step * 17) % 256
    extract(source(bytes(data), PDF, "a.pdf"))
