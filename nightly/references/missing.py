"""Sections that lost their number: "12.1", a section without number, "12.3"."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from nightly.references.places import Place


def name_missing(root: "Place") -> None:
    """Give sections without number theirs, where the numbers around them leave exactly as many free as there are."""
    todo = [root]
    while todo:
        parent = todo.pop()
        todo += parent.children
        if any(child.level and not child.number for child in parent.children):
            _among(parent)


def _among(parent: "Place") -> None:
    children = parent.children
    at = 0
    while at < len(children):
        if children[at].number or not children[at].level:
            at += 1
            continue
        end = at
        while end < len(children) and children[end].level and not children[end].number:
            end += 1
        before = children[at - 1] if at else None
        after = children[end] if end < len(children) else None
        _fill(parent, children[at:end], before, after)
        at = end


def _fill(parent: "Place", nameless: "list[Place]", before: "Place | None", after: "Place | None") -> None:
    if before is None or after is None or before.word != after.word:
        return
    stem, _, first = before.number.rpartition(".")
    other, _, last = after.number.rpartition(".")
    if stem != other or not (first.isdigit() and last.isdigit()) or int(last) - int(first) - 1 != len(nameless):
        return
    for place, number in zip(nameless, range(int(first) + 1, int(last)), strict=True):
        place.number = f"{stem}.{number}" if stem else str(number)
        parent.name(place)
