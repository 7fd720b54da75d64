"""Finds the definitions in a text: the way into this package."""

import re
from collections.abc import Iterator, Sequence

from agent_server.terms import fold_term
from nightly.definitions.entries import TermTable, in_entry
from nightly.definitions.model import PARTIAL, Definition
from nightly.definitions.names import in_passing
from nightly.definitions.scope import announces, is_place_of_definitions, stated
from nightly.definitions.sentences import Place, in_sentences
from nightly.definitions.terms import Term, bare
from nightly.definitions.units import Unit, is_title, units

_LIST_END = 1500


def find_definitions(text: str, heading_path: Sequence[str] = ()) -> list[Definition]:
    """The definitions in `text`, in order of their terms, none twice.

    `text` is a passage or a whole section, `heading_path` the headings above it, outermost first: entries such as
    "X: …" are definitions where a heading (or a sentence before them) says so. Offsets count characters of `text`.
    Nothing is raised, whatever the text.
    """
    return _distinct(_all(text, heading_path))


def _all(text: str, heading_path: Sequence[str]) -> Iterator[Definition]:
    in_place = is_place_of_definitions(heading_path)
    below = in_place
    scope = "document"
    title: Term | None = None
    table = TermTable()
    every = list(units(text))
    for number, unit in enumerate(every):
        words = text[unit.body : unit.end].strip()
        if unit.kind == "row":
            yield from table.read(text, unit, scope, place=below)
            continue
        if unit.kind == "heading" or (is_title(text, unit) and words in heading_path):
            below = in_place or is_place_of_definitions([words])
            title = bare(text, _behind_label(text, unit), unit.end)
            continue
        sentence = words[:600]
        if announces(sentence):
            below = True
            scope = stated(sentence) or scope
        elif unit.kind == "text" and is_place_of_definitions([words]) and is_title(text, unit):
            below = True
        place = Place(below, title, scope)
        found = list(in_sentences(text, unit, place))
        entry = list(in_entry(text, unit, scope)) if below and not any(d.start - unit.body < 4 for d in found) else []
        for one in (*entry, *found):
            yield _with_list(text, one, unit, every, number)
        yield from in_passing(text, unit, scope)
        if is_title(text, unit):
            title = bare(text, unit.body, unit.end)
        elif unit.kind != "item":
            title = None


_LABEL = re.compile(r"(?:§{1,2}\s*[\d.]+\w*|(?:article|section|part|appendix)\s+[\dIVXA-Z.]+)[\s.:–—-]*", re.IGNORECASE)


def _behind_label(text: str, unit: Unit) -> int:
    found = _LABEL.match(text, unit.body, unit.end)
    return found.end() if found and found.end() < unit.end else unit.body


def _with_list(text: str, one: Definition, unit: Unit, every: Sequence[Unit], number: int) -> Definition:
    """The definition with the list that it introduces: "X means:" and the items below."""
    if one.definition_end < unit.end or not text[one.start : unit.end].rstrip().endswith((":", "—", "–")):
        return one
    end = one.definition_end
    for following in every[number + 1 :]:
        if following.kind != "item" or following.end - one.start > _LIST_END or _style(following) == _style(unit):
            break
        end = following.end
    start = min(one.definition_start, end)
    if start >= one.definition_end and end > one.definition_end:
        start = next(u.body for u in every[number + 1 :])
    return Definition(one.term, one.form, one.scope, one.start, one.end, start, end)


def _style(unit: Unit) -> str:
    """What kind of numbering a unit has: "(a)" and "(b)" have the same."""
    return re.sub(r"\d+", "1", re.sub(r"[a-z]+", "a", re.sub(r"[A-Z]+", "A", unit.numbering)))


def _distinct(found: Iterator[Definition]) -> list[Definition]:
    """Each term once for each place where it is defined; a full definition before a part of one."""
    best: dict[tuple[str, int], Definition] = {}
    for one in found:
        if one.definition_end <= one.definition_start or not fold_term(one.term):
            continue
        key = (fold_term(one.term), one.start)
        if key not in best or (best[key].form in PARTIAL and one.form not in PARTIAL):
            best[key] = one
    return sorted(best.values(), key=lambda d: (d.start, d.end))
