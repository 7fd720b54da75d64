"""Makes the PDFs of the sample bank from the Markdown in knowledge-bank/pdf_sources.

    python ops/make_sample_pdfs.py

Run it after changing a source and commit both; a test compares the text of the two. The Markdown is a small part of
the language: headings, paragraphs, lists, pipe tables, bold.
"""

import datetime
import re
from pathlib import Path

from fpdf import FPDF, XPos, YPos
from markdown_it import MarkdownIt
from markdown_it.token import Token

BANK = Path(__file__).parents[1] / "knowledge-bank"
SIZES = {"h1": 18, "h2": 14, "h3": 12}


class Paper(FPDF):
    """A4 with a running title and page numbers, as office software would make it."""

    def __init__(self, title: str) -> None:
        super().__init__(format="A4")
        self.running_title = title
        self.set_title(title)
        self.set_creator("ops/make_sample_pdfs.py")
        self.set_creation_date(datetime.datetime(2025, 1, 1, tzinfo=datetime.UTC))
        self.set_margin(22)
        self.set_auto_page_break(True, margin=24)
        self.add_page()

    def header(self) -> None:
        if self.page_no() > 1:
            self.set_font("Helvetica", "I", 8)
            self.cell(0, 6, self.running_title, align="R", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
            self.ln(4)

    def footer(self) -> None:
        self.set_y(-16)
        self.set_font("Helvetica", "", 8)
        self.cell(0, 6, f"Page {self.page_no()}", align="C")


def render(markdown: str) -> bytes:
    """The PDF of a Markdown text, the same bytes each time."""
    tokens = MarkdownIt("commonmark").enable("table").parse(markdown)
    title = next(tokens[i + 1].content for i, t in enumerate(tokens) if t.type == "heading_open")
    paper = Paper(title)
    marks: list[str] = []  # "- " or "1. ", innermost last
    counts: list[int] = []
    i = 0
    while i < len(tokens):
        token = tokens[i]
        match token.type:
            case "heading_open":
                _heading(paper, token, tokens[i + 1].content)
                i += 2
            case "bullet_list_open":
                marks.append("- ")
                counts.append(0)
            case "ordered_list_open":
                marks.append("1. ")
                counts.append(int(token.attrGet("start") or 1) - 1)
            case "bullet_list_close" | "ordered_list_close":
                marks.pop()
                counts.pop()
                paper.ln(2)
            case "list_item_open":
                counts[-1] += 1
            case "paragraph_open":
                mark = "" if not marks else ("- " if marks[-1] == "- " else f"{counts[-1]}. ")
                _paragraph(paper, mark, tokens[i + 1].content, depth=len(marks))
                i += 2
            case "table_open":
                end = next(k for k in range(i, len(tokens)) if tokens[k].type == "table_close")
                _table(paper, tokens[i:end])
                i = end
            case _:
                pass
        i += 1
    return bytes(paper.output())


def _heading(paper: Paper, token: Token, text: str) -> None:
    plain = text.replace("*", "").replace("`", "")
    paper.ln(3)
    paper.set_font("Helvetica", "B", SIZES.get(token.tag, 11))
    if paper.get_y() > 250:
        paper.add_page()
    paper.start_section(plain, level=int(token.tag[1]) - 1)
    paper.multi_cell(0, 7, plain, align="L", new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    paper.ln(1)


def _paragraph(paper: Paper, mark: str, text: str, *, depth: int) -> None:
    paper.set_font("Helvetica", "", 10.5)
    paper.set_x(paper.l_margin + 6 * depth)
    body = re.sub(r"\s+", " ", text).replace("`", "")
    paper.multi_cell(0, 5.2, mark + body, align="L", markdown=True, new_x=XPos.LMARGIN, new_y=YPos.NEXT)
    if not depth:
        paper.ln(2.5)


def _table(paper: Paper, tokens: list[Token]) -> None:
    rows: list[list[str]] = []
    for token in tokens:
        if token.type == "tr_open":
            rows.append([])
        elif token.type == "inline":
            rows[-1].append(token.content.replace("*", "").replace("`", ""))
    paper.set_font("Helvetica", "", 9.5)
    longest = [max(8, min(60, max(len(row[n]) for row in rows))) for n in range(len(rows[0]))]
    with paper.table(col_widths=tuple(longest), line_height=5, text_align="LEFT") as table:
        for row in rows:
            cells = table.row()
            for cell in row:
                cells.cell(cell)
    paper.ln(4)


def main() -> None:
    for source in sorted((BANK / "pdf_sources").rglob("*.md")):
        target = BANK / "documents" / source.relative_to(BANK / "pdf_sources").with_suffix(".pdf")
        target.write_bytes(render(source.read_text(encoding="utf-8")))
        print(f"{target.relative_to(BANK)}: {target.stat().st_size} bytes")


if __name__ == "__main__":
    main()
