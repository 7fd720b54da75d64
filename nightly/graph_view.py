"""A neighbourhood as a tree of text and as a drawing. Pure: what comes in was fetched before.

The drawing is one SVG file with nothing outside of it: what leads to the middle stands left, what it leads to right.
"""

import textwrap
import unicodedata
from dataclasses import dataclass
from html import escape
from typing import Any

EXCERPT_CHARS = 90
#: Sizes of the drawing, in pixels.
BOX_WIDTH, BOX_HEIGHT, GAP, COLUMN_GAP, MARGIN = 300, 52, 14, 190, 24
LABEL_CHARS, PLACE_CHARS, ANCHOR_CHARS = 42, 46, 26
COLOURS = {"cites": "#1f6f8b", "defines": "#8a5a00", "term": "#8a5a00", "dangling": "#a33a3a"}
NAMES = {"cites": "citation", "defines": "use of a term", "term": "definition", "dangling": "not found"}


@dataclass(frozen=True, slots=True)
class Node:
    """A passage, a term or a reference: its name, where it stands, the words of the edge that leads here."""

    name: str
    place: str = ""
    anchor: str = ""
    text: str = ""
    branches: tuple["Branch", ...] = ()

    def to_json(self) -> dict[str, Any]:
        """Without empty parts."""
        out: dict[str, Any] = {"name": self.name, "place": self.place, "anchor": self.anchor, "text": self.text}
        branches = [b.to_json() for b in self.branches if b.nodes]
        return {k: v for k, v in {**out, "branches": branches}.items() if v}


@dataclass(frozen=True, slots=True)
class Branch:
    """Nodes at one kind of edge. `relation` is cites, defines, term or dangling; `outgoing`: the edge begins here."""

    label: str
    relation: str
    outgoing: bool
    nodes: tuple[Node, ...]

    def to_json(self) -> dict[str, Any]:
        return {
            "label": self.label,
            "relation": self.relation,
            "outgoing": self.outgoing,
            "nodes": [n.to_json() for n in self.nodes],
        }


# -- tree -------------------------------------------------------------------------------------------------------


def tree(root: Node) -> str:
    """The neighbourhood line by line."""
    lines = [_line(root)]
    _grow(root, "", lines)
    if len(lines) == 1:
        lines.append("└─ no edges")
    return "\n".join(lines)


def _grow(node: Node, indent: str, lines: list[str]) -> None:
    branches = [b for b in node.branches if b.nodes]
    for number, branch in enumerate(branches, 1):
        last = number == len(branches)
        lines.append(f"{indent}{'└' if last else '├'}─ {branch.label} ({len(branch.nodes)})")
        below = indent + ("   " if last else "│  ")
        for place, child in enumerate(branch.nodes, 1):
            end = place == len(branch.nodes)
            lines.append(f"{below}{'└' if end else '├'}─ {_line(child, with_text=branch.relation == 'term')}")
            _grow(child, below + ("   " if end else "│  "), lines)


def _line(node: Node, *, with_text: bool = False) -> str:
    parts = [f"“{_flat(node.anchor)}” → {_flat(node.name)}" if node.anchor else _flat(node.name)]
    if node.place:
        parts.append(_flat(node.place))
    if with_text and node.text:
        parts.append(_short(node.text, EXCERPT_CHARS))
    return " · ".join(parts)


def _flat(text: str) -> str:
    """One line, without what could drive a terminal or break a file: documents may hold anything."""
    return "".join(
        "\N{REPLACEMENT CHARACTER}" if unicodedata.category(c) in ("Cc", "Cf", "Cs") else c
        for c in " ".join(text.split())
    )


def _short(text: str, most: int) -> str:
    flat = _flat(text)
    return flat if len(flat) <= most else flat[: most - 1].rstrip() + "…"


# -- drawing ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Box:
    node: Node
    relation: str
    outgoing: bool


def draw(root: Node) -> str:
    """The neighbourhood as an SVG document: the root in the middle and one column on each side."""
    boxes = [_Box(n, b.relation, b.outgoing) for b in root.branches for n in b.nodes]
    boxes += [
        _Box(n, b.relation, b.outgoing) for at in root.branches for c in at.nodes for b in c.branches for n in b.nodes
    ]
    left = [box for box in boxes if not box.outgoing]
    right = [box for box in boxes if box.outgoing]
    rows = max(len(left), len(right), 1)
    height = 2 * MARGIN + rows * (BOX_HEIGHT + GAP) + 30
    columns = [MARGIN, MARGIN + BOX_WIDTH + COLUMN_GAP, MARGIN + 2 * (BOX_WIDTH + COLUMN_GAP)]
    width = columns[2] + BOX_WIDTH + MARGIN
    middle = (height - 30) / 2
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}" '
        'font-family="system-ui, sans-serif" font-size="12">',
        f"<title>{escape(_flat(root.name))}</title>",
        '<rect width="100%" height="100%" fill="#ffffff"/>',
    ]
    for column, side in ((columns[0], left), (columns[2], right)):
        top = middle - len(side) * (BOX_HEIGHT + GAP) / 2 + GAP / 2
        for n, box in enumerate(side):
            y = top + n * (BOX_HEIGHT + GAP)
            out += _edge(box, y + BOX_HEIGHT / 2, middle, columns)
            out += _box(box.node, column, y, COLOURS[box.relation])
    out += _box(root, columns[1], middle - BOX_HEIGHT / 2, "#222222", bold=True)
    out += _legend({box.relation for box in boxes}, height)
    out.append("</svg>")
    return "\n".join(out) + "\n"


def _edge(box: _Box, y: float, middle: float, columns: list[int]) -> list[str]:
    """A curve between a box and the middle, with an arrow's head at its end and its words on it."""
    if box.outgoing:
        start, end = (columns[1] + BOX_WIDTH, middle), (columns[2], y)
    else:
        start, end = (columns[0] + BOX_WIDTH, y), (columns[1], middle)
    bend = COLUMN_GAP / 2
    colour = COLOURS[box.relation]
    dashes = ' stroke-dasharray="5 4"' if box.relation == "dangling" else ""
    x, tip = end
    at = (columns[2] if box.outgoing else columns[0] + BOX_WIDTH) + (-8 if box.outgoing else 8)
    words = escape(_short(box.node.anchor, ANCHOR_CHARS))
    return [
        f'<path d="M {start[0]:.0f} {start[1]:.1f} C {start[0] + bend:.0f} {start[1]:.1f}, {x - bend:.0f} {tip:.1f}, '
        f'{x - 6:.0f} {tip:.1f}" fill="none" stroke="{colour}" stroke-width="1.4"{dashes}/>',
        f'<path d="M {x:.0f} {tip:.1f} l -8 -4 l 0 8 z" fill="{colour}"/>',
        f'<text x="{at}" y="{y - 5:.1f}" text-anchor="{"end" if box.outgoing else "start"}" fill="{colour}" '
        f'font-size="11">{words}</text>',
    ]


def _box(node: Node, x: int, y: float, colour: str, *, bold: bool = False) -> list[str]:
    excerpt = "\n".join(textwrap.wrap(_short(node.text, 600), 90))
    return [
        "<g>",
        f"<title>{escape(chr(10).join(filter(None, (_flat(node.name), _flat(node.place), excerpt))))}</title>",
        f'<rect x="{x}" y="{y:.1f}" width="{BOX_WIDTH}" height="{BOX_HEIGHT}" rx="6" fill="#fbfbf8" stroke="{colour}" '
        f'stroke-width="{2 if bold else 1.2}"/>',
        f'<text x="{x + 12}" y="{y + 21:.1f}" fill="#111111" font-weight="{600 if bold else 500}">'
        f"{escape(_short(node.name, LABEL_CHARS))}</text>",
        f'<text x="{x + 12}" y="{y + 39:.1f}" fill="#555555">{escape(_short(node.place, PLACE_CHARS))}</text>',
        "</g>",
    ]


def _legend(relations: set[str], height: float) -> list[str]:
    out, x = [], MARGIN
    for relation in (r for r in COLOURS if r in relations):
        out.append(f'<rect x="{x}" y="{height - 26}" width="14" height="4" fill="{COLOURS[relation]}"/>')
        out.append(f'<text x="{x + 20}" y="{height - 20}" fill="#333333">{NAMES[relation]}</text>')
        x += 150
    return out
