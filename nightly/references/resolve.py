"""From a reference to the place that it names: in its own document first, then in the collection."""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import takewhile

from nightly.references.books import Book, Library
from nightly.references.commentary import Entry
from nightly.references.model import Reference, Step
from nightly.references.names import label_key, outside_keys
from nightly.references.numbering import APPENDED, kinds
from nightly.references.places import Outline, Place
from nightly.references.walk import aside, descend, lettered, section_of, walk

_SECTIONS = frozenset({"section", "article", "rule", "policy", "clause", "recital"})
_FEW = 2  #: a document with fewer places of a kind may be one of many that together hold all of them


@dataclass(frozen=True, slots=True)
class Target:
    """The stretch `start:end` of a source."""

    source: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class Missing:
    """Why a reference leads nowhere."""

    reason: str


Found = Target | Missing | None  #: None: it names nothing that could be linked (the document itself)


def whole(book: Book) -> Target:
    """A document as a whole: it begins with its first heading."""
    headings = book.manuscript.headings
    return Target(book.source, 0, max(headings[0].end if headings else 0, 1))


@dataclass(slots=True)
class Resolver:
    """Resolves the references of one document, in their order. `wants` collects the keys looked up elsewhere."""

    book: Book
    library: Library
    wants: set[str] = field(default_factory=set)
    #: What was named last: its name, its document where that is known, its place where that was found.
    _before: tuple[str, Book | None, Place | None] | None = None

    @property
    def outline(self) -> Outline:
        return self.book.outline

    def resolve(self, ref: Reference) -> Found:
        """What `ref` names."""
        if ref.kind == "near":
            return self._near(ref)
        if ref.outside:
            return self._elsewhere(ref)
        if ref.within in {"that", "that document"}:
            return self._that(ref)
        place, reason = self._own(ref)
        if place is not None:
            if not ref.member:
                self._before = ref.label, self.book, place if isinstance(place, Place) else None
            if place is self.outline.root:
                return None
            return Target(self.outline.manuscript.source, place.start, place.end)
        return self._by_label(ref) or Missing(reason)

    # -- other documents ---------------------------------------------------------------------------------------

    def _elsewhere(self, ref: Reference) -> Found:
        keys = outside_keys(ref.outside)
        if any(key in self.book.names for key in keys) or self._is_own(ref):
            if not ref.steps:
                return None
            place, reason = walk(self.book, self.outline.root, ref.steps)
            return Missing(reason) if place is None else Target(self.outline.manuscript.source, place.start, place.end)
        self._before = ref.outside, None, None
        self.wants |= set(keys)
        for key in keys:
            sources = self.library.called(key)
            if len(sources) > 1:
                return Missing(f"{len(sources)} documents are called {ref.outside}")
            if sources:
                return self._in(sources[0], ref.steps)
        return Missing(f"no document called {ref.outside} in the collection")

    def _is_own(self, ref: Reference) -> bool:
        """Whether "§ 12.9 of Regulation X" stands here: its number says so, whatever the document is called."""
        step = ref.steps[0] if ref.steps else None
        return (
            step is not None
            and step.word == "section"
            and "." in step.number
            and ("section", step.number) in self.book.index
        )

    def _in(self, source: str, steps: tuple[Step, ...]) -> Found:
        other = self.library.book(source)
        if other is None:
            return Missing(f"{source} cannot be read")
        place, reason = walk(other, other.outline.root, steps)
        self._before = source, other, place
        if place is None:
            return Missing(f"{reason} in {source}")
        return whole(other) if place is other.outline.root else Target(source, place.start, place.end)

    def _by_label(self, ref: Reference) -> Found:
        """The only other document with such a place, where this one is no likely holder of it itself."""
        step = ref.steps[0] if ref.steps else None
        if ref.kind != "place" or step is None or not step.number or step.word not in _SECTIONS | APPENDED:
            return None
        if ref.within and ref.within != "document":
            return None
        distinct = step.word == "section" and "." in step.number
        if not distinct and self.book.words.get(step.word, 0) >= _FEW:
            return None
        key = label_key(step.word, step.number)
        self.wants.add(key)
        sources = [s for s in self.library.called(key) if s != self.outline.manuscript.source]
        return self._in(sources[0], ref.steps) if len(sources) == 1 else None

    # -- this document -----------------------------------------------------------------------------------------

    def _own(self, ref: Reference) -> "tuple[Place | Entry | None, str]":
        here = self.outline.at(ref.start)
        if ref.kind == "comment":
            return self._comment(ref)
        if not ref.steps:
            return None, "nothing is named"
        first = ref.steps[0]
        if (first.word in {"paragraph", "point"} and "." not in first.number) or (not first.number and first.path):
            return self._relative(here, ref)
        if ref.within in APPENDED:
            holder = next((p for p in here.ancestors() if p.word in APPENDED), None)
            if holder is not None:
                return walk(self.book, holder, ref.steps)
        if first.word not in APPENDED:
            inner = next((p for p in here.ancestors() if p.word in APPENDED and aside(p) < 2), None)
            if inner is not None and not (first.word == "section" and "." in first.number):
                place, _ = walk(self.book, inner, ref.steps)
                if place is not None:
                    return place, ""
        return walk(self.book, self.outline.root, ref.steps)

    def _comment(self, ref: Reference) -> "tuple[Place | Entry | None, str]":
        step = ref.steps[0]
        place = self.book.commentary.place(step.number, step.path)
        if place is None:
            return None, f"no comments on {step.number}{''.join(f'({v})' for v in step.path)} here"
        if len(ref.steps) == 1:
            return place, ""
        found = self.book.commentary.entry(place, ref.steps[1].path)
        return found, "" if found else f"no comment {'.'.join(ref.steps[1].path)} there"

    def _that(self, ref: Reference) -> Found:
        """ "paragraph 2 of that Article": of the article named before; "section 5 of that regulation": of the other
        document that was."""
        name, book, place = self._before or ("", None, None)
        whole = ref.within == "that document"
        if book is None or (whole and book is self.book) or (place is None and not whole):
            return Missing(f"belongs to {name}" if name else "nothing was named before")
        if whole:
            return self._in(book.source, ref.steps)
        holder = next((p for p in place.ancestors() if p.word in _SECTIONS | APPENDED), place) if place else None
        found, reason = walk(book, holder, ref.steps) if holder else (None, "")
        if found is None:
            return Missing(reason)
        return None if found is self.outline.root else Target(book.source, found.start, found.end)

    def _relative(self, here: Place, ref: Reference) -> tuple[Place | None, str]:
        """A paragraph named from within: of the section, or of the paragraph that the words stand in."""
        spoken_of = self._commented_on(here)
        if spoken_of is not None:
            place, reason = self._from(spoken_of, ref)
            return (place, "") if place is not None else (self._from(here, ref)[0], reason)
        return self._from(here, ref)

    def _from(self, here: Place, ref: Reference) -> tuple[Place | None, str]:
        first, rest = ref.steps[0], ref.steps[1:]
        section = section_of(here)
        path = first.path
        if first.number:
            tail = section.number.rpartition(".")[2]
            if not (path and first.number in {tail, section.number}):
                path = (first.number, *path)
        for holder in self._holders(here, section, path, ref.within):
            begins = holder.child(path[0]) or lettered(holder, path[0])
            place = descend(begins, path[1:])[0] if begins is not None else None
            if place is not None:
                return walk(self.book, place, rest) if rest else (place, "")
        where = str(Step(section.word, section.number)) if section.number else "the document"
        return None, f"no paragraph {''.join(f'({v})' for v in path)} in {where}"

    def _holders(self, here: Place, section: Place, path: tuple[str, ...], within: str) -> list[Place]:
        """Where a path may begin, likeliest first."""
        inner = list(takewhile(lambda place: place is not section, here.ancestors()))
        if within in _SECTIONS or (section.kinds and kinds(path[0]) <= section.kinds):
            return [section, *inner]
        return [*inner, section]

    def _commented_on(self, here: Place) -> Place | None:
        """The place of the main text that a commentary speaks about, for words that stand in one."""
        if not any(p.word in APPENDED for p in here.ancestors()):
            return None
        path: list[str] = []
        for place in here.ancestors():
            if place.level and place.number and (place.word in _SECTIONS or "-" in place.number):
                main = self._main(place)
                if main is None:
                    return None
                for value in reversed(path):
                    child = main.child(value)
                    if child is None:
                        break
                    main = child
                return main
            if place.level and place.reading is not None:
                path.append(place.number)
        return None

    def _main(self, place: Place) -> Place | None:
        same = self.book.index.get((place.word, place.number), [])
        found = min(same, key=aside, default=None)
        return found if found is not None and aside(found) < aside(place) else None

    def _near(self, ref: Reference) -> Found:
        """ "the table above": the nearest one before, or after, with or without a caption."""
        step = ref.steps[0]
        above = step.number == "above"
        spans = self.book.tables if step.word == "table" else self.book.figures
        at = bisect_left(spans, (ref.start, 0))
        side = spans[max(at - 1, 0) : at] if above else spans[at : at + 1]
        if not side:
            return Missing(f"no {step.word} {step.number}")
        return Target(self.book.source, *side[0])
