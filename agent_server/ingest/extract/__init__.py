"""Files into documents: clean text, blocks, headings, pages. One module per format, no database, no settings."""

from collections.abc import Callable, Sequence

from agent_server.ingest.extract.docx import extract_docx
from agent_server.ingest.extract.html import extract_html
from agent_server.ingest.extract.markdown import extract_markdown
from agent_server.ingest.extract.pdf import extract_pdf
from agent_server.ingest.extract.plain import extract_plain
from agent_server.ingest.extract.rst import extract_rst
from agent_server.models import Document, FileStatus, Rejected, SourceFile

_EXTRACTORS: dict[str, Callable[[SourceFile], Document | Rejected]] = {
    "text/markdown": extract_markdown,
    "text/plain": extract_plain,
    "text/html": extract_html,
    "text/x-rst": extract_rst,
    "application/pdf": extract_pdf,
    "application/vnd.openxmlformats-officedocument.wordprocessingml.document": extract_docx,
}


def extract(file: SourceFile, passwords: Sequence[str] = ()) -> Document | Rejected:
    """What the file says, or why it says nothing. Offsets count characters of the cleaned text.

    `passwords` are tried on encrypted PDFs, after the empty one; none is ever logged or stored.
    """
    extractor = _EXTRACTORS.get(file.media_type)
    if extractor is None:
        return Rejected(
            file.source,
            FileStatus.REJECTED,
            f"content is {file.media_type}, which is not read",
            file.sha256,
            file.size_bytes,
            file.media_type,
        )
    return extract_pdf(file, passwords) if extractor is extract_pdf else extractor(file)


__all__ = ["extract"]
