"""From a reference to the place that it names: in its own document first, then in the collection."""

from bisect import bisect_left
from dataclasses import dataclass, field
from itertools import takewhile

from nightly.references.books import Book, Library
from nightly.references.commentary import Entry
from nightly.references.model import Reference, Step
from nightly.references.names import label_key, outside_keys
from nightly.references.numbering import APPENDED, LOOSE, kinds, roman
from nightly.references.places import Outline, Place

_SECTIONS = frozenset({"section", "article", "rule", "policy", "clause", "recital"})
#: Words that mean the same before a number: a contract's "clause 4.2" is headed "4.2" or "Section 4.2".
_SAME = ("section", "clause", "rule", "paragraph")
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


@dataclass(slots=True)
class Resolver:
    """Resolves the references of one document, in their order. `wants` collects the keys looked up elsewhere."""

    book: Book
    library: Library
    wants: set[str] = field(default_factory=set)
    _before: tuple[Reference, Place | None] | None = None

    @property
    def outline(self) -> Outline:
        return self.book.outline

    def resolve(self, ref: Reference) -> Found:
        """What `ref` names."""
        if ref.kind == "near":
            return self._near(ref)
        if ref.outside:
            return self._elsewhere(ref)
        place, reason = self._own(ref)
        if place is not None:
            if not ref.member and ref.within != "that":
                self._before = ref, place if isinstance(place, Place) else None
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
            place, reason = _walk(self.book, self.outline.root, ref.steps)
            return Missing(reason) if place is None else Target(self.outline.manuscript.source, place.start, place.end)
        self._before = ref, None
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
        if not steps:
            headings = other.manuscript.headings
            return Target(source, 0, max(headings[0].end if headings else 0, 1))
        place, reason = _walk(other, other.outline.root, steps)
        return Missing(f"{reason} in {source}") if place is None else Target(source, place.start, place.end)

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
        if ref.within == "that":
            return self._that(ref)
        if not ref.steps:
            return None, "nothing is named"
        first = ref.steps[0]
        if (first.word in {"paragraph", "point"} and "." not in first.number) or (not first.number and first.path):
            return self._relative(here, ref)
        if ref.within in APPENDED:
            holder = next((p for p in here.ancestors() if p.word in APPENDED), None)
            if holder is not None:
                return _walk(self.book, holder, ref.steps)
        if first.word not in APPENDED:
            inner = next((p for p in here.ancestors() if p.word in APPENDED and _aside(p) < 2), None)
            if inner is not None and not (first.word == "section" and "." in first.number):
                place, _ = _walk(self.book, inner, ref.steps)
                if place is not None:
                    return place, ""
        return _walk(self.book, self.outline.root, ref.steps)

    def _comment(self, ref: Reference) -> "tuple[Place | Entry | None, str]":
        step = ref.steps[0]
        place = self.book.commentary.place(step.number, step.path)
        if place is None:
            return None, f"no comments on {step.number}{''.join(f'({v})' for v in step.path)} here"
        if len(ref.steps) == 1:
            return place, ""
        found = self.book.commentary.entry(place, ref.steps[1].path)
        return found, "" if found else f"no comment {'.'.join(ref.steps[1].path)} there"

    def _that(self, ref: Reference) -> tuple[Place | None, str]:
        """ "paragraph 2 of that Article": of the article named before."""
        if self._before is None:
            return None, "nothing was named before"
        before, place = self._before
        if place is None:
            return None, f"belongs to {before.outside or 'what was named before'}"
        holder = next((p for p in place.ancestors() if p.word in _SECTIONS | APPENDED), place)
        return _walk(self.book, holder, ref.steps) if ref.steps else (holder, "")

    def _relative(self, here: Place, ref: Reference) -> tuple[Place | None, str]:
        """A paragraph named from within: of the section, or of the paragraph that the words stand in."""
        spoken_of = self._commented_on(here)
        if spoken_of is not None:
            place, reason = self._from(spoken_of, ref)
            return (place, "") if place is not None else (self._from(here, ref)[0], reason)
        return self._from(here, ref)

    def _from(self, here: Place, ref: Reference) -> tuple[Place | None, str]:
        first, rest = ref.steps[0], ref.steps[1:]
        section = _section(here)
        path = first.path
        if first.number:
            tail = section.number.rpartition(".")[2]
            if not (path and first.number in {tail, section.number}):
                path = (first.number, *path)
        for holder in self._holders(here, section, path, ref.within):
            begins = holder.child(path[0]) or _lettered(holder, path[0])
            place = _descend(begins, path[1:])[0] if begins is not None else None
            if place is not None:
                return _walk(self.book, place, rest) if rest else (place, "")
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
        found = min(same, key=_aside, default=None)
        return found if found is not None and _aside(found) < _aside(place) else None

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


# -- steps ------------------------------------------------------------------------------------------------------


def _walk(book: Book, start: Place, steps: tuple[Step, ...]) -> tuple[Place | None, str]:
    """Along `steps`, and why not."""
    place = start
    for step in steps:
        found = _numbered(book, place, step) if step.number else place
        if found is None:
            return None, f"no {step}" if place.parent is None else f"no {step} there"
        found, reason = _descend(found, step.path)
        if found is None:
            return None, reason
        place = found
    return place, ""


def _section(here: Place) -> Place:
    """The section that a place lies in: the innermost numbered heading around it, else the document."""
    return next((p for p in here.ancestors() if p.parent is None or (p.level and (p.word or p.number))), here)


def _aside(place: Place) -> int:
    """How far a place stands from the main text: 0 in it, 1 in an appendix, 2 in a commentary."""
    around = {p.word for p in place.ancestors()}
    return 2 if "supplement" in around else int(not around.isdisjoint(APPENDED))


def _lies_in(place: Place, holder: Place) -> bool:
    return any(p is holder for p in place.ancestors())


def _numbered(book: Book, start: Place, step: Step) -> Place | None:
    """The place with a step's word and number below `start`; of several the first of the main text."""
    words = [step.word]
    if step.word in LOOSE:
        words += ["", *(w for w in _SAME if w != step.word and step.word in _SAME)]
    elif step.word == "form" or (step.word in APPENDED and "-" in step.number):
        words += ["", "form"]
    for word in words:
        found = [p for p in book.index.get((word, step.number), []) if start.parent is None or _lies_in(p, start)]
        if found:
            return min(found, key=_aside)
    if step.word == "section" and step.path and step.number.isdigit() and start.parent is None:
        same = book.tails.get(step.number, [])
        if same and len({p.number for p in same}) == 1:  # "section 4(a)" of what is headed "§ 12.4"
            return min(same, key=_aside)
    if start.parent is not None:
        child = start.child(step.number) or start.child(step.number.upper())
        if child is not None:
            return child
    if step.word in {"chapter", "part", "title", "book"} and roman(step.number):  # "Chapter II" of what is headed "2."
        same = [p for p in book.index.get(("", str(roman(step.number))), []) if p.level and _lies_in(p, start)]
        if same:
            return min(same, key=_aside)
    if "." in step.number and not step.number[0].isdigit():  # "Part I.E"
        place: Place | None = start
        for number in step.number.split("."):
            place = _numbered(book, place, Step(step.word, number)) if place is not None else None
        return place
    return None


def _descend(place: Place, path: tuple[str, ...]) -> tuple[Place | None, str]:
    """Along a path of paragraphs. Where a place shows no paragraphs at all, it stands for them."""
    for value in path:
        child = place.child(value) or _lettered(place, value)
        if child is None:
            if place.kinds:
                return None, f"no paragraph ({value}) in {Step(place.word, place.number)}"
            return (place, "") if place.parent is not None else (None, f"no paragraph ({value})")
        place = child
    return place, ""


def _lettered(place: Place, value: str) -> Place | None:
    """A heading "A. ..." for the path "(A)"."""
    child = place.child(value.lower())
    return child if child is not None and child.level else None
