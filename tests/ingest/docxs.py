"""Small Word documents written by hand: a zip, and the few elements that a test is about."""

import io
import zipfile
from collections.abc import Mapping

TRANSITIONAL = {
    "w": "http://schemas.openxmlformats.org/wordprocessingml/2006/main",
    "r": "http://schemas.openxmlformats.org/officeDocument/2006/relationships",
    "m": "http://schemas.openxmlformats.org/officeDocument/2006/math",
}
STRICT = {
    "w": "http://purl.oclc.org/ooxml/wordprocessingml/main",
    "r": "http://purl.oclc.org/ooxml/officeDocument/relationships",
    "m": "http://purl.oclc.org/ooxml/officeDocument/math",
}
_SAME = {
    "mc": "http://schemas.openxmlformats.org/markup-compatibility/2006",
    "wps": "http://schemas.microsoft.com/office/word/2010/wordprocessingShape",
    "v": "urn:schemas-microsoft-com:vml",
}
_ROOTS = {"header": "hdr", "footer": "ftr"}
_RELS = "http://schemas.openxmlformats.org/package/2006/relationships"


def p(*inside: str, style: str = "", props: str = "") -> str:
    """A paragraph; what is no markup becomes a run."""
    about = (f'<w:pStyle w:val="{style}"/>' if style else "") + props
    return f"<w:p><w:pPr>{about}</w:pPr>{''.join(i if i.startswith('<') else r(i) for i in inside)}</w:p>"


def r(text: str, props: str = "") -> str:
    return f'<w:r><w:rPr>{props}</w:rPr><w:t xml:space="preserve">{text}</w:t></w:r>'


def tc(*blocks: str, props: str = "") -> str:
    inside = "".join(b if b.startswith("<") else p(b) for b in blocks)
    return f"<w:tc><w:tcPr>{props}</w:tcPr>{inside}</w:tc>"


def table(*rows: tuple[str, ...]) -> str:
    """A table; a cell is text or a whole `tc`."""
    lines = ("".join(c if c.startswith("<w:tc>") else tc(c) for c in row) for row in rows)
    return f"<w:tbl>{''.join(f'<w:tr>{line}</w:tr>' for line in lines)}</w:tbl>"


def box(*blocks: str) -> str:
    """A run with a text box as Word writes it: the new way, and the same text again the old way."""
    text = f"<w:txbxContent>{''.join(blocks)}</w:txbxContent>"
    return (
        "<w:r><mc:AlternateContent>"
        f'<mc:Choice Requires="wps"><w:drawing><wps:txbx>{text}</wps:txbx></w:drawing></mc:Choice>'
        f"<mc:Fallback><w:pict><v:textbox>{text}</v:textbox></w:pict></mc:Fallback>"
        "</mc:AlternateContent></w:r>"
    )


def field(instruction: str, result: str) -> str:
    def step(kind: str) -> str:
        return f'<w:r><w:fldChar w:fldCharType="{kind}"/></w:r>'

    says = f"<w:r><w:instrText>{instruction}</w:instrText></w:r>"
    return step("begin") + says + step("separate") + r(result) + step("end")


def style(key: str, name: str, *, based_on: str = "", props: str = "", run: str = "") -> str:
    return (
        f'<w:style w:type="paragraph" w:styleId="{key}"><w:name w:val="{name}"/>'
        + (f'<w:basedOn w:val="{based_on}"/>' if based_on else "")
        + f"<w:pPr>{props}</w:pPr><w:rPr>{run}</w:rPr></w:style>"
    )


def docx(
    *body: str,
    parts: Mapping[str, str] | None = None,
    title: str = "",
    namespaces: Mapping[str, str] = TRANSITIONAL,
    raw: Mapping[str, bytes] | None = None,
    method: int = zipfile.ZIP_DEFLATED,
) -> bytes:
    """The file. `parts`: content of parts beside the document by kind ("styles", "footnotes", "header1": "header" with
    id "header1"); `raw`: members as they are, in place of those made here."""
    declared = "".join(f' xmlns:{k}="{v}"' for k, v in {**namespaces, **_SAME}.items())
    kinds = {part: part.rstrip("0123456789") for part in parts or {}}
    members: dict[str, bytes] = {
        "[Content_Types].xml": b"<Types/>",
        "_rels/.rels": _relations(namespaces, {"main": ("officeDocument", "word/document.xml")}),
        "word/_rels/document.xml.rels": _relations(namespaces, {p: (kind, f"{p}.xml") for p, kind in kinds.items()}),
        "word/document.xml": f"<w:document{declared}><w:body>{''.join(body)}</w:body></w:document>".encode(),
        "docProps/core.xml": (
            '<c:coreProperties xmlns:c="http://schemas.openxmlformats.org/package/2006/metadata/core-properties" '
            f'xmlns:dc="http://purl.org/dc/elements/1.1/"><dc:title>{title}</dc:title></c:coreProperties>'
        ).encode(),
    }
    for part, inside in (parts or {}).items():
        root = _ROOTS.get(kinds[part], kinds[part])
        members[f"word/{part}.xml"] = f"<w:{root}{declared}>{inside}</w:{root}>".encode()
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", method) as archive:
        for name, data in {**members, **(raw or {})}.items():
            archive.writestr(name, data)
    return out.getvalue()


def _relations(namespaces: Mapping[str, str], found: Mapping[str, tuple[str, str]]) -> bytes:
    lines = (
        f'<Relationship Id="{key}" Type="{namespaces["r"]}/{kind}" Target="{target}"/>'
        for key, (kind, target) in found.items()
    )
    return f'<Relationships xmlns="{_RELS}">{"".join(lines)}</Relationships>'.encode()
