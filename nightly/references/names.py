"""What documents are called: the keys under which they and their parts are looked up from other documents."""

import re
from collections.abc import Iterable
from pathlib import PurePosixPath

from nightly.references.markup import fold_name, labels_of
from nightly.references.numbering import APPENDED, heading_label, normal
from nightly.references.places import Outline
from nightly.references.signs import SERIES

_MAX_LABELS = 2_000  #: of one document
_MAX_KEY = 200
_SERIES = re.compile(rf"\b({'|'.join(map(re.escape, SERIES))})[ _#-]*0*(\d{{1,5}})(?!\d)", re.IGNORECASE)
_CODE = re.compile(r"\b(\d{1,2})\s+(C\.?F\.?R\.?)\s+(?:part\s+)?(\d{1,5})\b", re.IGNORECASE)
_LAW = re.compile(r"\b(Regulation|Directive|Decision)\b[^\n]{0,20}?(\d{2,4}/\d{1,4})", re.IGNORECASE)
#: A document of a numbered kind: "Policy 12", "REGULATION AB-310".
_NUMBERED = re.compile(
    r"\b(Policy|Regulation|Procedure|Circular|Bulletin|Directive)[ \n]+((?:[A-Z]{1,5}-?)?\d[\d.-]*\d|\d)(?![\w/])",
    re.IGNORECASE,
)
#: "Fee Schedule 2024-25" is the fee schedule.
_EDITION = re.compile(r"[\s,(]+(?:19|20)\d\d(?:[-–/]\d{2,4})?\)?\Z")
#: "the rulebook" is what ends in that word.
_BOOKISH = re.compile(r"\b(rulebook|handbook|manual|glossary)\W*\Z", re.IGNORECASE)
_ALIAS = re.compile(r"\bknown as[ \n]+[“\"'‘]?(?:the[ \n]+)?([A-Z][\w’'-]*(?:[ \n]+[A-Z][\w’'-]*){0,5})")
_ALIAS_CHARS = 3_000  #: at the beginning, where a document says what it is called
_WORDED = frozenset({"section", "article", "rule", "policy", "recital"}) | APPENDED


def fold(name: str) -> str:
    """A name as it is looked up."""
    return " ".join(re.sub(r"[^\w/.()-]+", " ", name.replace("’", "'")).casefold().split())[:_MAX_KEY]


def outside_keys(name: str) -> list[str]:
    """The keys that a name in a text stands for, best first."""
    if law := _LAW.search(name):
        return [f"{law[1].casefold()} {law[2]}"]
    words = fold(name)
    return list(dict.fromkeys([words, re.sub(r"\A(?:the|that) ", "", words)]))


def label_key(word: str, number: str) -> str:
    """The key of a numbered place, for documents that do not say whose it is."""
    return f"label:{word} {number}"


def file_keys(source: str) -> list[str]:
    """The keys of a file: its path, and its path without the ending."""
    path = PurePosixPath(source.casefold())
    return [f"file:{path}", f"stem:{path.with_suffix('')}"] if source and path.name else []


def ref_key(name: str) -> str:
    """The key of a label that other documents may refer to."""
    return f"ref:{fold_name(name)}"[:_MAX_KEY]


def names_of(outline: Outline) -> list[str]:
    """All keys of a document, sorted."""
    manuscript = outline.manuscript
    stem = PurePosixPath(manuscript.source).stem
    keys = set(file_keys(manuscript.source))
    for said in (manuscript.title, stem, *_words_of(stem)):
        keys |= _said(said)
    keys |= {fold(alias) for alias in _ALIAS.findall(manuscript.text[:_ALIAS_CHARS])}
    if outline.headings and outline.headings[0].level == 1:
        keys |= _said(outline.headings[0].title)
    for word, number in titles_of(outline):
        keys |= {fold(f"{word} {number}"), label_key(word, number)}
    keys |= set(_labels(outline))
    keys |= {ref_key(label) for label in labels_of(manuscript)[:_MAX_LABELS]}
    return sorted(key for key in keys if key)


def titles_of(outline: Outline) -> set[tuple[str, str]]:
    """Words and numbers, as `Step` has them, that the title and the first heading give the document as a whole."""
    said = [outline.manuscript.title]
    if outline.headings and outline.headings[0].level == 1:
        said.append(outline.headings[0].title)
    return {(word.casefold(), normal(number)) for title in said for word, number in _NUMBERED.findall(title)[:1]}


def _words_of(stem: str) -> list[str]:
    """ "boat rules" for boat-rules.txt; a single word is no name."""
    words = re.sub(r"[-_]+", " ", stem).strip()
    return [words] if " " in words else []


def _said(title: str) -> set[str]:
    keys = {fold(title), fold(_EDITION.sub("", title))}
    keys |= {f"{SERIES[word.lower()]} {int(number)}".casefold() for word, number in _SERIES.findall(title)[:1]}
    keys |= {f"{book} cfr {part}" for book, _, part in _CODE.findall(title)[:1]}
    keys |= {f"{word.casefold()} {number}" for word, number in _LAW.findall(title)[:1]}
    if last := _BOOKISH.search(title):
        keys.add(last[1].casefold())
    label = heading_label(title)
    if label is not None and label.number:
        words = re.split(r"[\s:–—-]+", title, maxsplit=2)
        keys.add(fold(words[-1]))
    return keys


def _labels(outline: Outline) -> Iterable[str]:
    """Keys of the sections, articles and appendices that stand in the document itself."""
    found = 0
    own = {number for _, number in titles_of(outline)}
    for place in outline.places:
        stem, _, tail = place.number.rpartition(".")
        if place.level and not place.word and stem in own:
            yield label_key("section", tail)
        if not (place.level and place.number and place.word in _WORDED) or place.parent is None:
            continue
        if place.word not in APPENDED and any(p.word in APPENDED for p in place.parent.ancestors()):
            continue
        found += 1
        if found > _MAX_LABELS:
            return
        yield label_key(place.word, place.number)
