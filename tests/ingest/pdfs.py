"""Small PDFs made here: with fpdf2 where the layout matters, by hand where a single byte does."""

import io
import zlib
from collections.abc import Callable, Sequence

from fpdf import FPDF
from pypdf import PdfReader, PdfWriter


def raw_pdf(content: bytes, *, resources: bytes = b"", extra: Sequence[bytes] = (), compress: bool = False) -> bytes:
    """A PDF of one page with this content stream, font F1 Helvetica. `extra` are objects from number 6 on."""
    if compress:
        content = zlib.compress(content)
    about = b"/Filter /FlateDecode " if compress else b""
    objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>",
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Contents 4 0 R "
        b"/Resources << /Font << /F1 5 0 R >> " + resources + b">> >>",
        b"<< " + about + b"/Length %d >>\nstream\n" % len(content) + content + b"\nendstream",
        b"<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica /Encoding /WinAnsiEncoding "
        + (b"/ToUnicode 6 0 R " if extra else b"")
        + b">>",
        *extra,
    ]
    out = bytearray(b"%PDF-1.4\n")
    places = []
    for number, body in enumerate(objects, start=1):
        places.append(len(out))
        out += b"%d 0 obj\n" % number + body + b"\nendobj\n"
    start = len(out)
    out += b"xref\n0 %d\n0000000000 65535 f \n" % (len(objects) + 1)
    out += b"".join(b"%010d 00000 n \n" % place for place in places)
    out += b"trailer\n<< /Size %d /Root 1 0 R >>\nstartxref\n%d\n%%%%EOF\n" % (len(objects) + 1, start)
    return bytes(out)


def unicode_map(pairs: str) -> bytes:
    """A ToUnicode object, pairs as `<41> <D835>`."""
    body = (
        "/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /X def\n"
        "1 begincodespacerange <00> <FF> endcodespacerange\n"
        f"1 beginbfchar\n{pairs}\nendbfchar\nendcmap end end"
    ).encode()
    return b"<< /Length %d >>\nstream\n" % len(body) + body + b"\nendstream"


def numbered_font_pdf(codes: Sequence[int], ordering: str, *, vertical: bool = False) -> bytes:
    """One page whose font says nothing of its letters but their numbers in Adobe's collection `ordering`."""
    shown = b"".join(b"%04X" % code for code in codes)
    font = b"<< /Type /Font /Subtype /Type0 /BaseFont /Made /Encoding /Identity-%c /DescendantFonts [6 0 R] >>" % (
        b"V" if vertical else b"H"
    )
    inner = (
        b"<< /Type /Font /Subtype /CIDFontType0 /BaseFont /Made /DW 1000 "
        b"/CIDSystemInfo << /Registry (Adobe) /Ordering (%s) /Supplement 0 >> >>" % ordering.encode()
    )
    made = raw_pdf(b"BT /F1 12 Tf 72 700 Td <%s> Tj ET\n" % shown, extra=[inner])
    plain = made[made.index(b"5 0 obj") : made.index(b"6 0 obj")]
    return made.replace(plain, b"5 0 obj\n" + font + b"\nendobj\n")  # the table of places is off: readers repair it


def picture_pdf(words: bytes = b"", *, width: int = 612) -> bytes:
    """One page with a picture over `width` of its 612 points, and words on it that are not shown (as OCR leaves)."""
    image = (
        b"<< /Type /XObject /Subtype /Image /Width 1 /Height 1 /ColorSpace /DeviceGray /BitsPerComponent 8 /Length 1 >>"
        b"\nstream\n\x80\nendstream"
    )
    content = b"q %d 0 0 792 0 0 cm /Im1 Do Q\n" % width
    if words:
        content += b"BT 3 Tr /F1 12 Tf 72 700 Td (" + words + b") Tj ET\n"
    return raw_pdf(content, resources=b"/XObject << /Im1 6 0 R >> ", extra=[image]).replace(b"/ToUnicode 6 0 R ", b"")


def drawn_across(columns: Sequence[Sequence[str]], *, leaps: bool = False) -> bytes:
    """One page in columns of 180 points, drawn row by row; with `leaps` a row is one piece with wide gaps in it."""
    out = bytearray(b"BT /F1 9 Tf\n")
    for n in range(max(map(len, columns))):
        row = [(72 + 180 * place, column[n]) for place, column in enumerate(columns) if n < len(column)]
        y = 740 - 11 * n
        if leaps:
            parts = b" -9000 ".join(b"(" + text.encode("latin-1") + b")" for _, text in row)
            out += b"1 0 0 1 %d %d Tm [%s] TJ\n" % (row[0][0], y, parts)
            continue
        for x, text in row:
            out += b"1 0 0 1 %d %d Tm (%s) Tj\n" % (x, y, text.encode("latin-1"))
    return raw_pdf(bytes(out) + b"ET\n")


class Book(FPDF):
    """A4 pages in Helvetica 10 with a running title and page numbers if asked for."""

    running = ""

    def header(self) -> None:
        if self.running and self.page_no() > 1:
            self.set_font("Helvetica", "", 8)
            self.cell(0, 10, self.running)
            self.ln(12)

    def footer(self) -> None:
        if self.running:
            self.set_y(-15)
            self.set_font("Helvetica", "", 8)
            self.cell(0, 10, f"Page {self.page_no()} of {{nb}}", align="C")

    def text_block(self, text: str, *, size: float = 10, style: str = "", gap: float = 4) -> None:
        self.set_font("Helvetica", style, size)
        self.multi_cell(0, size * 0.5, text, new_x="LMARGIN", new_y="NEXT")
        self.ln(gap)


def book(write: Callable[[Book], None], *, running: str = "", title: str = "") -> bytes:
    pdf = Book()
    pdf.running = running
    if title:
        pdf.set_title(title)
    pdf.add_page()
    write(pdf)
    return bytes(pdf.output())


def encrypted(data: bytes, user_password: str) -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(data)))
    writer.encrypt(user_password=user_password, owner_password="owner", algorithm="AES-256")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()
