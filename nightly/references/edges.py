"""The edges of one document: every reference and link in it with the place it leads to, in terms of passages."""

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from nightly.references.books import Book, Library
from nightly.references.grammar import references
from nightly.references.manuscript import Manuscript, Spot
from nightly.references.markup import Pointer, pointers
from nightly.references.model import Reference
from nightly.references.pointing import follow, pointer_label
from nightly.references.resolve import Found, Missing, Resolver, Target

_MAX_ANCHOR = 500
_MAX_LABEL = 200


@dataclass(frozen=True, slots=True)
class Link:
    """An edge: the words at `origin` lead to the stretch at `target`."""

    origin: Spot
    target: Spot
    anchor: str
    label: str


@dataclass(frozen=True, slots=True)
class Dangling:
    """Words that lead nowhere, and why."""

    origin: Spot
    anchor: str
    label: str
    reason: str


@dataclass(slots=True)
class Edges:
    """What was found in a document. `wants`: keys that were looked for in other documents."""

    links: list[Link] = field(default_factory=list)
    dangling: list[Dangling] = field(default_factory=list)
    wants: set[str] = field(default_factory=set)


def edges_of(book: Book, library: Library) -> Edges:
    """All edges that begin in `book`, in the order of the text."""
    edges = Edges()
    resolver = Resolver(book, library)
    manuscript = book.manuscript
    for found in found_in(manuscript):
        if isinstance(found, Pointer):
            target: Found = follow(found, book, library, edges.wants)
            label = pointer_label(found)
        else:
            target = resolver.resolve(found)
            label = found.label
        _add(edges, library, manuscript, found, target, label)
    edges.wants |= resolver.wants
    return edges


def found_in(manuscript: Manuscript) -> list[Reference | Pointer]:
    """References and links in order. Words of a link are not read again, nor are headings: their numbers are names."""
    links = pointers(manuscript)
    headings = _Stretches((h.start, h.end) for h in manuscript.headings)
    covered = _Stretches((p.start, p.end) for p in links if p.sure or p.leads_out)
    prose = [
        r
        for r in references(manuscript.text)
        if not covered.touch(r.start, r.end) and (r.kind == "document" or not headings.touch(r.start, r.end))
    ]
    return sorted([*(p for p in links if not p.leads_out), *prose], key=lambda one: (one.start, one.end))


class _Stretches:
    """Answers whether a stretch touches one of many."""

    def __init__(self, stretches: Iterable[tuple[int, int]]) -> None:
        merged: list[tuple[int, int]] = []
        for start, end in sorted(stretches):
            if merged and start < merged[-1][1]:
                merged[-1] = merged[-1][0], max(end, merged[-1][1])
            else:
                merged.append((start, end))
        self.merged: Sequence[tuple[int, int]] = merged

    def touch(self, start: int, end: int) -> bool:
        index = bisect_right(self.merged, (start, end)) - 1
        near = self.merged[max(index, 0) : index + 2]
        return any(lo < end and start < hi for lo, hi in near)


def _add(
    edges: Edges, library: Library, manuscript: Manuscript, found: Reference | Pointer, target: Found, label: str
) -> None:
    if target is None:
        return
    origins = manuscript.holding(found.start, found.end)
    anchor = manuscript.text[found.start : found.end][:_MAX_ANCHOR]
    if isinstance(target, Missing):
        if not isinstance(found, Pointer) or found.sure:
            edges.dangling += [Dangling(o, anchor, label[:_MAX_LABEL], target.reason) for o in origins]
        return
    landing = _landing(library, manuscript, target)
    if landing is not None:
        edges.links += [Link(origin, landing, anchor, label[:_MAX_LABEL]) for origin in origins]


def _landing(library: Library, manuscript: Manuscript, target: Target) -> Spot | None:
    if target.source == manuscript.source:
        return manuscript.landing(target.start, target.end)
    book = library.book(target.source)
    return book.manuscript.landing(target.start, target.end) if book is not None else None
