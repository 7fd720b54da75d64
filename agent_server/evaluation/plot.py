"""Means with their intervals as a plain SVG: one panel a dataset, one line an arm."""

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

_LEFT, _PANEL, _GAP, _LINE, _TOP = 340, 260, 24, 20, 46
_TICKS = (0.0, 0.25, 0.5, 0.75, 1.0)
_FONT = 'font-family="system-ui, sans-serif" font-size="12"'
_INK, _FAINT, _DOT = "#1f2328", "#d1d9e0", "#0969da"


@dataclass(frozen=True, slots=True)
class Point:
    """A mean in [0, 1] with its interval."""

    mean: float
    low: float
    high: float


def svg(title: str, rows: Sequence[str], panels: Sequence[tuple[str, Sequence[Point | None]]]) -> str:
    """A dot plot. `panels`: name and a point for each of `rows`, None where it was not measured."""
    width = _LEFT + len(panels) * (_PANEL + _GAP)
    height = _TOP + len(rows) * _LINE + 34
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height}" viewBox="0 0 {width} {height}">',
        f"<title>{escape(title)}</title>",
        f'<rect width="{width}" height="{height}" fill="#ffffff"/>',
        f'<text x="8" y="20" {_FONT} font-weight="600" fill="{_INK}">{escape(title)}</text>',
    ]
    for n, row in enumerate(rows):
        out.append(_text(_LEFT - 12, _middle(n) + 4, row.replace("`", ""), "end"))
    for number, (name, points) in enumerate(panels):
        left = _LEFT + number * (_PANEL + _GAP)
        out.append(_text(left + _PANEL / 2, _TOP - 10, name, "middle"))
        bottom = _TOP + len(rows) * _LINE
        for tick in _TICKS:
            x = left + tick * _PANEL
            out.append(f'<line x1="{x:.1f}" y1="{_TOP}" x2="{x:.1f}" y2="{bottom}" stroke="{_FAINT}"/>')
            out.append(_text(x, bottom + 18, f"{tick:g}", "middle"))
        for n, point in enumerate(points):
            if point is not None:
                out += _dot(left, _middle(n), point)
    return "\n".join([*out, "</svg>", ""])


def _middle(row: int) -> float:
    return _TOP + row * _LINE + _LINE / 2


def _dot(left: float, y: float, point: Point) -> list[str]:
    low, mean, high = (left + value * _PANEL for value in (point.low, point.mean, point.high))
    return [
        f'<line x1="{low:.1f}" y1="{y:.1f}" x2="{high:.1f}" y2="{y:.1f}" stroke="{_DOT}" stroke-width="2"/>',
        f'<circle cx="{mean:.1f}" cy="{y:.1f}" r="4" fill="{_DOT}"><title>{point.mean:.3f}</title></circle>',
    ]


def _text(x: float, y: float, text: str, anchor: str) -> str:
    return f'<text x="{x:.1f}" y="{y:.1f}" {_FONT} text-anchor="{anchor}" fill="{_INK}">{escape(text)}</text>'
