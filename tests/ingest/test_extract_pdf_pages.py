"""Pages of a PDF that most readers get wrong: columns drawn across, letters without names, pictures instead of text."""

import io

import pytest
from fpdf import FPDF
from pypdf import PdfReader, PdfWriter
from pypdf.generic import ArrayObject, NameObject, NumberObject

from agent_server.models import FileStatus
from tests.ingest.pdfs import Book, book, drawn_across, numbered_font_pdf, picture_pdf, raw_pdf, unicode_map
from tests.ingest.shape import kinds, read, refused

PDF = "application/pdf"
#: Lines of about 170 points, each column a sentence a line.
LEFT = [f"The quay of row {n:02} is kept by the harbour" for n in range(24)]
RIGHT = [f"A lease of row {n:02} is signed by the keeper" for n in range(24)]
#: Numbers of あいう日本語 in Adobe's Japanese collection; a small ョ and a bracket as they stand in vertical lines.
JAPANESE = (843, 845, 847, 3284, 3722, 1952)


def together(*parts: bytes) -> bytes:
    writer = PdfWriter()
    for part in parts:
        writer.append(PdfReader(io.BytesIO(part)))
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_columns_that_are_drawn_row_by_row_are_read_one_after_the_other() -> None:
    doc = read(drawn_across([LEFT, RIGHT]), PDF)
    assert doc.text.index(LEFT[-1]) < doc.text.index(RIGHT[0])
    assert f"{LEFT[3]} {LEFT[4]}" in doc.text
    assert doc.notes == ("pages drawn across their columns, put in order: 1",)


def test_what_goes_over_all_columns_parts_what_is_above_it_from_what_is_below() -> None:
    wide = "This line goes over both of the columns of the page and says what the lower half of it is about"
    left, right = [*LEFT[:12], wide, *LEFT[12:]], [*RIGHT[:12], "", *RIGHT[12:]]
    text = read(drawn_across([left, right]), PDF).text
    order = [text.index(line) for line in (LEFT[0], LEFT[11], RIGHT[0], RIGHT[11], wide, LEFT[12], RIGHT[12])]
    assert order == sorted(order)


def test_a_page_number_below_the_columns_does_not_stand_between_them() -> None:
    gap = [""] * 3
    text = read(drawn_across([LEFT, [*RIGHT, *gap, "- 7 -"]]), PDF).text
    assert text.endswith("- 7 -")
    text = read(drawn_across([[*LEFT, *gap, "- 8 -"], RIGHT]), PDF).text
    assert text.endswith("- 8 -")


def test_a_table_is_still_read_by_its_rows() -> None:
    def write(pdf: Book) -> None:
        pdf.set_font("Helvetica", "", 9)
        with pdf.table(col_widths=(60, 60, 60)) as table:
            for n in range(20):
                table.row((f"Tool {n}", f"${n} a day", f"shelf {n}"))

    doc = read(book(write), PDF)
    assert "Tool 7 | $7 a day | shelf 7" in doc.text
    assert doc.notes == ()


def test_columns_that_are_drawn_one_after_the_other_are_left_alone() -> None:
    parts = [(72, LEFT), (252, RIGHT)]
    lines = [(x, 740 - 11 * n, text) for x, column in parts for n, text in enumerate(column)]
    drawn = b"".join(b"1 0 0 1 %d %d Tm (%s) Tj\n" % (x, y, text.encode()) for x, y, text in lines)
    doc = read(raw_pdf(b"BT /F1 9 Tf\n" + drawn + b"ET\n"), PDF)
    assert doc.text.index(LEFT[-1]) < doc.text.index(RIGHT[0])
    assert doc.notes == ()


def _widths(data: bytes) -> bytes:
    """The same with the widths of the letters in the font, as files have them that carry their fonts."""
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    font = writer.pages[0]["/Resources"]["/Font"]["/F1"].get_object()  # type: ignore[index]
    font[NameObject("/FirstChar")] = NumberObject(0)
    font[NameObject("/Widths")] = ArrayObject([NumberObject(500)] * 256)
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def test_a_row_drawn_at_one_go_with_wide_gaps_has_cells() -> None:
    rows = [[f"Tool {n}" for n in range(4)], [f"{n} crowns" for n in range(4)]]
    doc = read(_widths(drawn_across(rows, leaps=True)), PDF)
    assert kinds(doc) == [("table", "\n".join(f"Tool {n} | {n} crowns" for n in range(4)))]


def test_the_wide_blanks_of_a_stretched_line_part_no_cells() -> None:
    line = b"[(The ) -1400 (keeper ) -1400 (signs.)] TJ"
    content = b"BT /F1 10 Tf 1 0 0 1 72 700 Tm " + line + b" 1 0 0 1 72 688 Tm " + line + b" ET"
    doc = read(_widths(raw_pdf(content)), PDF)
    assert " ".join(doc.text.split()) == "The keeper signs. The keeper signs."
    assert all(kind == "paragraph" for kind, _ in kinds(doc))


@pytest.mark.parametrize("vertical", [False, True])
def test_letters_numbered_by_a_collection_of_adobe_are_looked_up(vertical: bool) -> None:
    assert read(numbered_font_pdf(JAPANESE, "Japan1", vertical=vertical), PDF).text == "あいう日本語"


def test_signs_turned_for_vertical_lines_are_written_upright() -> None:
    # 7899 and 7900 are the brackets, 7923 the small tsu, as they are drawn in vertical lines.
    assert (
        read(numbered_font_pdf((7899, *JAPANESE, 7900, 7923), "Japan1", vertical=True), PDF).text
        == "（あいう日本語）っ"
    )


def test_chinese_and_korean_collections_are_known_as_well() -> None:
    assert read(numbered_font_pdf((4559, 4225), "GB1"), PDF).text
    assert read(numbered_font_pdf((1086,), "Korea1"), PDF).text == "가"


def test_letters_that_no_font_explains_are_left_out_and_not_made_up() -> None:
    mute = numbered_font_pdf((36, 37, 38), "Identity")
    rejected = refused(mute, PDF)
    assert rejected.status is FileStatus.NO_TEXT
    assert rejected.reason == "no text on pages 1 (no font says what the letters of pages 1 are)"
    doc = read(together(book(lambda pdf: pdf.text_block("Plain words.")), mute), PDF)
    assert doc.text == "Plain words."
    assert "pages with letters that no font explains, left out: 2" in doc.notes


def test_a_scan_is_no_text_with_its_pages_also_with_a_label_on_it() -> None:
    for words in (b"", b"scan 7"):
        rejected = refused(together(picture_pdf(words), picture_pdf(words)), PDF)
        assert rejected.status is FileStatus.NO_TEXT
        assert rejected.reason.startswith("no text on pages 1-2 (a scan?")


def test_a_scan_whose_letters_were_recognised_has_them_as_text() -> None:
    words = b"The rent of the slip is due in spring."
    assert read(picture_pdf(words), PDF).text == words.decode()


def test_few_words_beside_a_small_picture_are_text_and_a_scanned_page_among_others_is_noted() -> None:
    assert read(picture_pdf(b"Slip 7", width=100), PDF).text == "Slip 7"
    doc = read(together(picture_pdf(b"scan 7"), book(lambda pdf: pdf.text_block("Words of the second page."))), PDF)
    assert doc.text == "scan 7\n\nWords of the second page."
    assert doc.notes == ("pages that are pictures with a few letters beside them: 1",)


def test_words_from_right_to_left_are_read_from_the_right() -> None:
    letters = unicode_map("<41> <0627> <42> <0628> <43> <062A>")
    words = ("AA", "BB", "CC")
    drawn = b"/F1 12 Tf ( ) Tj ".join(
        b"/F1 12 Tf 1 0 0 1 %d 700 Tm (%s) Tj " % (72 + 20 * n, word.encode()) for n, word in enumerate(words)
    )
    assert read(raw_pdf(b"BT " + drawn + b"ET", extra=[letters]), PDF).text == "تت بب اا"


def test_the_minus_of_tex_is_not_lost() -> None:
    drawn = raw_pdf(b"BT /F1 12 Tf 72 700 Td (a) Tj (\\000) Tj (b) Tj ET").replace(
        b"/BaseFont /Helvetica", b"/BaseFont /ABCDEF+CMSY10"
    )
    assert read(drawn, PDF).text == "a\u2212b"


def test_a_page_that_the_outline_names_otherwise_begins_a_paragraph_of_its_own() -> None:
    pdf = FPDF()
    pdf.set_font("Helvetica", size=12)
    for country in ("France", "Denmark"):
        pdf.add_page()
        pdf.start_section(country)
        pdf.cell(0, 10, f"This is a page about the coast of {country}")
    assert [text for _, text in kinds(read(bytes(pdf.output()), PDF))] == [
        "This is a page about the coast of France",
        "This is a page about the coast of Denmark",
    ]


@pytest.mark.parametrize(
    "resources",
    [
        b"/XObject << /Im1 (none) >> ",
        b"/XObject 99 0 R ",
        b"/XObject [ 1 2 ] ",
        b"/XObject << /Im1 3 0 R >> ",
    ],
)
def test_odd_things_beside_the_text_do_not_cost_the_page(resources: bytes) -> None:
    drawn = b"BT /F1 12 Tf 72 700 Td (The text.) Tj /F9 12 Tf 0 -20 Td ET q Q Q"
    assert read(raw_pdf(drawn, resources=resources), PDF).text == "The text."


def test_a_numbered_font_without_its_letters_costs_only_its_own() -> None:
    odd = numbered_font_pdf((36,), "Identity").replace(b"/DescendantFonts [6 0 R]", b"/DescendantFonts (oddity)")
    doc = read(together(odd, book(lambda pdf: pdf.text_block("Plain words of a page."))), PDF)
    assert "Plain words of a page." in doc.text
