"""A large text's windows into documents: each read by its format's extractor, below the headings of those before."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace

from agent_server.ingest.extract.headings import LineHeading
from agent_server.ingest.extract.markdown import extract_markdown
from agent_server.ingest.extract.plain import extract_plain
from agent_server.models import Block, Document, LargeText, Rejected, SourceFile

OpenHeadings = tuple[tuple[int, str], ...]  #: level and title, outermost first


def documents(file: LargeText, windows: Iterable[str]) -> Iterator[Document]:
    """One document a window that holds text. Title, date, front matter and `retired` are those of the first one."""
    first: Document | None = None
    above: OpenHeadings = ()
    earlier: list[LineHeading] = []
    for window in windows:
        # As bytes, since extractors decode; what a decoder has let through comes back the same.
        data = window.encode("utf-8", "surrogatepass")
        piece = SourceFile(file.path, file.source, data, file.sha256, len(data), file.media_type)
        plain = file.media_type == "text/plain"
        got = extract_plain(piece, earlier) if plain else extract_markdown(piece)
        if isinstance(got, Rejected):
            continue  # blanks
        blocks, above = continued(got.blocks, above)
        if first is None:
            first = got
        yield replace(
            got,
            blocks=blocks,
            title=first.title,
            dated=first.dated,
            retired=first.retired,
            metadata=first.metadata,
        )


def continued(blocks: Sequence[Block], above: OpenHeadings) -> tuple[tuple[Block, ...], OpenHeadings]:
    """`blocks` below the headings that were open before them, and the headings that are open after them."""
    out: list[Block] = []
    for block in blocks:
        if block.kind == "heading":
            above = (*(h for h in above if h[0] < block.level), (block.level, block.heading_path[-1]))
        out.append(replace(block, heading_path=tuple(title for _, title in above)))
    return tuple(out), above
