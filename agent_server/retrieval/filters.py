"""Filters: which passages a search may bring at all, whichever arm finds them.

Only the conditions in use are in the statements (hybrid.sql, lexical_probe.sql, filter_count.sql). A passage that
stands in several places is found when one of its live copies fits, and that copy is shown.
"""

import json
import re
import unicodedata
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, fields
from datetime import date
from typing import Any

from agent_server import globs
from agent_server.db import Conn, fetch_one
from agent_server.errors import InvalidArgument
from agent_server.retrieval import phrases

#: A filter that leaves at most this share of all passages, or this many, is searched exactly: an index scan that throws
#: nearly everything away loses recall where the filter follows the content, and costs more (ops/bench/filters.py).
EXACT_SHARE = 0.05
EXACT_PASSAGES = 2000
MAX_VALUES = 100
MAX_CHARS = 1000
_LITERAL = re.compile(r"true|false|-?(?:0|[1-9]\d{0,15})(?:\.\d{1,15})?", re.ASCII)
_MARKS = re.compile("[\u0300-\u036f]")


@dataclass(frozen=True, slots=True)
class Filters:
    """Conditions on passages; each one given must hold. Repeated sources and media types: any of them will do."""

    sources: tuple[str, ...] = ()  #: path patterns: `*` within a folder, `**` across folders
    heading: str = ""  #: part of the heading path ("A > B"), ignoring case and accents
    min_authority: float | None = None  #: least authority of the source, 0 to 1
    media_types: tuple[str, ...] = ()  #: `text/markdown`, or a pattern such as `text/*`
    since: date | None = None  #: first and last date that a document bears; one without a date is left out
    until: date | None = None
    fields: tuple[tuple[str, str], ...] = ()  #: front-matter field and the value that it has, or lists
    phrases: tuple[str, ...] = ()  #: words that stand next to each other in this order
    exclude: tuple[str, ...] = ()  #: passages with any of these words, or phrases, are left out

    def __bool__(self) -> bool:
        return any(getattr(self, f.name) not in (None, "", ()) for f in fields(self))

    def to_json(self) -> dict[str, Any]:
        """The conditions in use, by name."""
        out: dict[str, Any] = {}
        for f in fields(self):
            value = getattr(self, f.name)
            if value not in (None, "", ()):
                out[f.name] = value.isoformat() if isinstance(value, date) else value
        if self.fields:
            out["fields"] = dict(self.fields)
        return out

    @classmethod
    def from_json(cls, asked: Mapping[str, Any]) -> "Filters":
        """The conditions that `to_json` wrote."""
        given: dict[str, Any] = {k: tuple(v) if isinstance(v, list | tuple) else v for k, v in asked.items()}
        for name in ("since", "until"):
            if name in given:
                given[name] = date.fromisoformat(given[name])
        if "fields" in given:
            given["fields"] = tuple(given["fields"].items())
        return cls(**given)

    def each(self) -> list["Filters"]:
        """The conditions one by one, each as a filter of its own."""
        out: list[Filters] = []
        for f in fields(self):
            value = getattr(self, f.name)
            if f.name in ("fields", "phrases", "exclude"):
                conditions: list[Any] = [(one,) for one in value]
            else:
                conditions = [] if value in (None, "", ()) else [value]
            for condition in conditions:
                given: dict[str, Any] = {f.name: condition}
                out.append(Filters(**given))
        return out

    def __str__(self) -> str:
        """For people: `source rules/*.md, since 2024-01-01`."""
        parts = [*_named("source", self.sources), *_named("heading", (self.heading,) if self.heading else ())]
        if self.min_authority is not None:
            parts.append(f"authority at least {self.min_authority:g}")
        parts += _named("media type", self.media_types)
        parts += [f"{word} {day}" for word, day in (("since", self.since), ("until", self.until)) if day]
        parts += [f"{key} = {value}" for key, value in self.fields]
        parts += [f'phrase "{phrase}"' for phrase in self.phrases]
        parts += [f'without "{phrase}"' for phrase in self.exclude]
        return ", ".join(parts)


NO_FILTERS = Filters()


def checked(filters: Filters) -> Filters:
    """`filters` when they can be applied; raises InvalidArgument that names the condition."""
    for name in ("sources", "media_types", "phrases", "exclude"):
        values: tuple[str, ...] = getattr(filters, name)
        if len(values) > MAX_VALUES:
            raise InvalidArgument(name, f"has {len(values)} values; at most {MAX_VALUES} are accepted")
        for value in values:
            _check_text(name, value)
    if filters.heading:
        _check_text("heading", filters.heading)
    if filters.min_authority is not None and not 0 <= filters.min_authority <= 1:
        raise InvalidArgument("min_authority", f"is {filters.min_authority}; expected 0 to 1")
    if filters.since and filters.until and filters.since > filters.until:
        raise InvalidArgument("since", f"is {filters.since}, after until ({filters.until})")
    if len(filters.fields) > MAX_VALUES:
        raise InvalidArgument("fields", f"has {len(filters.fields)} values; at most {MAX_VALUES} are accepted")
    for key, value in filters.fields:
        _check_text("fields", key)
        _check_text("fields", value)
    if len({key for key, _ in filters.fields}) < len(filters.fields):
        raise InvalidArgument("fields", "names a field twice; a field has one value", hint="Ask twice instead.")
    return filters


def parse_field(text: str) -> tuple[str, str]:
    """`key=value` as a pair; raises InvalidArgument."""
    key, sign, value = text.partition("=")
    if not (key.strip() and sign and value.strip()):
        raise InvalidArgument("field", f"{text!r} is no condition; expected key=value, such as audience=branches")
    return key.strip(), value.strip()


def parse_day(field: str, text: str) -> date:
    """A day as YYYY-MM-DD; raises InvalidArgument that names `field`."""
    try:
        return date.fromisoformat(text.strip())
    except ValueError:
        raise InvalidArgument(field, f"{text!r} is no date; expected YYYY-MM-DD, such as 2024-03-01") from None


def variables(connection: Conn, config: str, filters: Filters) -> dict[str, Any]:
    """The variables of the filtered statements, those of the conditions in use alone; {} without any."""
    if not filters:
        return {}
    out: dict[str, Any] = {"filtered": "on"}
    if filters.sources:
        out["sources"] = _any_of(filters.sources)
    if filters.min_authority is not None:
        out["min_authority"] = filters.min_authority
    if filters.media_types:
        out["media_types"] = _any_of(m.lower() for m in filters.media_types)
    if filters.since:
        out["since"] = filters.since.isoformat()
    if filters.until:
        out["until"] = filters.until.isoformat()
    if filters.fields:
        out["fields"] = " && ".join(_has_value(key, value) for key, value in filters.fields)
    if len(out) > 1:
        out["of_files"] = "on"
    if filters.heading:
        out["heading"] = folded(filters.heading)
    if filters.phrases:
        found = phrases.tsqueries(connection, config, "phrases", filters.phrases)
        out["phrase"] = " & ".join(f"({q})" for q in found)
    if filters.exclude:
        found = phrases.tsqueries(connection, config, "exclude", filters.exclude)
        out["exclude"] = " | ".join(f"({q})" for q in found)
    return out


def leaves_few(connection: Conn, values: Mapping[str, Any]) -> tuple[bool, int]:
    """Whether so few passages fit that they are searched exactly, and how many do, counted up to that limit."""
    limits = {"share": EXACT_SHARE, "at_least": EXACT_PASSAGES, "exact": "on"}
    row = fetch_one(connection, "filter_count", {**values, **limits}) or {}
    return row["left"] <= row["limit"], row["left"]


def count_left(connection: Conn, values: Mapping[str, Any]) -> int:
    """How many live passages fit, each copy counted."""
    limits = {"share": 1.0, "at_least": 2**31 - 2, "exact": "on", "copies": "on"}
    return int((fetch_one(connection, "filter_count", {**values, **limits}) or {})["left"])


def folded(heading: str) -> str:
    """Without case and accents, as filter conditions compare headings: in SQL the same steps stand."""
    return _MARKS.sub("", unicodedata.normalize("NFKD", heading)).lower().strip()


def _check_text(name: str, value: str) -> None:
    if not value.strip():
        raise InvalidArgument(name, "holds a blank; expected text")
    if len(value) > MAX_CHARS:
        raise InvalidArgument(name, f"has {len(value)} characters; at most {MAX_CHARS} are accepted")
    if "\0" in value or any("\ud800" <= c <= "\udfff" for c in value):
        raise InvalidArgument(name, "holds characters that no text has (NUL or half a surrogate pair)")


def _any_of(patterns: Iterable[str]) -> str:
    """One regular expression for all patterns: Postgres keeps 32 compiled ones, and would compile more for each row."""
    return "|".join(map(globs.expression, patterns))


def _has_value(key: str, value: str) -> str:
    """A jsonpath predicate: the field is this text, or a list with it, or a number or truth value written so."""
    field = f"$.{json.dumps(key)}"
    alternatives = [json.dumps(value)]
    if _LITERAL.fullmatch(value):
        alternatives.append(value)
    return "(" + " || ".join(f"{field} == {literal}" for literal in alternatives) + ")"


def _named(name: str, values: tuple[str, ...]) -> list[str]:
    return [f"{name} {' or '.join(values)}"] if values else []
