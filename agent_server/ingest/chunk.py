"""Documents into passages: cut on structure, verbatim, each with its place, pages and paragraph hashes.

`chunk_cut` knows where prose may be cut, `chunk_rows` does tables and code, `chunk_pack` decides what stands
together, `chunk_label` names the place. Pure functions; time is linear in the text.
"""

from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Sequence

from agent_server.errors import InvalidArgument
from agent_server.ingest.chunk_label import context, label
from agent_server.ingest.chunk_pack import PROSE, Atom, Group, Packer
from agent_server.ingest.paragraphs import paragraph_hash
from agent_server.models import Chunk, Document, Mark, Page, Paragraph

Stretch = tuple[int, int, int]  #: start and end in the document, hash


def _check(size: int, overlap: int) -> None:
    if size < 1:
        raise InvalidArgument("size", f"found {size}, expected at least 1 character")
    if not 0 <= overlap < size:
        raise InvalidArgument(
            "overlap",
            f"found {overlap}, expected 0 to {size - 1} with chunks of {size} characters",
            hint="A chunk must bring more new text than it repeats: choose a smaller overlap or a larger size.",
        )


def _runs(atoms: Sequence[Atom]) -> list[tuple[Atom, int]]:
    """Neighbours of one block taken together: their first atom and where the last ends."""
    runs: list[tuple[Atom, int]] = []
    for atom in atoms:
        if runs and runs[-1][0].block == atom.block:
            runs[-1] = (runs[-1][0], atom.end)
        else:
            runs.append((atom, atom.end))
    return runs


def _stretches(document: Document, groups: Sequence[Group]) -> dict[int, list[Stretch]]:
    """By block: the whole paragraph, or its part in each chunk where it was cut, with hashes."""
    found: dict[int, list[Stretch]] = defaultdict(list)
    for group in groups:
        for atom, end in _runs(group.atoms):
            kind = document.blocks[atom.block].kind
            if kind in PROSE or (kind == "table" and atom.whole):
                hash_ = paragraph_hash(document.text[atom.start : end])
                if hash_ is not None:
                    found[atom.block].append((atom.start, end, hash_))
    return found


def _start(stretch: Stretch) -> int:
    return stretch[0]


def _paragraphs(
    group: Group, first_block: int, stretches: dict[int, list[Stretch]], shift: int
) -> tuple[Paragraph, ...]:
    """What of the stretches lies in the group, offsets moved by `shift`; of two with one hash the longer."""
    best: dict[int, Paragraph] = {}
    for block in range(first_block, group.atoms[-1].block + 1):
        inside = stretches.get(block, [])
        # a block of megabytes has thousands of stretches: look only at those from the group's start on
        for at in range(max(bisect_right(inside, group.start, key=_start) - 1, 0), len(inside)):
            start, end, hash_ = inside[at]
            if start >= group.end:
                break
            lo, hi = max(start, group.start), min(end, group.end)
            known = best.get(hash_)
            if lo < hi and (known is None or hi - lo > known.end - known.start):
                best[hash_] = Paragraph(lo + shift, hi + shift, hash_)
    return tuple(sorted(best.values(), key=lambda p: p.start))


def _document_marks(document: Document) -> list[Mark]:
    """Headings, links and anchors of a document, in order."""
    headings = [Mark("heading", b.start, b.end, str(b.level)) for b in document.blocks if b.kind == "heading"]
    return sorted([*headings, *document.marks], key=lambda mark: (mark.start, mark.end))


def _marks(marks: Sequence[Mark], starts: Sequence[int], group: Group, prelude: str) -> tuple[Mark, ...]:
    """The marks that lie within a group, and one for what it repeats. A heading that was cut is marked in part."""
    shift = len(prelude) - group.start
    found = [Mark("repeated", 0, len(prelude))] if prelude else []
    first = bisect_left(starts, group.start)
    while first and marks[first - 1].end > group.start:  # cut by the beginning of the group
        first -= 1
    for mark in marks[first : bisect_left(starts, group.end)]:
        lo, hi = max(mark.start, group.start), min(mark.end, group.end)
        if (lo, hi) == (mark.start, mark.end) or (mark.kind == "heading" and lo < hi):
            found.append(Mark(mark.kind, lo + shift, hi + shift, mark.value))
    return tuple(found)


def _pages(pages: Sequence[Page], starts: Sequence[int], start: int, end: int) -> tuple[int | None, int | None]:
    """Numbers of the pages on which a stretch begins and ends."""
    if not pages:
        return None, None
    first = max(bisect_right(starts, start) - 1, 0)
    last = max(bisect_right(starts, end - 1) - 1, first)
    return pages[first].number, pages[last].number


def _repeated(packer: Packer, group: Group) -> tuple[str, str]:
    """What stands before and after the slice: header rows or fence lines of a block that was cut."""
    first, last = group.atoms[0], group.atoms[-1]
    prelude = packer.parts[first.block].prelude if first.prelude else ""
    closing = "\n" + packer.parts[last.block].closing if last.closing else ""
    return prelude, closing


def chunk_document(document: Document, *, size: int = 800, overlap: int = 100) -> list[Chunk]:
    """The passages of a document in order, about `size` characters each.

    `text` is `prelude + document.text[char_start:char_end]`, followed by the closing line where a fence was cut.
    It is at most `size` * 1.25 characters, not counting what was repeated. A chunk repeats up to `overlap`
    characters of the one before it, in whole sentences, and only within one section. `char_start` strictly
    grows. Raises InvalidArgument unless 0 <= overlap < size.
    """
    _check(size, overlap)
    packer = Packer(document.text, document.blocks, size, overlap)
    groups = packer.pack()
    stretches = _stretches(document, groups)
    pages = sorted(document.pages, key=lambda page: page.start)
    page_starts = [page.start for page in pages]
    marks = _document_marks(document)
    mark_starts = [mark.start for mark in marks]
    chunks: list[Chunk] = []
    for index, group in enumerate(groups):
        prelude, closing = _repeated(packer, group)
        path = packer.path(group)
        # overlap comes from the chunk before and reaches no further back than its first block
        first_block = groups[index - 1].atoms[0].block if group.start < group.atoms[0].start else group.atoms[0].block
        page_first, page_last = _pages(pages, page_starts, group.start, group.end)
        chunks.append(
            Chunk(
                index=index,
                text=prelude + document.text[group.start : group.end] + closing,
                context=context(document.title, path),
                heading_path=path,
                label=label(path),
                page_first=page_first,
                page_last=page_last,
                char_start=group.start,
                char_end=group.end,
                paragraphs=_paragraphs(group, first_block, stretches, len(prelude) - group.start),
                prelude=prelude,
                marks=_marks(marks, mark_starts, group, prelude),
            )
        )
    return chunks
