"""Broken files made here, one of each kind that is met outside: what becomes of each in one run of the product."""

import io
import zipfile
from pathlib import Path

from pypdf import PdfReader, PdfWriter

from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.steps import IngestOptions
from agent_server.retrieval.search import search
from tests.hash_embedder import HashEmbedder
from tests.ingest.docxs import docx, p, table
from tests.ingest.pdfs import Book, book, drawn_across, encrypted, numbered_font_pdf, picture_pdf, raw_pdf

PAGE = b"<!doctype html>\n<html><head><title>Sign in</title></head><body>Your session is over.</body></html>"
OLE = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"
OLD_WORD = OLE + b"\0" * 504 + "Root Entry\0WordDocument\0".encode("utf-16-le") + b"\x01\x02\x13\x14\x15 text \x07" * 90
LOCKED_WORD = OLE + b"\0" * 504 + "EncryptionInfo\0EncryptedPackage\0".encode("utf-16-le") + b"\0" * 512
OBJECT = b'<Relationship Id="o1" Type="http://x/oleObject" Target="embeddings/a.bin"/>'


def office(kind: str, main: str) -> bytes:
    """A workbook or a slide show: a package whose main part is that of another program."""
    types = f'<Types><Override PartName="/{kind}/main.xml" ContentType="{main}.main+xml"/></Types>'
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        archive.writestr("[Content_Types].xml", types)
        archive.writestr("_rels/.rels", "<Relationships/>")
        archive.writestr(f"{kind}/main.xml", "<main>Fees of the quay</main>")
    return out.getvalue()


def one_page(text: str) -> bytes:
    return book(lambda pdf: pdf.text_block(text))


def outlined() -> bytes:
    def write(pdf: Book) -> None:
        pdf.start_section("Winter")
        pdf.text_block("Winter", size=16, style="B")
        pdf.text_block("The slip is closed while there is ice.")

    return book(write)


def with_attachment() -> bytes:
    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(one_page("The plan of the quay is attached."))))
    writer.add_attachment("plan.dwg", b"not read")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def embedding() -> bytes:
    """A Word document with another one in it."""
    made = docx(p("The contract holds the annex as an object."), raw={"word/embeddings/a.bin": b"x"})
    with zipfile.ZipFile(io.BytesIO(made)) as archive:
        relations = archive.read("word/_rels/document.xml.rels").replace(
            b"</Relationships>", OBJECT + b"</Relationships>"
        )
    return docx(p("The contract holds the annex as an object."), raw={"word/_rels/document.xml.rels": relations})


COLUMNS = [[f"The {what} of row {n:02} is kept by the harbour" for n in range(24)] for what in ("quay", "mole")]
LONG = one_page("The tide table is printed each year. " * 400)
NOTE = '<w:footnote w:id="2"><w:p><w:r><w:t>A note below the table.</w:t></w:r></w:p></w:footnote>'
NOTED = p("See", '<w:r><w:footnoteReference w:id="2"/></w:r>')

#: name -> (content, status, what the reason says, what the text of its passages holds)
TWINS: dict[str, tuple[bytes, str, str, str]] = {
    "bom-crlf.md": (b"\xef\xbb\xbf# Setup\r\n\r\n| a | b |\r\n|---|---|\r\n| 1 | 2 |\r\n", "indexed", "", "| 1 | 2 |"),
    "zero.pdf": (b"", "empty", "has no bytes", ""),
    "zero.md": (b"", "empty", "has no bytes", ""),
    "blank.txt": (b" \r\n\t\n", "empty", "nothing but blanks", ""),
    "login.pdf": (PAGE, "rejected", "is named .pdf but its content is text/html", ""),
    "latin-1.txt": (
        "Die Größe des Kühlhauses. § 12 gilt für Gäste.".encode("latin-1"),
        "indexed",
        "",
        "Größe des Kühl",
    ),
    "windows.txt": ("They call it a “free” berth – for €5.".encode("cp1252"), "indexed", "", "“free” berth – for €5"),
    "utf-16.txt": (
        'The term "Berth" means a place.\r\nSee § 7.'.encode("utf-16"),
        "indexed",
        "",
        '"Berth" means a place',
    ),
    "utf-16-be.md": (b"\xfe\xff" + "# Öl\n\nKein Öl ins Wasser.".encode("utf-16-be"), "indexed", "", "Kein Öl"),
    "nul.txt": (b"good line\nba\x00d line\x00\n", "indexed", "removed 2 NUL characters", "good line\nbad line"),
    "controls.txt": (
        b"one\x01\x02 two " + b"and many more of the words " * 10 + b"\x0bend\n",
        "indexed",
        "removed 2 control characters",
        "one two and many",
    ),
    "scripts.txt": ("Hafen: порт, λιμάνι, 港口, ميناء\n".encode(), "indexed", "", "порт, λιμάνι, 港口, ميناء"),
    "half.pdf": (LONG[: len(LONG) // 2], "damaged", "cut off", ""),
    "noise.pdf": (b"%PDF-1.4\n" + bytes(range(256)) * 20 + b"\n%%EOF", "damaged", "", ""),
    "bad-table.pdf": (
        one_page("The places in this file are wrong.").replace(b"startxref\n", b"startxref\n9"),
        "indexed",
        "",
        "The places in this file",
    ),
    "aes-empty.pdf": (encrypted(one_page("Anybody may read this."), ""), "indexed", "", "Anybody may read this."),
    "aes-locked.pdf": (encrypted(one_page("Nobody."), "s3cret"), "encrypted", "a password is needed", ""),
    "scan.pdf": (picture_pdf(), "no_text", "no text on pages 1 (a scan?", ""),
    "scan-labelled.pdf": (picture_pdf(b"scan 7"), "no_text", "no text on pages 1 (a scan?", ""),
    "vertical.pdf": (numbered_font_pdf((843, 3284, 3722, 1952), "Japan1", vertical=True), "indexed", "", "あ日本語"),
    "mute.pdf": (numbered_font_pdf((36, 37), "Identity"), "no_text", "no font says what the letters", ""),
    "ligatures.txt": ("The e\ufb03cient \ufb01nance o\ufb03ce".encode(), "indexed", "", "The efficient finance office"),
    "columns.pdf": (
        drawn_across(COLUMNS),
        "indexed",
        "put in order: 1",
        "row 22 is kept by the harbour The quay of row 23",
    ),
    "bomb.pdf": (raw_pdf(b" " * 100_000_000, compress=True), "too_large", "unpacks to more than the limit", ""),
    "attachment.pdf": (with_attachment(), "indexed", "attached files not read: plan.dwg", "The plan of the quay"),
    "outline.pdf": (outlined(), "indexed", "", "closed while there is ice"),
    "frame.html": (
        b"<nav>Home | Login</nav><main><p>The meat of the page.</p></main><footer>Imprint</footer>",
        "indexed",
        "",
        "The meat of the page.",
    ),
    "old.doc": (OLD_WORD, "rejected", "which is not read", ""),
    "sums.xlsx": (
        office("xl", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"),
        "rejected",
        "which is not read",
        "",
    ),
    "slides.pptx": (
        office("ppt", "application/vnd.openxmlformats-officedocument.presentationml.presentation"),
        "rejected",
        "which is not read",
        "",
    ),
    "notes.docx": (
        docx(table(("Fee", "30"), ("Term", "5")), NOTED, parts={"footnotes": NOTE}),
        "indexed",
        "",
        "Fee | 30\nTerm | 5\n\nSee[1]\n[1] A note below the table.",
    ),
    "locked.docx": (LOCKED_WORD, "encrypted", "a password is needed", ""),
    "embedding.docx": (embedding(), "indexed", "embedded objects not read: 1", "The contract holds the annex"),
    "cut.docx": (docx(p("Words."))[:200], "damaged", "cannot be unpacked", ""),
    "bomb.docx": (
        docx(raw={"word/document.xml": b"<w:t>a</w:t>" * 3_000_000}),
        "too_large",
        "unpacks to more than",
        "",
    ),
}


def test_every_kind_of_broken_file_ends_as_it_should_and_all_of_them_are_reported(
    database: Database, tmp_path: Path
) -> None:
    folder = tmp_path / "docs"
    folder.mkdir()
    for name, (data, *_) in TWINS.items():
        (folder / name).write_bytes(data)
    embedder = HashEmbedder()
    create_collection(database, "TWINS", embedder.identity())
    report = ingest(database, "TWINS", [folder], embedder, IngestOptions(bank=folder))
    outcomes = {outcome.source: outcome for outcome in report.outcomes}
    assert outcomes.keys() == TWINS.keys()
    with database.owner("kb_twins") as connection:
        ledger = {
            row[0]: row[1:] for row in connection.execute("SELECT source, status, reason, chunk_count FROM files")
        }
        passages = connection.execute("SELECT source, text FROM chunks").fetchall()
    texts = {name: "\n\n".join(text for source, text in passages if source == name) for name in TWINS}
    wrong: list[str] = []
    for name, (_, status, reason, phrase) in TWINS.items():
        found, why, count = ledger[name]
        settled = found == status and reason in why and bool(why) == bool(reason or status == "damaged")
        told = (str(outcomes[name].status), outcomes[name].chunks) == (found, count)
        if not (settled and told and phrase in texts[name] and bool(texts[name]) == (status == "indexed")):
            wrong.append(f"{name}: {found}, {why!r}, {outcomes[name]}, {texts[name][:200]!r}")
    assert wrong == []
    assert search(database, "TWINS", "日本語", embedder).passages[0].source == "vertical.pdf"
    again = ingest(database, "TWINS", [folder], embedder, IngestOptions(bank=folder))
    assert {o.source: (o.mark in "=!", o.status) for o in again.outcomes} == {
        name: (True, outcome.status) for name, outcome in outcomes.items()
    }
