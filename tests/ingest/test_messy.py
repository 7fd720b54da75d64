"""Real files that break extractors, kept outside of this project: what becomes of each, reviewed by eye.

Every kind of them has a twin made here that runs without them, in test_twins.py and the test_extract_*.py beside it.
"""

import os
from pathlib import Path

import pytest

from agent_server.catalog import create_collection
from agent_server.db import Database
from agent_server.ingest.pipeline import ingest
from agent_server.ingest.steps import IngestOptions
from agent_server.retrieval.search import search
from tests.hash_embedder import HashEmbedder

DATA = Path(os.environ.get("KB_TEST_DATA", "")) / "messy"
pytestmark = [
    pytest.mark.needs_data,
    pytest.mark.skipif(not (os.environ.get("KB_TEST_DATA") and DATA.is_dir()), reason="KB_TEST_DATA is not set"),
]

#: file -> (status, what the reason says, phrases that its passages hold). A phrase over a hyphen, a page or a column
#: shows that the text is in order there.
EXPECTED: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "MANIFEST.tsv": ("rejected", ".tsv files are not read (content text/plain)", ()),
    "made__bom_crlf.md": ("indexed", "", ("# Title\n\n```python\nx = 1  # see section 9", "| 1 | 2 |")),
    "made__empty.pdf": ("empty", "has no bytes", ()),
    "made__html_named.pdf": ("rejected", "is named .pdf but its content is text/html", ()),
    "made__latin1.txt": ("indexed", "", ("Café déjà vu - naïve résumé. § 12 means the twelfth section.",)),
    "made__nul_bytes.txt": ("indexed", "removed 4 NUL characters", ("good line\nbadline\nsee section 3",)),
    "made__truncated_half.pdf": ("damaged", "the file is cut off", ()),
    "made__utf16_bom.txt": ("indexed", "", ('The term "Party" means a signatory. See Article 7.',)),
    "pdf.js__ArabicCIDTrueType.pdf": ("indexed", "", ("انواع الخطوط العربية",)),
    "pdf.js__copy_paste_ligatures.pdf": ("indexed", "", ("abcdeffffiflffifflststghijklmno",)),
    "pdf.js__scan-bad.pdf": ("no_text", "no text on pages 1 (a scan?", ()),
    "pdf.js__vertical.pdf": ("indexed", "pages without text: 2-3", ("あいうえお日本語",)),
    "pdfminer.six__aes-256-r6.pdf": ("encrypted", "a password is needed", ()),
    "pdfminer.six__i1040nr.pdf": (
        "indexed",
        "pages drawn across their columns, put in order: 1-13, 15-32, 48",
        (
            "Section references are to the Internal Revenue Code unless otherwise noted.",
            "The 2007 rate for business use of your vehicle is",
            "you are considered a resident alien if you meet either the green card test or the substantial presence",
            "Form 8615 will be required to figure the tax for the following children with investment income of more",
        ),
    ),
    "pdfminer.six__jo.pdf": (
        "indexed",
        "",
        ("わたくしといふ現象は假定された有機交流電燈のひとつの青い照明です", "大正十三年一月廿日"),
    ),
    "pdfminer.six__naacl06-shinyama.pdf": (
        "indexed",
        "",
        (
            "We are trying to extend the boundary of Information Extraction (IE) systems.",
            "such as hurricanes or murders, are reported again and again",
            "2005-09-23 Katrina | New Orleans",
        ),
    ),
    "pdfminer.six__zen_of_python_corrupted.pdf": (
        "indexed",
        "",
        ("Beautiful is better than ugly.", "Although practicality beats purity."),
    ),
    "pypdf__GeoBase_NHNC1_Data_Model_UML_EN.pdf": (
        "indexed",
        "pages whose words run together",
        (
            "The Linear Reference System (LRS) is considered the most viable approach",
            "NHNC1 | National Hydro Network, Canada, Level 1",
        ),
    ),
    "pypdf__issue-297.pdf": ("indexed", "", ("test example",)),
    "pypdf__r3-empty-password.pdf": ("indexed", "", ("pdf encryption test",)),
    "pypdf__side-by-side-subfig.pdf": ("indexed", "", ("(a) South American coati", "Figure 1.1: Bears")),
    "sample-files__GeoTopo-komprimiert.pdf": (
        "indexed",
        "removed",
        (
            "Die Kugeloberfläche S2 lässt sich durch strecken, stauchen und umformen zur Würfeloberfläche",
            "Ein topologischer Raum ist ein Paar (X, T)",
            "−r(v) sin u",
        ),
    ),
    "sample-files__imagemagick-images.pdf": ("no_text", "no text on pages 1-6 (a scan?", ()),
    "sample-files__multicolumn.pdf": (
        "indexed",
        "",
        (
            "Lorem ipsum dolor sit amet, consectetuer adipiscing elit. Ut purus elit, vestibulum ut",
            "Belgium | 11.5 | 30,689 | Brussels | Dutch, French, German",
        ),
    ),
    "sample-files__with-attachment.pdf": ("indexed", "attached files not read: image.png", ("Lorem ipsum dolor",)),
    "tika__boilerplate.html": ("indexed", "", ("This is the real meat of the page",)),
    "tika__multi-language.txt": ("indexed", "", ("español ABC adhoc prácticas", "Port ABC contratação de sucesso")),
    "tika__testControlCharacters.doc": ("rejected", "content is application/CDFV2", ()),
    "tika__testEXCEL.xlsx": ("rejected", "spreadsheetml.sheet, which is not read", ()),
    "tika__testJournalParser.pdf": (
        "indexed",
        "",
        (
            "we present control strategies for implementing reconfigurable planar microassmbly",
            "240 μm × 60 μm × 10 μm mobile stress-engineered microelectromechanical systems (MEMS)",
        ),
    ),
    "tika__testPDFTwoTextBoxes.pdf": (
        "indexed",
        "",
        ("Left column line 1 Left column line 2 Right column line 1 Right column line 2",),
    ),
    "tika__testPDF_bookmarks.pdf": ("indexed", "", ("This is a page about France\n\nThis is a page about Denmark",)),
    "tika__testPDF_protected.pdf": (
        "indexed",
        "",
        ("On 16 November 2002, the first official case of Severe Acute Respiratory Syndrome (SARS) was recorded",),
    ),
    "tika__testPPT.pptx": ("rejected", "presentationml.presentation, which is not read", ()),
    "tika__testTXT_win-1252.txt": ("indexed", "", ("think this is a “windows” encoding",)),
    "tika__testWORD_endnote_table.docx": (
        "indexed",
        "",
        ("Lorem ipsum dolor sit amet", "This is endnote text in a table - The Cat Property Act 2025"),
    ),
    "tika__testWORD_protected_passtika.docx": ("encrypted", "a password is needed", ()),
    "tika__test_recursive_embedded.docx": ("indexed", "embedded objects not read: 1", ("embed_0",)),
}


def test_every_messy_file_ends_as_it_should_with_its_text(database: Database) -> None:
    embedder = HashEmbedder()
    create_collection(database, "MESSY", embedder.identity())
    report = ingest(database, "MESSY", [DATA], embedder, IngestOptions(bank=DATA))
    outcomes = {outcome.source: outcome for outcome in report.outcomes}
    assert outcomes.keys() == EXPECTED.keys() == {path.name for path in DATA.iterdir()}
    with database.owner("kb_messy") as connection:
        ledger = {
            row[0]: row[1:] for row in connection.execute("SELECT source, status, reason, chunk_count FROM files")
        }
        passages: dict[str, list[str]] = {source: [] for source in EXPECTED}
        for source, text in connection.execute("SELECT source, text FROM chunks ORDER BY source, chunk_index"):
            passages[source].append(text)
    wrong: list[str] = []
    for name, (status, reason, phrases) in EXPECTED.items():
        found = ledger[name]
        if found[0] != status or reason not in found[1] or (reason == "" and found[1]):
            wrong.append(f"{name}: {found[0]}, {found[1]!r}")
        if (
            str(outcomes[name].status) != found[0]
            or outcomes[name].chunks != found[2]
            or bool(phrases) != bool(found[2])
        ):
            wrong.append(f"{name}: {outcomes[name]} against {found}")
        wrong += [f"{name}: no passage holds {p!r}" for p in phrases if not any(p in t for t in passages[name])]
    assert wrong == []


def test_they_are_found_by_their_words_and_a_second_run_has_nothing_to_do(database: Database) -> None:
    embedder = HashEmbedder()
    create_collection(database, "MESSY", embedder.identity())
    options = IngestOptions(bank=DATA)
    ingest(database, "MESSY", [DATA], embedder, options)
    for question, source in (
        ("substantial presence test", "pdfminer.six__i1040nr.pdf"),
        ("日本語", "pdf.js__vertical.pdf"),
        ("SARS outbreak", "tika__testPDF_protected.pdf"),
        ("Kugeloberfläche", "sample-files__GeoTopo-komprimiert.pdf"),
        ("South American coati", "pypdf__side-by-side-subfig.pdf"),
    ):
        found = search(database, "MESSY", question, embedder).passages
        assert [p.source for p in found if p.lexical_rank == 1] == [source]
    sent = len(embedder.texts)
    report = ingest(database, "MESSY", [DATA], embedder, options)
    assert len(embedder.texts) == sent
    assert {outcome.mark for outcome in report.outcomes} == {"=", "!"}
