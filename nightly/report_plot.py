"""Lines over time as an inline SVG that takes its colours from the page around it; pure."""

import math
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from html import escape

_WIDTH, _HEIGHT = 640, 240
_LEFT, _RIGHT, _TOP, _BOTTOM = 64, 12, 12, 28
_COLOURS = 8  #: classes c0 … c7 of the page's style
_TICKS = 4  #: about so many steps of the value axis
_TINY = 1e-9  #: what arithmetic may be off

Points = Sequence[tuple[datetime, float]]


def lines(title: str, series: Mapping[str, Points], *, low: float | None = None, high: float | None = None) -> str:
    """A plot of some series (name -> points in order of time), '' when there is no point.

    The value axis runs from `low` to `high`, where None is a round number at or beyond the least or greatest value; a
    value outside widens it. Names are escaped.
    """
    points = [p for of in series.values() for p in of]
    if not points:
        return ""
    first, last = min(t for t, _ in points), max(t for t, _ in points)
    dates = [(first, "start"), (last, "end")]
    if first.date() == last.date():
        dates = [(first, "middle")]
    if first == last:
        first, last = first - timedelta(hours=12), last + timedelta(hours=12)
    levels = _levels([v for _, v in points], low, high)
    bottom, top = levels[0], levels[-1]

    def x(at: datetime) -> float:
        return _LEFT + (_WIDTH - _LEFT - _RIGHT) * ((at - first) / (last - first))

    def y(value: float) -> float:
        return _HEIGHT - _BOTTOM - (_HEIGHT - _TOP - _BOTTOM) * ((value - bottom) / (top - bottom))

    out = [
        f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(title)}">',
        f"<title>{escape(title)}</title>",
    ]
    for value in levels:
        level = f"{y(value):.1f}"
        out.append(f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{level}" y2="{level}"></line>')
        out.append(f'<text x="{_LEFT - 6}" y="{y(value) + 4:.1f}" text-anchor="end">{_number(value)}</text>')
    for when, anchor in dates:
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


def _levels(values: Sequence[float], low: float | None, high: float | None) -> list[float]:
    """Round numbers from the bottom of the value axis to its top."""
    bottom = min(values) if low is None else min(low, *values)
    top = max(values) if high is None else max(high, *values)
    if top <= bottom:  # nothing to tell apart: the value stands at the end that is given, else at the bottom
        bottom, top = (bottom - 0.1 * abs(bottom or 1), top) if high is not None else (bottom, top + abs(top or 1))
    step = _round_step((top - bottom) / _TICKS)
    first, last = math.floor(bottom / step + _TINY), math.ceil(top / step - _TINY)
    return [n * step for n in range(first, last + 1)]


def _round_step(least: float) -> float:
    """1, 2, 2.5 or 5 times a power of ten, not smaller than `least`."""
    power = 10.0 ** math.floor(math.log10(least))
    return next(m * power for m in (1, 2, 2.5, 5, 10) if m * power >= least * (1 - _TINY))


def _number(value: float) -> str:
    for unit, size in (("M", 1e6), ("k", 1e3)):
        if abs(value) >= 10 * size:
            return f"{value / size:,.4g}{unit}"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"
