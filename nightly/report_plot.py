"""Lines over time as an inline SVG that takes its colours from the page around it; pure."""

from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from html import escape

_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 52, 12, 12, 28
_COLOURS = 8  #: classes c0 … c7 of the page's style
_TICKS = 4

Points = Sequence[tuple[datetime, float]]


def lines(title: str, series: Mapping[str, Points], *, low: float | None = None, high: float | None = None) -> str:
    """A plot of some series (name -> points in order of time), '' when there is no point.

    The value axis runs from `low` to `high`, where None is the least or greatest value. Names are escaped.
    """
    points = [p for of in series.values() for p in of]
    if not points:
        return ""
    first, last = min(t for t, _ in points), max(t for t, _ in points)
    if first == last:
        first, last = first - timedelta(hours=12), last + timedelta(hours=12)
    bottom = min(v for _, v in points) if low is None else low
    top = max(v for _, v in points) if high is None else high
    if top <= bottom:
        top = bottom + 1

    def x(at: datetime) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * ((at - first) / (last - first))

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * ((value - bottom) / (top - bottom))

    out = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
    ]
    for n in range(_TICKS + 1):
        value = bottom + (top - bottom) * n / _TICKS
        level = f"{y(value):.1f}"
        out.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{level}" y2="{level}"></line>')
        out.append(f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{_number(value)}</text>')
    for when, anchor in ((first, "start"), (last, "end")):
        out.append(f'<text x="{x(when):.1f}" y="{_HEIGHT - 8}" text-anchor="{anchor}">{when:%Y-%m-%d}</text>')
    for n, (name, of) in enumerate(series.items()):
        colour = f"c{n % _COLOURS}"
        path = " ".join(f"{x(at):.1f},{y(value):.1f}" for at, value in of)
        out.append(f'<polyline class="{colour}" points="{path}"></polyline>')
        for at, value in of:
            told = escape(f"{name}, {at:%Y-%m-%d %H:%M}: {value:.4g}")
            out.append(
                f'<circle class="{colour}" cx="{x(at):.1f}" cy="{y(value):.1f}" r="3"><title>{told}</title></circle>'
            )
    out.append("</svg>")
    legend = "".join(
        f'<li><span class="key c{n % _COLOURS}"></span>{escape(name)}</li>' for n, name in enumerate(series)
    )
    return "".join(out) + f'<ul class="legend">{legend}</ul>'


def _number(value: float) -> str:
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
