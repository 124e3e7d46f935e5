"""Small charts as SVG, drawn from numbers and words of anybody's making.

Knows shapes, not subjects. Colours are classes, so that the page decides on light and dark. Pure.
Promises: nothing in a word can become markup; the same numbers give the same picture; no picture needs a script.
"""

from __future__ import annotations

import html
from collections.abc import Sequence
from typing import Any

WIDTH = 420
_BAR = 22
_LABEL = 154
_NUMBER = 62
_PLOT = 150
_FOOT = 22


def safe(value: Any) -> str:
    """The value as text that any place of a page may hold: one line, nothing unprintable, no markup."""
    text = "" if value is None else str(value)
    if not text.isprintable():
        text = "".join(char if char.isprintable() else " " for char in text)
    return html.escape(text, quote=True)


def short(value: Any, most: int) -> str:
    text = str(value)
    return safe(text if len(text) <= most else text[: most - 1] + "…")


def bars(
    name: str,
    rows: Sequence[tuple[str, float, str]],
    *,
    kind: str = "one",
    full: float | None = None,
    room: int = _LABEL,
) -> str:
    """Lying bars: label, value and the words for it. `full` is what a bar of full length stands for, `room` is kept for
    the labels."""
    longest = full or max((value for _, value, _ in rows), default=0) or 1
    space = WIDTH - room - _NUMBER
    drawn = []
    for place, (label, value, words) in enumerate(rows):
        top, length = place * _BAR, max(0.0, min(1.0, value / longest)) * space
        drawn.append(
            f"<g><title>{safe(label)}: {safe(words)}</title>"
            f'<text class="label" x="{room - 8}" y="{top + 15}" text-anchor="end">{short(label, room // 7)}</text>'
            f'<rect class="track" x="{room}" y="{top + 4}" width="{space}" height="14" rx="3"/>'
            f'<rect class="{kind}" x="{room}" y="{top + 4}" width="{max(length, 1.5 if value else 0):.1f}" '
            f'height="14" rx="3"/>'
            f'<text class="value" x="{WIDTH}" y="{top + 15}" text-anchor="end">{safe(words)}</text></g>'
        )
    return _picture(name, max(1, len(rows)) * _BAR + 2, drawn)


def columns(name: str, rows: Sequence[tuple[str, float, float, str]], *, every: int = 1) -> str:
    """Standing columns: label, the whole, the part of it that is filled, and the words. Each `every`th is labelled."""
    tallest = max((whole for _, whole, _, _ in rows), default=0) or 1
    step = WIDTH / max(1, len(rows))
    width = max(1.0, min(34.0, step * 0.78))
    drawn = []
    for place, (label, whole, part, words) in enumerate(rows):
        left = place * step + (step - width) / 2
        tall, filled = whole / tallest * _PLOT, part / tallest * _PLOT
        drawn.append(f"<g><title>{safe(label)}: {safe(words)}</title>")
        drawn.append(_column("track", left, width, tall) + _column("one", left, width, filled))
        if place % every == 0:
            middle = place * step + step / 2
            drawn.append(
                f'<text class="tick" x="{middle:.1f}" y="{_PLOT + 16}" text-anchor="middle">{short(label, 9)}</text>'
            )
        drawn.append("</g>")
    drawn.append(f'<line class="axis" x1="0" x2="{WIDTH}" y1="{_PLOT}" y2="{_PLOT}"/>')
    return _picture(name, _PLOT + _FOOT, drawn)


def line(name: str, points: Sequence[tuple[float, float]], *, left: str, right: str, top: str) -> str:
    """A rising line over its filled ground; the words stand at the ends of the axes."""
    far = max((x for x, _ in points), default=0) or 1
    high = max((y for _, y in points), default=0) or 1
    path = " ".join(f"{x / far * WIDTH:.1f},{_PLOT - y / high * (_PLOT - 16):.1f}" for x, y in points)
    drawn = [
        f'<polygon class="ground" points="0,{_PLOT} {path} {WIDTH},{_PLOT}"/>',
        f'<polyline class="stroke" points="{path}"/>',
        f'<line class="axis" x1="0" x2="{WIDTH}" y1="{_PLOT}" y2="{_PLOT}"/>',
        f'<text class="tick" x="0" y="{_PLOT + 16}">{safe(left)}</text>',
        f'<text class="tick" x="{WIDTH}" y="{_PLOT + 16}" text-anchor="end">{safe(right)}</text>',
        f'<text class="tick" x="{WIDTH}" y="11" text-anchor="end">{safe(top)}</text>',
    ]
    return _picture(name, _PLOT + _FOOT, drawn)


def strip(name: str, parts: Sequence[tuple[str, int, str]]) -> str:
    """One bar made of parts: label, value and class; the legend is the page's."""
    whole = sum(value for _, value, _ in parts) or 1
    drawn, left = [], 0.0
    for label, value, kind in parts:
        width = value / whole * WIDTH
        drawn.append(
            f'<rect class="{kind}" x="{left:.1f}" y="0" width="{width:.1f}" height="26">'
            f"<title>{safe(label)}: {value}</title></rect>"
        )
        left += width
    return _picture(name, 26, [f'<g clip-path="inset(0 round 6px)">{"".join(drawn)}</g>'])


def _column(kind: str, left: float, width: float, tall: float) -> str:
    return (
        f'<rect class="{kind}" x="{left:.1f}" y="{_PLOT - tall:.1f}" width="{width:.1f}" '
        f'height="{max(0.0, tall):.1f}" rx="2"/>'
    )


def _picture(name: str, height: float, drawn: Sequence[str]) -> str:
    return (
        f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{safe(name)}" '
        f'preserveAspectRatio="xMinYMin meet">{"".join(drawn)}</svg>'
    )
