"""Network graph: names as circles and links as lines, with a deterministic force-directed layout."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from nutch2py.charts.axes import NARROW_WIDTH, WIDE_WIDTH
from nutch2py.charts.chart import Chart, ChartTable, render_shape, render_svg, render_text, svg_percent
from nutch2py.support.formatting import display_width, format_number, shorten

_HEIGHT = 380
_MAX_NODES = 40
_MAX_EDGES = 160
_ITERATIONS = 250
_LETTER_WIDTH = 6.8


class GraphEdge(NamedTuple):
    """A number of links from ``source`` to ``target``."""

    source: str
    target: str
    weight: float


def draw_graph(
    title: str, edges: Sequence[GraphEdge], sizes: Mapping[str, float], empty_message: str, unit: str = "pages"
) -> Chart:
    """Return a graph of the names with most links, at most 40, without self-links.

    ``sizes``: number that the area of a circle represents; names without one get the smallest circle.
    """
    between = [edge for edge in edges if edge.source != edge.target and edge.weight > 0]
    if not between:
        return Chart(title, empty_message)
    link_counts: Counter[str] = Counter()
    for edge in between:
        link_counts[edge.source] += round(edge.weight)
        link_counts[edge.target] += round(edge.weight)
    names = sorted(link_counts, key=lambda name: (-link_counts[name], name))[:_MAX_NODES]
    number = {name: place for place, name in enumerate(names)}
    joined: Counter[tuple[int, int]] = Counter()
    for source, target, weight in between:
        if source in number and target in number:
            pair = sorted((number[source], number[target]))
            joined[pair[0], pair[1]] += round(weight)
    heaviest = joined.most_common(_MAX_EDGES)
    places = force_layout(len(names), [(a, b, float(weight)) for (a, b), weight in heaviest])
    greatest = max((sizes.get(name, 0) for name in names), default=0) or 1
    radii = [4 + 12 * math.sqrt(max(sizes.get(name, 0), 0) / greatest) for name in names]
    most = heaviest[0][1]
    inner = []
    for (a, b), weight in reversed(heaviest):
        where = (
            f'x1="{svg_percent(places[a][0])}" x2="{svg_percent(places[b][0])}" y1="{places[a][1] * _HEIGHT:.1f}" '
            f'y2="{places[b][1] * _HEIGHT:.1f}" '
            f'stroke-width="{0.8 + 3.2 * math.log1p(weight) / math.log1p(most):.1f}"'
        )
        inner.append(render_shape("line", where, f"{names[a]} – {names[b]}: {format_number(weight)} links", "edge"))
    for place, name in enumerate(names):
        where = f'cx="{svg_percent(places[place][0])}" cy="{places[place][1] * _HEIGHT:.1f}" r="{radii[place]:.1f}"'
        tooltip = f"{name}: {format_number(sizes.get(name, 0))} {unit}, {format_number(link_counts[name])} links"
        inner.append(render_shape("circle", where, tooltip, "c1"))
    inner += _render_labels(names, places, radii)
    sample = f" {len(names)} of {len(link_counts):,} names are shown." if len(link_counts) > len(names) else ""
    first = max(between, key=lambda edge: edge.weight)
    description = (
        f"{len(link_counts):,} names; most links lead from {shorten(first.source, 60)} to {shorten(first.target, 60)}: "
        f"{format_number(first.weight)}.{sample}"
    )
    rows = [
        [source, target, format_number(weight)]
        for source, target, weight in sorted(between, key=lambda edge: (-edge.weight, edge.source, edge.target))
    ]
    table = ChartTable(["From", "To", "Links"], rows[:50], len(rows) if len(rows) > 50 else 0)
    return Chart(title, description, render_svg(title, description, _HEIGHT, inner, "flush"), table)


def force_layout(count: int, edges: Sequence[tuple[int, int, float]]) -> list[tuple[float, float]]:
    """Return positions of ``count`` circles as fractions of width and height, linked ones close together.

    Forces are those of Fruchterman and Reingold (1991): all circles repel each other, and links attract by the
    logarithm of their weights. The layout starts on a spiral without randomness, so that it is reproducible.
    """
    if count == 1:
        return [(0.5, 0.5)]
    turns = np.arange(count) * 2.399963  # the golden angle: no two start on a line
    far = np.sqrt((np.arange(count) + 0.5) / count)
    places = np.stack([far * np.cos(turns), far * np.sin(turns)], axis=1)
    pull = np.zeros((count, count))
    most = max((weight for _, _, weight in edges), default=1.0)
    for a, b, weight in edges:
        pull[a, b] = pull[b, a] = 0.35 + math.log1p(weight) / math.log1p(most)
    near = 1.6 / math.sqrt(count)
    for turn in range(_ITERATIONS):
        apart = places[:, None, :] - places[None, :, :]
        distance = np.maximum(np.sqrt((apart**2).sum(axis=2)), 1e-3)
        force = near**2 / distance - pull * distance**2 / near
        np.fill_diagonal(force, 0.0)
        moved = (apart / distance[:, :, None] * force[:, :, None]).sum(axis=1) - places * 0.6
        size = np.maximum(np.sqrt((moved**2).sum(axis=1)), 1e-9)
        step = 0.12 * (1 - turn / _ITERATIONS)
        places += moved / size[:, None] * np.minimum(size, step)[:, None]
    return _fit_to_frame(places)


def _fit_to_frame(places: NDArray[np.float64]) -> list[tuple[float, float]]:
    """Rotate the positions so that they are widest horizontally, and scale them to the frame."""
    places = places - places.mean(axis=0)
    _, _, axes = np.linalg.svd(places, full_matrices=False)
    axes *= np.where(axes[np.arange(2), np.abs(axes).argmax(axis=1)] < 0, -1.0, 1.0)[:, None]  # fix the sign
    places = places @ axes.T
    middle = (places.min(axis=0) + places.max(axis=0)) / 2
    half = np.maximum((places.max(axis=0) - places.min(axis=0)) / 2, 1e-9)
    half[1] = max(half[1], half[0] / 2)
    scaled = (places - middle) / half
    return [(0.5 + 0.42 * float(x), 0.49 + 0.43 * float(y)) for x, y in scaled]


def _render_labels(names: Sequence[str], places: Sequence[tuple[float, float]], radii: Sequence[float]) -> list[str]:
    """Return labels that do not overlap, by descending links: for phones, and more of them for wide charts."""
    kept: dict[int, tuple[float, float, str]] = {}
    narrow: set[int] = set()
    for width in (NARROW_WIDTH, WIDE_WIDTH):
        taken = [
            (x * width - radius, y * _HEIGHT - radius, x * width + radius, y * _HEIGHT + radius)
            for (x, y), radius in zip(places, radii, strict=True)
        ]
        taken += [_label_box(names[place], *kept[place], width) for place in kept]
        for place, name in enumerate(names):
            if place in kept:
                continue
            x, y = places[place][0], places[place][1] * _HEIGHT
            heights = (y + radii[place] + 12, y - radii[place] - 5)
            for spot in [(x, height, anchor) for anchor in ("middle", "start", "end") for height in heights]:
                box = _label_box(name, *spot, width)
                inside = box[0] >= 0 and box[2] <= width and box[1] >= 0 and box[3] <= _HEIGHT
                if inside and not any(_overlap(box, other) for other in taken):
                    kept[place] = spot
                    taken.append(box)
                    break
        narrow = narrow or set(kept)
    return [
        render_text(svg_percent(x), y, shorten(names[place], 24), "halo" if place in narrow else "halo wide", anchor)
        for place, (x, y, anchor) in kept.items()
    ]


def _label_box(name: str, x: float, y: float, anchor: str, width: int) -> tuple[float, float, float, float]:
    """Return the edges of a label in pixels: left, top, right, bottom."""
    length = display_width(shorten(name, 24)) * _LETTER_WIDTH
    left = x * width - {"start": 0.0, "middle": length / 2, "end": length}[anchor]
    return left, y - 11, left + length, y + 3


def _overlap(one: tuple[float, float, float, float], other: tuple[float, float, float, float]) -> bool:
    return one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
