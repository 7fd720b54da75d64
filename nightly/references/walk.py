"""Steps to a place within one document: "§ 12.4(a), Appendix B" from where they start, and why they end nowhere."""

from nightly.references.books import Book
from nightly.references.model import Step
from nightly.references.numbering import APPENDED, LOOSE, roman
from nightly.references.places import Place

#: Words that mean the same before a number: a contract's "clause 4.2" is headed "4.2" or "Section 4.2".
_SAME = ("section", "clause", "rule", "paragraph")


def walk(book: Book, start: Place, steps: tuple[Step, ...]) -> tuple[Place | None, str]:
    """Along `steps`, and why not. A step that names the document itself, as its title does, leads nowhere further."""
    place = start
    for step in steps:
        if (step.word, step.number) in book.titles and not step.path:
            place = book.outline.root
            continue
        found = numbered(book, place, step) if step.number else place
        if found is None:
            return None, f"no {step}" if place.parent is None else f"no {step} there"
        found, reason = descend(found, step.path)
        if found is None:
            return None, reason
        place = found
    return place, ""


def section_of(here: Place) -> Place:
    """The section that a place lies in: the innermost numbered heading around it, else the document."""
    return next((p for p in here.ancestors() if p.parent is None or (p.level and (p.word or p.number))), here)


def aside(place: Place) -> int:
    """How far a place stands from the main text: 0 in it, 1 in an appendix, 2 in a commentary."""
    around = {p.word for p in place.ancestors()}
    return 2 if "supplement" in around else int(not around.isdisjoint(APPENDED))


def lies_in(place: Place, holder: Place) -> bool:
    return any(p is holder for p in place.ancestors())


def numbered(book: Book, start: Place, step: Step) -> Place | None:
    """The place with a step's word and number below `start`; of several the first of the main text."""
    words = [step.word]
    if step.word in LOOSE:
        words += ["", *(w for w in _SAME if w != step.word and step.word in _SAME)]
    elif step.word == "form" or (step.word in APPENDED and "-" in step.number):
        words += ["", "form"]
    for word in words:
        found = [p for p in book.index.get((word, step.number), []) if start.parent is None or lies_in(p, start)]
        if found:
            return min(found, key=aside)
    if step.word == "section" and step.number.isdigit() and start.parent is None:
        same = book.tails.get(step.number, []) if step.path else book.own_tails.get(step.number, [])
        if same and len({p.number for p in same}) == 1:  # "section 4(a)" of what is headed "§ 12.4"
            return min(same, key=aside)
    if start.parent is not None:
        child = start.child(step.number) or start.child(step.number.upper())
        if child is not None:
            return child
    if step.word in {"chapter", "part", "title", "book"} and roman(step.number):  # "Chapter II" of what is headed "2."
        same = [p for p in book.index.get(("", str(roman(step.number))), []) if p.level and lies_in(p, start)]
        if same:
            return min(same, key=aside)
    if "." in step.number and not step.number[0].isdigit():  # "Part I.E"
        place: Place | None = start
        for number in step.number.split("."):
            place = numbered(book, place, Step(step.word, number)) if place is not None else None
        return place
    return None


def descend(place: Place, path: tuple[str, ...]) -> tuple[Place | None, str]:
    """Along a path of paragraphs. Where a place shows no paragraphs at all, it stands for them."""
    for value in path:
        child = place.child(value) or lettered(place, value)
        if child is None:
            if place.kinds:
                return None, f"no paragraph ({value}) in {Step(place.word, place.number)}"
            return (place, "") if place.parent is not None else (None, f"no paragraph ({value})")
        place = child
    return place, ""


def lettered(place: Place, value: str) -> Place | None:
    """A heading "A. ..." for the path "(A)"."""
    child = place.child(value.lower())
    return child if child is not None and child.level else None
