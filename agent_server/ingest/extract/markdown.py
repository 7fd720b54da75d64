"""Markdown: the source text stays as it is written, the parser only says where things begin and end."""

import re
from collections.abc import Mapping
from typing import Any

import yaml
from markdown_it import MarkdownIt
from markdown_it.token import Token

from agent_server.ingest.extract.shared import Span, dated_note, is_true, make_document, parse_date
from agent_server.ingest.hygiene import clean, decode
from agent_server.models import BlockKind, Document, Rejected, SourceFile

_PARSER = MarkdownIt("commonmark").enable("table")
_FRONT_MATTER = re.compile(r"\A---[ \t]*\n(.*?)^(?:---|\.\.\.)[ \t]*(?:\n|\Z)", re.DOTALL | re.MULTILINE)
_DATA_URI = re.compile(r"data:[\w.+-]+/[\w.+-]+(?:;[\w=.+-]+)*,[^\s)\"'<>\]]{200,}")
_DATA_URI_MARK = "data:removed"
_KINDS: dict[str, BlockKind] = {
    "paragraph_open": "paragraph",
    "fence": "code",
    "code_block": "code",
    "table_open": "table",
    "html_block": "paragraph",
    "hr": "paragraph",
}
_HEADING_CHARS = 250
_MAX_YAML = 64 * 1024  #: characters; the parser takes seconds for a megabyte


def split_front_matter(text: str) -> tuple[Mapping[str, Any], str, tuple[str, ...]]:
    """The values between `---` lines at the top, the text after them, and notes on what could not be read."""
    found = _FRONT_MATTER.match(text)
    if found is None:
        return {}, text, ()
    try:
        values = _load(found[1])
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        if not re.match(r"\s*[\w-]+\s*:", found[1]):
            return {}, text, ()  # two rules with text between them
        problem = " ".join(str(error).split())[:120]
        note = f"front matter could not be read as YAML, taken line by line: {problem}"
        return _plain_values(found[1]), text[found.end() :], (note,)
    if values is None:
        return {}, text[found.end() :], ()
    if not isinstance(values, dict):
        return {}, text, ()
    return {str(key): value for key, value in values.items()}, text[found.end() :], ()


def _load(text: str) -> Any:
    """YAML without references: they can unfold to any size, or into themselves. Raises `yaml.YAMLError`."""
    if len(text) > _MAX_YAML:
        raise yaml.YAMLError(f"it has {len(text)} characters, at most {_MAX_YAML} are read")
    if any(isinstance(event, yaml.AliasEvent) for event in yaml.parse(text, Loader=yaml.SafeLoader)):
        raise yaml.YAMLError("references (*name) are not read")
    return yaml.safe_load(text)


def _plain_values(lines: str) -> dict[str, Any]:
    """`name: value` lines of front matter that is no YAML, mostly for a colon in the title."""
    found = (re.match(r"([A-Za-z][\w -]*?)\s*:\s*(.*?)\s*$", line) for line in lines.split("\n"))
    return {match[1]: match[2].strip("\"'") for match in found if match}


def inline_text(token: Token) -> str:
    """What a reader sees of inline content: no emphasis marks, no addresses, no tags."""
    parts: list[str] = []
    for child in token.children or ():
        if child.type in {"text", "code_inline"}:
            parts.append(child.content)
        elif child.type in {"softbreak", "hardbreak"}:
            parts.append(" ")
        elif child.type == "image":
            parts.append(inline_text(child) or child.content)
    return " ".join("".join(parts).split())


def _spans(text: str, tokens: list[Token]) -> list[Span]:
    """Leaf blocks by the line numbers of the parser; list items as wholes cut where an inner block begins."""
    starts = [0]
    for line in text.split("\n"):
        starts.append(starts[-1] + len(line) + 1)

    def at(line: int) -> int:
        return min(starts[min(line, len(starts) - 1)], len(text))

    spans: list[Span] = []
    items: list[int] = []  # first lines of the list items that are open
    for index, token in enumerate(tokens):
        if token.type == "list_item_open" and token.map:
            items.append(token.map[0])
        elif token.type == "list_item_close":
            items.pop()
        elif token.map and token.type == "heading_open":
            title = inline_text(tokens[index + 1])
            start, end = at(token.map[0]), at(token.map[1])
            # In a quote or an item it names nothing outside; a whole paragraph above a rule is no name at all.
            if token.level == 0 and title and len(title) <= _HEADING_CHARS:
                spans.append(Span("heading", start, end, int(token.tag[1:]), title))
            else:
                spans.append(Span("list_item" if items else "paragraph", start, end))
        elif token.map and token.type in _KINDS:
            kind = _KINDS[token.type]
            if items and kind == "paragraph":
                kind = "list_item"
            spans.append(Span(kind, at(token.map[0]), at(token.map[1])))
    return spans


def _cut_data_uris(text: str) -> tuple[str, tuple[str, ...]]:
    text, number = _DATA_URI.subn(_DATA_URI_MARK, text)
    return text, (f"removed {number} embedded data address{'es' * (number > 1)}",) if number else ()


def extract_markdown(file: SourceFile) -> Document | Rejected:
    """Markdown as it is written, without front matter and without pictures embedded as data.

    Front matter: `title`, `date` (YYYY-MM-DD) and `retired` are understood, everything else becomes metadata.
    """
    text, notes = clean(decode(file.data))
    values, text, odd = split_front_matter(text)
    text, cut = _cut_data_uris(text)
    metadata = dict(values)
    notes += odd + cut
    title = metadata.pop("title", None)
    retired = is_true(metadata.pop("retired", False))
    raw_date = metadata.pop("date", None)
    dated = parse_date(raw_date) if raw_date is not None else None
    if raw_date is not None and dated is None:
        notes += (dated_note("date", raw_date),)
    return make_document(
        file,
        text,
        _spans(text, _PARSER.parse(text)),
        title=str(title) if isinstance(title, str | int | float) else "",
        dated=dated,
        retired=retired,
        metadata=metadata,
        notes=notes,
    )
