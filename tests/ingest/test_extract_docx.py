import io
import zipfile

import pytest

from agent_server.ingest import package
from agent_server.ingest.extract import extract
from agent_server.models import FileStatus
from tests.ingest.docxs import STRICT, TRANSITIONAL, box, docx, field, p, r, style, table, tc
from tests.ingest.shape import kinds, outline, read, refused, source

DOCX = "application/vnd.openxmlformats-officedocument.wordprocessingml.document"
NOTE = '<w:footnote w:id="2">' + p("Unless the moon is full.") + "</w:footnote>"
SEPARATOR = '<w:footnote w:type="separator" w:id="0">' + p("-----") + "</w:footnote>"
REFERENCE = '<w:r><w:footnoteReference w:id="2"/></w:r>'
NUMBERING = (
    '<w:abstractNum w:abstractNumId="7">'
    '<w:lvl w:ilvl="0"><w:start w:val="4"/><w:numFmt w:val="decimal"/><w:pStyle w:val="H1"/><w:lvlText w:val="%1"/>'
    "</w:lvl>"
    '<w:lvl w:ilvl="1"><w:numFmt w:val="decimal"/><w:lvlText w:val="%1.%2"/></w:lvl>'
    '<w:lvl w:ilvl="2"><w:numFmt w:val="lowerLetter"/><w:lvlText w:val="(%3)"/></w:lvl></w:abstractNum>'
    '<w:abstractNum w:abstractNumId="8"><w:lvl w:ilvl="0"><w:numFmt w:val="bullet"/><w:lvlText w:val="&#xF0B7;"/>'
    '</w:lvl><w:lvl w:ilvl="1"><w:numFmt w:val="upperRoman"/><w:lvlText w:val="%2."/></w:lvl></w:abstractNum>'
    '<w:num w:numId="1"><w:abstractNumId w:val="7"/></w:num><w:num w:numId="2"><w:abstractNumId w:val="8"/></w:num>'
)


def item(level: int, num: int) -> str:
    return f'<w:numPr><w:ilvl w:val="{level}"/><w:numId w:val="{num}"/></w:numPr>'


@pytest.mark.parametrize("namespaces", [TRANSITIONAL, STRICT], ids=["transitional", "strict"])
def test_the_body_is_read_in_its_order_with_table_box_and_note(namespaces: dict[str, str]) -> None:
    data = docx(
        p("Loans end on Friday.", REFERENCE),
        table(("Fee", "30"), ("Term", "5")),
        p("Before the box. ", box(p("NOTE 7")), "After it."),
        p("The end."),
        parts={"footnotes": SEPARATOR + NOTE},
        namespaces=namespaces,
    )
    assert kinds(read(data, DOCX)) == [
        ("paragraph", "Loans end on Friday.[1]"),
        ("paragraph", "[1] Unless the moon is full."),
        ("table", "Fee | 30\nTerm | 5"),
        ("paragraph", "Before the box. After it."),
        ("paragraph", "NOTE 7"),
        ("paragraph", "The end."),
    ]


def test_an_old_text_box_and_one_that_only_the_fallback_holds_are_read_once() -> None:
    old = f"<w:r><w:pict><v:textbox><w:txbxContent>{p('OLD')}</w:txbxContent></v:textbox></w:pict></w:r>"
    bare = (
        '<w:r><mc:AlternateContent><mc:Choice Requires="wpx"><w:drawing/></mc:Choice>'
        f"<mc:Fallback>{r('ONLY HERE')}</mc:Fallback></mc:AlternateContent></w:r>"
    )
    whole = (
        f'<mc:AlternateContent><mc:Choice Requires="wpx">{p("BLOCK")}</mc:Choice>'
        f"<mc:Fallback>{p('BLOCK')}</mc:Fallback></mc:AlternateContent>"
    )
    assert read(docx(p("a", old), p(bare), whole), DOCX).text == "a\n\nOLD\n\nONLY HERE\n\nBLOCK"


def test_notes_are_numbered_in_the_order_of_the_text_and_told_once() -> None:
    end = '<w:endnote w:id="2">' + p("See") + table(("the", "deed")) + "</w:endnote>"
    late = '<w:r><w:endnoteReference w:id="2"/></w:r>'
    data = docx(
        p("A", late), p("B", REFERENCE), p("C", late), p("D", '<w:r><w:footnoteReference w:id="99"/></w:r>'),
        parts={"footnotes": NOTE, "endnotes": end},
    )  # fmt: skip
    assert read(data, DOCX).text == ("A[1]\n[1] See the | deed\n\nB[2]\n[2] Unless the moon is full.\n\nC[1]\n\nD")


def test_headings_come_from_names_outline_levels_and_the_styles_that_others_rest_on() -> None:
    styles = (
        style("Titel", "Title")
        + style("berschrift1", "heading 1", props='<w:outlineLvl w:val="0"/>')
        + style("Named", "Heading 2")
        + style("Own", "Clause", based_on="Named")
        + style("Toc", "TOC Heading", based_on="berschrift1", props='<w:outlineLvl w:val="9"/>')
        + style("Ring", "Ring", based_on="Ring")
    )
    data = docx(
        p("Tool Room Manual", style="Titel"),
        p("Contents", style="Toc"),
        p("Loans", style="berschrift1"),
        p("Who may", "<w:r><w:br/></w:r>", "borrow", REFERENCE, style="Own"),
        p("Direct", props='<w:outlineLvl w:val="2"/>'),
        p("Text.", style="Ring"),
        p("", style="berschrift1"),
        p("Plain", style="berschrift1", props='<w:outlineLvl w:val="9"/>'),
        p("No such style", style="Heading4"),
        parts={"styles": styles, "footnotes": NOTE},
    )
    doc = read(data, DOCX)
    assert outline(doc) == [
        (1, "Tool Room Manual"),
        (1, "Loans"),
        (2, "Who may borrow"),
        (3, "Direct"),
        (4, "No such style"),
    ]
    assert "Who may borrow[1]\n[1] Unless" in doc.text
    assert doc.title == "Tool Room Manual"
    assert ("paragraph", "Contents") in kinds(doc)


def test_lists_and_numbered_headings_have_their_numbers() -> None:
    styles = (
        style("H1", "heading 1", props='<w:numPr><w:numId w:val="1"/></w:numPr>')
        + style("H2", "heading 2", props=item(1, 1))
        + style("ListBullet", "List Bullet", props=item(0, 2))
    )
    data = docx(
        p("Loans", style="H1"),
        p("Terms", style="H2"),
        p("one", props=item(2, 1)),
        p("two", "<w:r><w:br/></w:r>", "lines", props=item(2, 1)),
        p("Fees", style="H2"),
        p("three", props=item(2, 1)),
        p("Text.", style="ListBullet", props='<w:numPr><w:numId w:val="0"/></w:numPr>'),
        p("dot", style="ListBullet"),
        p("inner", props=item(1, 2)),
        p("inner", props=item(1, 2)),
        p("Returns", style="H1"),
        p("Late", style="H2"),
        p("unknown", props=item(0, 77)),
        parts={"styles": styles, "numbering": NUMBERING},
    )
    doc = read(data, DOCX)
    assert outline(doc) == [(1, "4 Loans"), (2, "4.1 Terms"), (2, "4.2 Fees"), (1, "5 Returns"), (2, "5.1 Late")]
    assert [text for kind, text in kinds(doc) if kind == "list_item"] == [
        "    (a) one",
        "    (b) two\n      lines",
        "    (a) three",
        "- dot",
        "  I. inner",
        "  II. inner",
        "- unknown",
    ]
    assert ("paragraph", "Text.") in kinds(doc)


def test_cells_over_several_rows_or_columns_and_deleted_ones_are_read_sensibly() -> None:
    two, more = '<w:vMerge w:val="restart"/>', "<w:vMerge/>"
    gone = table(("gone", "row")).replace("<w:tr>", "<w:tr><w:trPr><w:del/></w:trPr>")
    rows = table(
        (tc("Fees", props='<w:gridSpan w:val="3"/>'),),
        (tc("Saw", props=two), "day", "$2"),
        (tc("", props=more), "week", "$9"),
        (tc("Drill", "with", "bits"), tc("gone", props="<w:cellDel/>"), "year"),
        ("", "", ""),
    )
    data = docx(rows.replace("</w:tbl>", gone.removeprefix("<w:tbl>")))
    assert kinds(read(data, DOCX)) == [
        ("table", "Fees\nSaw | day | $2\nSaw | week | $9\nDrill with bits | year"),
    ]


def test_tables_in_tables_frames_and_controls_keep_their_text_in_order() -> None:
    nested = table(("Fee", "30"), (tc("See", table(("a", "b")), "end"), "x"), ("Term", "5"))
    framed = table((tc(p("Head", style="Heading1"), "In a frame."),), ("Second.",))
    control = f"<w:sdt><w:sdtPr><w:alias w:val='x'/></w:sdtPr><w:sdtContent>{p('In a control.')}</w:sdtContent></w:sdt>"
    assert kinds(read(docx(nested, framed, control), DOCX)) == [
        ("table", "Fee | 30"),
        ("paragraph", "See"),
        ("table", "a | b"),
        ("paragraph", "end"),
        ("paragraph", "x"),
        ("table", "Term | 5"),
        ("heading", "Head"),
        ("paragraph", "In a frame."),
        ("paragraph", "Second."),
        ("paragraph", "In a control."),
    ]


def test_notes_and_boxes_of_cells_follow_the_table() -> None:
    data = docx(table((tc(p("Fee", REFERENCE)), tc(p("30", box(p("NOTE 7")))))), parts={"footnotes": NOTE})
    assert read(data, DOCX).text == "Fee[1] | 30\n[1] Unless the moon is full.\n\nNOTE 7"


def test_deleted_and_hidden_text_is_left_out_and_inserted_text_and_links_are_kept() -> None:
    styles = style("Secret", "Secret", run="<w:vanish/>") + style("Child", "Child", based_on="Secret")
    data = docx(
        p(
            "Fee ",
            "<w:del><w:r><w:delText>20</w:delText></w:r></w:del>",
            f"<w:ins>{r('30')}</w:ins>",
            f"<w:moveFrom>{r('moved')}</w:moveFrom>",
            r("hidden", "<w:vanish/>"),
            r(" shown", '<w:vanish w:val="0"/>'),
            f'<w:hyperlink w:anchor="x">{r(" link")}</w:hyperlink>',
            r("by style", '<w:rStyle w:val="Child"/>'),
        ),
        p("all hidden", style="Child"),
        p("Its end is deleted, ", props="<w:rPr><w:del/></w:rPr>"),
        p("so it goes on."),
        p("And this one", props="<w:rPr><w:del/></w:rPr>"),
        parts={"styles": styles},
    )
    assert read(data, DOCX).text == "Fee 30 shown link\n\nIts end is deleted, so it goes on.\n\nAnd this one"


def test_tabs_breaks_signs_and_formulas_weld_no_words() -> None:
    fraction = f"<m:oMath><m:f><m:num>{mr('a+b')}</m:num><m:den>{mr('2')}</m:den></m:f></m:oMath>"
    power = f"<m:oMath><m:sSup><m:e>{mr('x')}</m:e><m:sup>{mr('10')}</m:sup></m:sSup></m:oMath>"
    data = docx(
        p("Name:", "<w:r><w:tab/></w:r>", "Ada"),
        p("one", "<w:r><w:br/></w:r>", "two", '<w:r><w:br w:type="page"/></w:r>', "three"),
        p("long", "<w:r><w:noBreakHyphen/></w:r>", "term ", '<w:r><w:sym w:font="Wingdings" w:char="F0FE"/></w:r>'),
        p(fraction, " and ", power),
        p("The ", field("REF x", "answer"), " stands."),
    )
    assert read(data, DOCX).text == (
        "Name:\tAda\n\none\ntwo\nthree\n\nlong-term ☒\n\n(a+b)/2 and x^10\n\nThe answer stands."
    )


def mr(text: str) -> str:
    return f"<m:r><m:t>{text}</m:t></m:r>"


def test_headers_and_footers_are_told_once_where_they_say_more_than_the_body() -> None:
    tab = "<w:r><w:tab/></w:r>"
    sections = "".join(f'<w:headerReference r:id="{i}"/>' for i in ("header1", "header2"))
    data = docx(
        p("Tool Room Manual", style="Title"),
        p("Text.", props=f"<w:sectPr>{sections}</w:sectPr>"),
        '<w:sectPr><w:footerReference r:id="footer1"/></w:sectPr>',
        parts={
            "header1": p("TOOL ROOM MANUAL", tab, "Policy 4.2", tab, "Page ", field("PAGE", "2"), " of "),
            "header2": p("Policy 4.2"),
            "header3": p("of no section"),
            "footer1": p('<w:fldSimple w:instr=" PAGE ">' + r("7") + "</w:fldSimple>") + p("In force since May"),
        },
    )
    doc = read(data, DOCX)
    assert doc.text == "TOOL ROOM MANUAL Policy 4.2\n\nPolicy 4.2\n\nIn force since May\n\nTool Room Manual\n\nText."
    assert doc.title == "Tool Room Manual"


def test_the_title_is_that_of_the_properties_unless_a_program_made_it_up() -> None:
    body = p("Loans", style="Heading1")
    assert read(docx(body, title="House &amp; Rules"), DOCX).title == "House & Rules"
    for junk in ("", "x", "untitled", "Document1", "Word Document", "Microsoft Word - a.doc", "rules_v2.docx"):
        assert read(docx(body, title=junk), DOCX).title == "Loans"
    assert read(docx(p("Text.")), DOCX, "a/fee_list.docx").title == "fee list"


def test_what_is_not_read_is_noted() -> None:
    data = docx(p("Text."), parts={"comments": p("Really?"), "chart1": "", "oleObject1": "", "oleObject2": ""})
    assert read(data, DOCX).notes == ("comments not read", "embedded objects not read: 2", "charts not read: 1")


def test_a_broken_part_beside_the_text_is_noted_and_costs_no_more() -> None:
    data = docx(p("Text."), parts={"styles": ""}, raw={"word/styles.xml": b"<w:styles>", "docProps/core.xml": b""})
    doc = read(data, DOCX)
    assert doc.text == "Text."
    assert [note.partition(":")[0] for note in doc.notes] == ["styles not read", "properties not read"]


def test_without_text_it_is_no_text() -> None:
    assert refused(docx(p("")), DOCX).status is FileStatus.NO_TEXT
    assert refused(docx(p(""), parts={"image1": ""}), DOCX).reason == "holds no text, only pictures"


@pytest.mark.parametrize("size", [50, 400, 800, -30])
def test_a_cut_file_is_damaged(size: int) -> None:
    assert refused(docx(p("Text."))[:size], DOCX).status is FileStatus.DAMAGED


@pytest.mark.parametrize(
    "main",
    [b"", b"<w:document/>", b"<a><b></a>", b"\x00\x01", b'<?xml version="1.0" encoding="no-such"?><a/>'],
)
def test_broken_xml_is_damaged(main: bytes) -> None:
    assert refused(docx(raw={"word/document.xml": main}), DOCX).status is FileStatus.DAMAGED


def test_a_zip_without_a_document_is_damaged() -> None:
    data = docx(raw={"_rels/.rels": b"<Relationships/>"}).replace(b"word/document.xml", b"word/dokument.xml")
    rejected = refused(data, DOCX)
    assert (rejected.status, rejected.reason) == (FileStatus.DAMAGED, "word/document.xml is missing")


def test_names_of_members_and_targets_are_never_paths() -> None:
    target = b'<Relationships><Relationship Id="a" Type="x/styles" Target="../../../etc/passwd"/></Relationships>'
    data = docx(p("Text."), raw={"../../evil.xml": b"x", "word/_rels/document.xml.rels": target})
    assert read(data, DOCX).text == "Text."


def test_parts_with_other_names_and_other_case_are_found() -> None:
    main = docx(p("Text."), raw={"_rels/.rels": b'<R><Relationship Id="a"/></R>'})
    assert read(main.replace(b"word/document.xml", b"Word\\Document.XML"), DOCX).text == "Text."
    root = f'<w:document xmlns:w="{TRANSITIONAL["w"]}"><w:body>{p("Second.")}</w:body></w:document>'.encode()
    rels = b'<Relationships><Relationship Id="a" Type="x/officeDocument" Target="/word/document2.xml"/></Relationships>'
    assert read(docx(raw={"word/document2.xml": root, "_rels/.rels": rels}), DOCX).text == "Second."


BILLION = b"<!DOCTYPE w [<!ENTITY a 'ha'>" + b"".join(
    b"<!ENTITY %c '%s'>" % (98 + i, b"&%c;" % (97 + i) * 10) for i in range(9)
)


@pytest.mark.parametrize(
    "prolog",
    [
        b"<!DOCTYPE w>",
        BILLION + b"]>",
        b"<!DOCTYPE w SYSTEM 'http://127.0.0.1:1/x.dtd'>",
        b"<!DOCTYPE w [<!ENTITY a SYSTEM 'file:///etc/passwd'>]>",
    ],
    ids=["empty", "billion", "outside", "file"],
)
@pytest.mark.parametrize("where", [b"<w:t>&a;</w:t>", b'<w:t a="&a;"/>', b""], ids=["text", "attribute", "nowhere"])
def test_a_document_with_a_dtd_is_damaged(prolog: bytes, where: bytes) -> None:
    uri = TRANSITIONAL["w"].encode()
    main = prolog + b'<w:document xmlns:w="%s"><w:body><w:p><w:r>%s</w:r></w:p></w:body></w:document>' % (uri, where)
    for encoded in (main, main.decode().encode("utf-16")):
        assert refused(docx(raw={"word/document.xml": encoded}), DOCX).status is FileStatus.DAMAGED


@pytest.mark.parametrize(
    "part", ["word/document.xml", "word/styles.xml", "word/_rels/document.xml.rels", "_rels/.rels"]
)
def test_a_part_that_unpacks_to_very_much_is_too_large(part: str) -> None:
    bomb = docx(p("Text."), raw={part: b"<w:t>a</w:t>" * 4_000_000})
    assert len(bomb) < 200_000
    assert refused(bomb, DOCX).status is FileStatus.TOO_LARGE


def test_parts_are_too_large_together_by_what_is_really_read(monkeypatch: pytest.MonkeyPatch) -> None:
    data = docx(p("word " * 300), parts={"styles": style("a", "b") * 10}, method=zipfile.ZIP_STORED)
    monkeypatch.setattr(package, "MAX_UNPACKED", 3500)
    rejected = refused(data, DOCX)
    assert (rejected.status, rejected.reason) == (FileStatus.TOO_LARGE, "unpacks to more than 3500 bytes")
    monkeypatch.setattr(package, "MAX_UNPACKED", 35_000)
    assert read(data, DOCX).text


def test_a_size_that_is_declared_too_small_does_not_help_a_bomb() -> None:
    data = bytearray(docx(p("word " * 5000)))
    with zipfile.ZipFile(io.BytesIO(bytes(data))) as archive:
        size = archive.getinfo("word/document.xml").file_size
    lie = bytes(data).replace(size.to_bytes(4, "little"), (10).to_bytes(4, "little"))
    assert refused(lie, DOCX).status is FileStatus.DAMAGED


def test_pictures_of_any_size_are_never_unpacked() -> None:
    assert read(docx(p("Text."), raw={"word/media/image1.emf": bytes(30_000_000)}), DOCX).text == "Text."


@pytest.mark.parametrize("depth", [100, 250, 2000, 100_000])
@pytest.mark.parametrize("wrap", ["sdt", "table", "run"])
def test_deep_nesting_is_read_or_too_large_and_never_raises(wrap: str, depth: int) -> None:
    before, after, core = {
        "sdt": ("<w:sdt><w:sdtContent>", "</w:sdtContent></w:sdt>", p("core")),
        "table": ("<w:tbl><w:tr><w:tc>", "</w:tc></w:tr></w:tbl>", p("core")),
        "run": ("<w:smartTag>", "</w:smartTag>", r("core")),
    }[wrap]
    inside = before * depth + core + after * depth
    data = docx(f"<w:p>{inside}</w:p>" if wrap == "run" else inside)
    if depth == 100 and wrap == "run":
        assert read(data, DOCX).text == "core"
    else:
        extracted = extract(source(data, DOCX, "a.docx"))
        assert getattr(extracted, "status", None) in {None, FileStatus.TOO_LARGE}


def test_a_locked_zip_is_encrypted_and_an_odd_packing_is_damaged() -> None:
    data = bytearray(docx(p("Text.")))
    at = data.rindex(b"PK\x01\x02", 0, data.rindex(b"word/document.xml"))
    locked = bytes(data[: at + 8]) + b"\x01\x00" + bytes(data[at + 10 :])
    assert refused(locked, DOCX).status is FileStatus.ENCRYPTED
    assert refused(docx(p("Text."), method=zipfile.ZIP_LZMA), DOCX).status is FileStatus.DAMAGED


@pytest.mark.parametrize("seed", range(40))
def test_no_change_of_bytes_makes_it_raise(seed: int) -> None:
    method = zipfile.ZIP_STORED if seed % 2 else zipfile.ZIP_DEFLATED
    data = bytearray(docx(p("Text.", REFERENCE), table(("a", "b")), parts={"footnotes": NOTE}, method=method))
    for step in range(5):
        data[(seed * 7919 + step * 104729) % len(data)] = (seed * 31 + step * 17) % 256
    extract(source(bytes(data), DOCX, "a.docx"))
