"""The text inside elements of a page: what shows of it, in lines, with blanks as a browser gives them."""

import re
from typing import TypeAlias

from lxml import etree

from agent_server.ingest.extract import page_marks
from agent_server.ingest.extract.page_marks import visible

Node: TypeAlias = etree._Element

_SKIPPED_TAGS = """
    script style template noscript nav aside head label button input select textarea option datalist progress meter
    object embed iframe canvas svg audio video map dialog
"""
_BLOCK_TAGS = """
    address article blockquote body caption center details dd div dl dt fieldset figcaption figure footer form
    h1 h2 h3 h4 h5 h6 header hgroup hr html legend li main menu ol p pre section summary
    table tbody td tfoot th thead tr ul
"""
#: Never read: programs, forms, menus and what stands beside the text.
_SKIPPED = frozenset(_SKIPPED_TAGS.split())
_SKIPPED_ROLES = frozenset({"navigation", "search", "banner", "contentinfo", "complementary"})
BLOCKS = frozenset(_BLOCK_TAGS.split())
BREAK = "\n"


def hidden(node: Node) -> bool:
    """Whether a browser shows nothing of the element, or it frames the page instead of telling something."""
    style = (node.get("style") or "").replace(" ", "").lower()
    return (
        node.tag in _SKIPPED
        or "hidden" in node.attrib
        or node.get("aria-hidden") == "true"
        or (node.get("role") or "").lower() in _SKIPPED_ROLES
        or "display:none" in style
    )


def inline(node: Node, *, keep_blanks: bool = False) -> str:
    """The text inside an element; `br` and inner blocks break the line, inline elements add nothing."""
    parts: list[str] = []
    stack: list[Node | str] = [node]
    while stack:
        item = stack.pop()
        if isinstance(item, str):
            parts.append(item)
            continue
        if not isinstance(item.tag, str) or (item is not node and hidden(item)):
            continue
        if item.tag == "br":
            parts.append(BREAK)
            continue
        breaks = item is not node and item.tag in BLOCKS
        later: list[Node | str] = [BREAK if breaks else "", flat(item.text, keep_blanks)]
        for child in item:
            later += [child, flat(child.tail, keep_blanks)]
        later.append(BREAK if breaks else "")
        stack.extend(reversed(later))
    return "".join(parts)


def flat(text: str | None, keep_blanks: bool) -> str:
    """A text node with each run of blanks as one, unless they are kept."""
    return (text or "") if keep_blanks else re.sub(r"[ \t\n\r\f]+", " ", text or "")


def tidy(text: str) -> str:
    """Lines without blanks around and blank lines between; marks of a blank line go on to the next one."""
    lines: list[str] = []
    carried = ""
    for raw in page_marks.outside_blanks(text).split("\n"):
        line = page_marks.one_blank((carried + " ".join(re.split(r"[ \t\u00a0]+", raw))).strip())
        carried = ""
        if visible(line).strip():
            lines.append(line)
        else:
            carried = line
    if carried and lines:
        lines[-1] += carried
    return "\n".join(lines) if lines else carried


def line_of(node: Node) -> str:
    """The text inside an element, tidy and in one line."""
    return " ".join(tidy(inline(node)).split("\n"))


def holds_block(node: Node) -> bool:
    """Whether a block stands somewhere inside the element."""
    return any(inner.tag in BLOCKS for inner in node.iterdescendants())
