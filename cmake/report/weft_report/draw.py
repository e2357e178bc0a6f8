# SPDX-License-Identifier: BSL-1.0
"""Draws the figures of the page, as SVG without anything outside it."""
import io
import logging
import re
import warnings

import matplotlib
import numpy

matplotlib.use("svg")
import matplotlib.pyplot as plot

from .measure import SHORT, overlap
from .trace import shown
from .units import time, unit_of

logging.getLogger("matplotlib").setLevel(logging.ERROR)  # about letters that a font lacks: the browser draws them
# Colours that people tell apart whatever they see of red and green (Okabe and Ito).
COLOURS = {"bodies": "#0072B2", "steal": "#E69F00", "searches and steals": "#E69F00", "search": "#F0C75E", "sleep": "#BFC5CA",
           "unseen": "#FFFFFF", "outside": "#E8EBEE"}
WAITS = ("#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#8C6D31")
WIDE = 9.0
plot.rcParams.update({
    "svg.fonttype": "none", "font.size": 10, "font.family": "sans-serif", "axes.spines.top": False, "axes.spines.right": False, "axes.edgecolor": "#667",
    "axes.labelcolor": "#223", "xtick.color": "#445", "ytick.color": "#445", "axes.titlesize": 10, "axes.titlelocation": "left", "axes.grid": True,
    "grid.color": "#dde", "grid.linewidth": 0.6, "axes.axisbelow": True, "legend.frameon": False, "figure.constrained_layout.use": True})


def label(name, most=32):
    """Text that matplotlib does not take for a formula, nor for a legend's hidden entry."""
    return shown(name, most).replace("$", r"\$").lstrip("_") or "(no name)"


def svg(figure, name):
    """The figure as an element of a page; `name` keeps its references apart from those of other figures."""
    plot.rcParams["svg.hashsalt"] = name
    to = io.StringIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        figure.savefig(to, format="svg", metadata={"Date": None})
    plot.close(figure)
    text = to.getvalue()
    text = re.sub(r"<metadata>.*?</metadata>", "", text[text.index("<svg"):], flags=re.DOTALL)
    text = re.sub(r'<g id="[^"]*">', "<g>", text)  # the same in all figures, and nothing refers to them
    # In tags only: a name may look like a style, but has no bracket in the text of a page.
    families = lambda tag: re.sub(r"font: ([\d.]+)px [^;\"]*", r"font: \1px 'DejaVu Sans', Verdana, sans-serif", tag[0])
    return re.sub(r"<text [^>]*>", families, text)


def utilisation(run, bins=240):
    edges = numpy.linspace(run.start, run.stop, bins + 1)
    size, unit = unit_of(run.length)
    figure, axes = plot.subplots(figsize=(WIDE, 2.9))
    at, below = (edges - run.start) / size, numpy.zeros(bins)
    for name, level in run.busy_over_time(edges).items():
        axes.stairs(below + level, at, baseline=below, fill=True, color=COLOURS[name], label=name)
        below = below + level
    axes.axhline(len(run.rows), color="#667", linewidth=0.8)
    axes.set_xlabel(f"time since the trace begins ({unit})"), axes.set_ylabel("workers")
    axes.set_xlim(at[0], at[-1]), axes.set_ylim(0, len(run.rows) * 1.02)
    axes.yaxis.get_major_locator().set_params(integer=True)
    legend_above(axes, 3)
    return figure


def workers(run, labels, most=40):
    """Bars of what the time of each worker, or of each group of neighbours, went into. `labels`: {what: words}, in order."""
    rows = list(run.rows)
    group = -(-len(rows) // most)
    parts = [rows[i:i + group] for i in range(0, len(rows), group)]
    figure, axes = plot.subplots(figsize=(WIDE, 1.5 + 0.28 * len(parts)))
    names = []
    left = numpy.zeros(len(parts))
    for what, words in labels.items():
        width = numpy.array([100 * sum(run.shares[r].get(what, 0.0) for r in part) / (len(part) * run.length) for part in parts])
        colour = labels_colour(what, labels)
        axes.barh(range(len(parts)), width, left=left, height=0.72, color=colour, label=words,
                  **({"hatch": "////", "edgecolor": "#99a", "linewidth": 0} if what == "unseen" else {}))
        left += width
    for part in parts:
        first, last = run.trace.row_names[part[0]], run.trace.row_names[part[-1]]
        names.append(label(first) if len(part) == 1 else f"{label(first)} to {label(last).removeprefix('worker ')}")
    axes.set_yticks(range(len(parts)), names), axes.invert_yaxis()
    axes.set_xlim(0, 100), axes.set_xlabel("part of the time (%)"), axes.grid(axis="y", visible=False)
    legend_above(axes, len(labels))
    return figure


def labels_colour(what, labels):
    causes = [k for k in labels if isinstance(k, tuple)]
    return WAITS[causes.index(what) % len(WAITS)] if what in causes else COLOURS[what]


def legend_above(axes, entries):
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.0), ncol=3 if entries > 4 else 4, fontsize=9, borderaxespad=0.2, handlelength=1.4)


def lengths(types, most=6):
    """For each type of task, how its bodies are spread over lengths; the rarest types together."""
    kinds = types[:most] if len(types) <= most else types[:most - 1]
    rest = types[len(kinds):]
    if rest:
        kinds = kinds + [(None, numpy.concatenate([own for _, own in rest]))]
    low = numpy.floor(numpy.log10(max(min(own.min() for _, own in kinds), 0.01)))
    high = max(numpy.ceil(numpy.log10(max(own.max() for _, own in kinds) + 1e-9)), low + 2)  # two decades at least
    decades = numpy.arange(round(10 * low), round(10 * high) + 1) / 10
    edges = 10.0 ** decades
    figure, all_ = plot.subplots(len(kinds), 1, figsize=(WIDE, 0.8 + 1.05 * len(kinds)), sharex=True, squeeze=False)
    for axes, (name, own) in zip(all_[:, 0], kinds):
        counts, _ = numpy.histogram(numpy.clip(own, edges[0], edges[-1]), edges)
        axes.stairs(100 * counts / len(own), edges, fill=True, color=COLOURS["bodies"])
        axes.axvline(SHORT, color="#D55E00", linewidth=1, linestyle="--")
        title = f"{len(rest)} other types" if name is None else label(name)
        axes.set_title(f"{title}: {len(own):,} of median {time(numpy.median(own))}, {time(own.sum())} in total", fontsize=9.5)
        axes.set_ylim(0), axes.set_xscale("log"), axes.set_xlim(edges[0], edges[-1])
        axes.locator_params(axis="y", nbins=3)
    figure.supylabel("bodies of the type (%)", fontsize=10, color="#223")
    axes = all_[-1, 0]
    axes.set_xlabel("own time of a body" + (f"; dashed: {time(SHORT)}" if edges[0] < SHORT < edges[-1] else ""))
    ticks = [10.0 ** d for d in range(int(low), int(high) + 1)]
    axes.set_xticks(ticks, [time(t) for t in ticks]), axes.minorticks_off()
    return figure


def counter(run, name, series, bins=600):
    """The curves of one counter, sums over their sources. series: {key: (times, values, sources)}."""
    size, unit = unit_of(run.length)
    edges = numpy.linspace(run.start, run.stop, bins + 1)
    figure, all_ = plot.subplots(len(series), 1, figsize=(WIDE, 0.6 + 1.5 * len(series)), sharex=True, squeeze=False)
    for axes, (key, (at, value, source)) in zip(all_[:, 0], series.items()):
        mean, most = levels(at, value, source, edges)
        scale, words = (1 << 20, " (MiB)") if re.search("byte|memory", f"{name} {key}") else (1, "")
        x = (edges - run.start) / size
        axes.stairs(most / scale, x, baseline=None, color="#56B4E9", linewidth=1, label="most")
        axes.stairs(mean / scale, x, baseline=None, color="#0072B2", linewidth=1.4, label="mean")
        axes.set_ylabel(label(key, 20) + words), axes.set_ylim(0, max(1.05 * most.max() / scale, 1)), axes.set_xlim(x[0], x[-1])
    legend_above(all_[0, 0], 2)
    all_[-1, 0].set_xlabel(f"time since the trace begins ({unit})")
    return figure


def levels(at, value, source, edges):
    """The mean and the largest sum over the sources between each two edges; a source keeps its last value."""
    order = numpy.argsort(at, kind="stable")
    at = at[order]
    last, step = {}, numpy.empty(len(at))
    for k, i in enumerate(order.tolist()):
        step[k] = value[i] - last.get(source[i], 0.0)
        last[source[i]] = value[i]
    total = numpy.cumsum(step)
    before = numpy.searchsorted(at, edges, "right")
    held = numpy.r_[0.0, total][before]
    area = numpy.r_[0.0, numpy.cumsum(total[:-1] * numpy.diff(at)), 0.0]
    passed = numpy.where(before > 0, area[numpy.maximum(before - 1, 0)] + held * (edges - at[numpy.maximum(before - 1, 0)]), 0.0)
    mean = numpy.diff(passed) / numpy.diff(edges)
    most = numpy.maximum(held[:-1], held[1:])
    inside = numpy.flatnonzero((at > edges[0]) & (at <= edges[-1]))
    numpy.maximum.at(most, numpy.clip(numpy.searchsorted(edges, at[inside]) - 1, 0, len(most) - 1), total[inside])
    return mean, most


def transfers(run, bins=240):
    """Bytes for each second, by name of the transfer."""
    size, unit = unit_of(run.length)
    edges = numpy.linspace(run.start, run.stop, bins + 1)
    figure, axes = plot.subplots(figsize=(WIDE, 2.6))
    begin, end, name, amount = (numpy.array([t[k] for t in run.trace.transfers], float) for k in (0, 1, 3, 5))
    end = numpy.maximum(end, begin + 0.001)
    names = sorted({t[3] for t in run.trace.transfers})[:5]
    for number, colour in zip(names, (COLOURS["bodies"], *WAITS)):
        of = name == number
        passed = overlap(begin[of], end[of], edges, amount[of] / (end - begin)[of])
        axes.stairs(numpy.diff(passed) / (1 << 20) / (numpy.diff(edges) / 1e6), (edges - run.start) / size, color=colour, linewidth=1.4,
                    label=label(run.trace.names.all[number]))
    axes.set_xlabel(f"time since the trace begins ({unit})"), axes.set_ylabel("MiB/s"), axes.set_ylim(0)
    axes.set_xlim(0, run.length / size)
    legend_above(axes, len(names))
    return figure


def grids(turns, most=400):
    """The grids of the paper: computing, waiting, both; by task and iteration, in 12 shades. The
    longest hundredth does not count for the scale if it is far longer."""
    longest = max(len(t) for t in turns.values())
    waiting, computing = (numpy.full((len(turns), longest), numpy.nan) for _ in range(2))
    for k, times in enumerate(turns.values()):
        waiting[k, :len(times)], computing[k, :len(times)] = zip(*times)
    figure, all_ = plot.subplots(1, 3, figsize=(WIDE, 3.9), sharey=True)
    for axes, (title, grid) in zip(all_, (("computing", computing), ("waiting", waiting), ("total", computing + waiting))):
        top, most_times = max(float(numpy.nanmax(grid)), 1e-3), float(numpy.nanquantile(grid, 0.99))
        beyond = top > 2 * most_times > 0  # a few turns would make all others white
        top = most_times if beyond else top
        size, unit = unit_of(top)
        image = axes.imshow(coarser(grid, most) / size, aspect="auto", interpolation="nearest", vmin=0, vmax=top / size, cmap=plot.get_cmap("Greys", 12),
                            extent=(0.5, longest + 0.5, len(turns) - 0.5, -0.5))
        bar = figure.colorbar(image, ax=axes, orientation="horizontal", ticks=numpy.linspace(0, top / size, 4), format="%.3g", aspect=25,
                              extend="max" if beyond else "neither")
        bar.set_label(f"time ({unit})"), bar.outline.set_linewidth(0.5)
        axes.set_title(title), axes.set_xlabel("iteration"), axes.grid(False)
        for a in (axes.xaxis, axes.yaxis):
            a.get_major_locator().set_params(integer=True)
    all_[0].set_ylabel("task")
    return figure


def scaling(workers, speed_up):
    """The expected speed-up, beside one that is as large as the number of workers."""
    figure, axes = plot.subplots(figsize=(WIDE, 3.4))
    axes.plot(workers, workers, color="#667", linewidth=0.8, linestyle="--", label="as many as workers")
    axes.plot(workers, speed_up, color=COLOURS["bodies"], marker="o", markersize=4, linewidth=1.6, label="expected")
    axes.set_xscale("log", base=2), axes.set_yscale("log", base=2)
    axes.set_xticks(workers, [f"{p:,}" for p in workers]), axes.minorticks_off()
    top = max(2 * max(speed_up), 2)
    heights = [2.0 ** k for k in range(int(numpy.ceil(numpy.log2(top))) + 1)]
    axes.set_yticks(heights, [f"{h:,.0f}" for h in heights])
    axes.set_ylim(0.9 * min(1, *(v for v in speed_up if v > 0), 1), top), axes.set_xlim(workers[0], max(workers[-1], workers[0] + 1))
    axes.set_xlabel("workers"), axes.set_ylabel("speed-up")
    legend_above(axes, 2)
    return figure


def coarser(grid, most):
    """At most so many rows and columns; each is the mean of those it stands for."""
    for axis in (0, 1):
        n = grid.shape[axis]
        if n > most:
            firsts = numpy.unique(numpy.linspace(0, n, most, endpoint=False).astype(int))
            known = numpy.add.reduceat((~numpy.isnan(grid)).astype(float), firsts, axis)
            sums = numpy.add.reduceat(numpy.nan_to_num(grid), firsts, axis)
            grid = numpy.where(known > 0, sums / numpy.maximum(known, 1), numpy.nan)
    return grid
