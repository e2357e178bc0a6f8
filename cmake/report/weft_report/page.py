# SPDX-License-Identifier: BSL-1.0
"""The page: text, tables and figures in one file that refers to nothing outside it."""
import html

import numpy

from . import draw
from .advice import advise
from .measure import SHORT, Run
from .trace import STEAL, shown
from .units import number, percent, time

STYLE = """
:root{color-scheme:light}
body{font:16px/1.5 system-ui,-apple-system,'Segoe UI',Roboto,'DejaVu Sans',sans-serif;color:#1c2430;background:#fff;max-width:62rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.6rem;margin:0 0 .2rem;overflow-wrap:anywhere}h2{font-size:1.2rem;margin:2.4rem 0 .4rem;border-top:1px solid #d9dee5;padding-top:1.2rem}
p{margin:.4rem 0;max-width:46rem}.of{color:#56616f;overflow-wrap:anywhere}.note{color:#56616f;font-size:.9rem}
.facts{display:flex;flex-wrap:wrap;gap:.6rem;margin:1rem 0;padding:0;list-style:none}.facts li{background:#f2f5f8;border-radius:.4rem;padding:.5rem .9rem}
.facts b{display:block;font-size:1.25rem;line-height:1.3}.facts span{color:#56616f;font-size:.85rem}
.advice{padding:0;list-style:none}.advice li{border-left:4px solid #0072B2;background:#f2f7fb;padding:.6rem .9rem;margin:.6rem 0;border-radius:0 .4rem .4rem 0;overflow-wrap:anywhere}
.advice small{display:block;color:#56616f;margin-top:.2rem}
.wide{overflow-x:auto;margin:.6rem 0}.wide svg{display:block;width:100%;min-width:38rem;height:auto}
table{border-collapse:collapse;font-size:.9rem;font-variant-numeric:tabular-nums}th,td{padding:.25rem .7rem;text-align:right;border-bottom:1px solid #e3e7ec;white-space:nowrap}
th{color:#56616f;font-weight:600}.words{text-align:left}summary{cursor:pointer;color:#0b5c93;margin:.5rem 0}
"""


class Page:
    def __init__(self):
        self.parts, self.figures = [], 0

    def text(self, text, kind="p", of=None):
        self.parts.append(f"<{kind}{f' class={of}' if of else ''}>{html.escape(text)}</{kind}>")

    def figure(self, figure, words):
        """`words`: what it shows, for those who do not see it."""
        self.figures += 1
        drawn = draw.svg(figure, f"figure {self.figures}")
        self.parts.append(f'<div class=wide role=img aria-label="{html.escape(words)}" tabindex=0>{drawn}</div>')

    def table(self, name, head, rows, words=1):
        """`words`: how many columns at the left are text."""
        cell = lambda tag, i, v: f"<{tag}{' class=words' if i < words else ''}>{html.escape(str(v))}</{tag}>"
        line = lambda tag, row: "<tr>" + "".join(cell(tag, i, v) for i, v in enumerate(row)) + "</tr>"
        body = "".join(line("td", row) for row in rows)
        self.parts.append(f"<div class=wide tabindex=0><table id={name}><thead>{line('th', head)}</thead><tbody>{body}</tbody></table></div>")


def make(trace, turns, scaling, file_name):
    """The text of the page, and the advice on it. Only `scaling` may be there, or not."""
    page, advice = Page(), []
    page.text("Report on a run" if trace is not None else "How far a program scales", "h1")
    if trace is not None:
        page.text(f"{shown(file_name, 200)}, a trace of weft", of="of")
        advice = show_trace(page, trace, turns)
    else:
        page.text(f"{shown(file_name, 200)}, written by a recorded run", of="of")
    if scaling is not None:
        show_scaling(page, *scaling)
    return (f"<!DOCTYPE html>\n<html lang=en>\n<meta charset=utf-8>\n<meta name=viewport content='width=device-width, initial-scale=1'>\n"
            f"<link rel=icon href='data:,'>\n<title>weft: {html.escape(shown(file_name, 200))}</title>\n<style>{STYLE}</style>\n<main>\n"
            + "\n".join(page.parts) + "\n</main>\n</html>\n", advice)


def show_trace(page, trace, turns):
    """*Returns*: the advice."""
    run = Run(trace)
    advice = advise(run)
    facts = [(number(len(run.rows)), "workers" if len(run.rows) != 1 else "worker"), (time(run.active.total), "in runs"), (number(len(run.body_own)), "tasks"),
             (percent(run.total.get("bodies", 0) / run.available) if run.available else "-", "of the workers' time in bodies"),
             (number(len(run.waits)), "waits"), (number(sum(int((row.kind == STEAL).sum()) for row in run.rows.values())), "steals")]
    page.parts.append("<ul class=facts>" + "".join(f"<li><b>{html.escape(v)}</b><span>{html.escape(w)}</span></li>" for v, w in facts) + "</ul>")
    if trace.dropped:
        out = f" {number(run.left_out)} bodies that began before are left out, since records of what ran inside them may be missing." if run.left_out else ""
        page.text(f"{number(trace.dropped)} records were dropped, the oldest of each worker: times of workers count from {time(run.start)} on, when all of them are "
                  f"known; tasks are those that began later, and waits those that are left.{out}", of="note")
    if trace.foreign:
        page.text(f"{number(trace.foreign)} events are not of a kind that weft writes, and were left out.", of="note")
    page.parts.append("<section id=advice>")
    page.text("What to change", "h2")
    items = (f"<li>{html.escape(a.text)}<small>Rule: {html.escape(a.rule)}.</small></li>" for a in advice)
    page.parts.append("<ul class=advice>" + "".join(items) + "</ul></section>")
    if run.length > 0 and len(run.rows):
        show_time(page, run)
    if len(run.body_own):
        show_tasks(page, run)
    if run.waits:
        show_waits(page, run)
    if run.length > 0:
        show_counters(page, run)
    show_grids(page, run, turns)
    return advice


def show_time(page, run):
    page.text("How many workers were busy", "h2")
    page.text("In bodies: executing tasks. White: between records, or no run was under way.", of="note")
    page.figure(draw.utilisation(run), "workers in bodies, in searches and steals, and asleep, over time")

    page.text("Where each worker's time went", "h2")
    causes = sorted((k for k in run.total if isinstance(k, tuple)), key=lambda k: -run.total[k])
    labels = {"bodies": "bodies", "steal": "steals"}
    labels.update({k: f"idle, waits for {draw.label(k[1])}" for k in causes[:5] if run.total[k] > 0})
    for k in causes[5:]:  # the rest counts as what it was
        for share in (run.total, *run.shares.values()):
            share["search"] = share.get("search", 0.0) + share.pop(k, 0.0)
    labels.update({"search": "searches", "sleep": "sleep", "unseen": "between records"})
    if run.total.get("outside", 0.0) > 0.0005 * run.length * len(run.rows):
        labels["outside"] = "no run under way"
    page.text("A worker whose body waits looks for other work. Where it finds none, its search and sleep are counted under what the body that began "
              "to wait there last waits for. Between records: the scheduler, the records themselves, other programs on the processor.", of="note")
    page.figure(draw.workers(run, labels), "what the time of each worker went into")
    head = ["worker", *(f"waits: {shown(k[1])}" if isinstance(k, tuple) else w for k, w in labels.items())]
    row = lambda name, share, all_: [name, *(percent(share.get(k, 0.0) / all_) for k in labels)]
    rows = [row("all", run.total, run.length * len(run.rows))]
    rows += [row(shown(run.trace.row_names[r]), share, run.length) for r, share in list(run.shares.items())[:64]]
    page.parts.append("<details><summary>As numbers</summary>")
    page.table("workers", head, rows)
    page.parts.append("</details>")


def show_tasks(page, run, most=30):
    types = run.types()
    page.text("How long the tasks were", "h2")
    page.text("The own time of a body is what it took without the tasks that ran inside its forks and without its waits. "
              f"Left of {time(SHORT)}, what a task costs is not small beside what it does; a record makes each some tens of nanoseconds longer.", of="note")
    page.figure(draw.lengths(types), "histograms of the own times of tasks, by type")
    everything = run.body_own.sum()
    rows = [(shown(name), number(len(own)), time(own.sum()), percent(own.sum() / everything) if everything else "-", time(numpy.median(own)),
             time(numpy.percentile(own, 90)), time(own[-1]), percent((own < SHORT).mean())) for name, own in types[:most]]
    page.table("types", ["type", "number", "own time", "share", "median", "9 of 10 below", "longest", f"under {time(SHORT)}"], rows)
    if len(types) > most:
        page.text(f"{number(len(types) - most)} types with less time are not listed.", of="note")


def show_waits(page, run, most=15):
    page.text("Waits", "h2")
    page.text("Of bodies, not of workers: in most of this time the worker executes other tasks. Idle: how long it had nothing else to do.", of="note")
    by_cause = sorted(run.causes.items(), key=lambda c: -sum(c[1]))
    idle = lambda cause: run.total.get(("wait", cause))
    page.table("causes", ["what for", "waits", "in total", "median", "longest", "idle"],
               [(shown(c), number(len(l)), time(sum(l)), time(numpy.median(l)), time(max(l)), "-" if idle(c) is None else time(idle(c))) for c, l in by_cause[:most]])
    page.text("The longest waits", "h2")
    longest = sorted(run.waits, key=lambda w: -w.length)[:most]
    row_name = lambda r: shown(run.trace.row_names.get(r, "?"))
    page.table("longest", ["what for", "body", "began on", "went on on", "at", "length"],
               [(shown(w.which, 64), shown(run.name_of(w.before) or "ended, or not known"), row_name(w.row), row_name(w.to), time(w.begin), time(w.length)) for w in longest], words=4)


def show_counters(page, run):
    by_name = {}
    for (name, key), series in run.counters.items():
        if len(series[0]):
            by_name.setdefault(name, {})[key] = series
    for name, series in list(by_name.items())[:8]:
        page.text("Tasks that were ready and pending" if name == "tasks" else f"Counter: {shown(name)}", "h2")
        if name == "tasks":
            page.text("Ready: kept for thieves. Pending: deferred and not begun, of the strands that workers execute. Counted about every 30 µs.", of="note")
        if not any(values.any() for _, values, _ in series.values()):
            page.text("Always 0.")
            continue
        page.figure(draw.counter(run, name, dict(list(series.items())[:6])), f"counter {shown(name)} over time")
    if run.trace.transfers:
        page.text("Transfers between memory and files", "h2")
        total = sum(t[5] for t in run.trace.transfers)
        part = percent(run.transferring.total / run.active.total) if run.active.total else "-"
        page.text(f"{number(len(run.trace.transfers))} transfers, {total / (1 << 20):.4g} MiB; some transfer was under way for {part} of the run.", of="note")
        page.figure(draw.transfers(run), "bytes for each second over time")


def show_scaling(page, workers, speed_up):
    page.text("Expected speed-up", "h2")
    page.text("Expected by observe::work_and_span from one serial run: a greedy schedule, in which each wait on the longest chain of tasks costs a steal.", of="note")
    page.figure(draw.scaling(workers, speed_up), "expected speed-up by number of workers")
    page.table("scaling", ["workers", *map(number, workers)], [["speed-up", *(f"{v:.3g}" for v in speed_up)]])


def show_grids(page, run, turns):
    if turns is not None:
        words = "As overlay::write_times has written it: a row is a task of the overlay; waiting is the time since its turn before."
    else:
        turns, words = run.turns()
    if not turns:
        return
    page.text("Iterations: computing, waiting, total", "h2")
    page.text(words + " Twelve shades, from white (0) to the longest time of a grid; a scale that ends in a "
              "point leaves out the hundredth that is far longer.", of="note")
    page.figure(draw.grids(turns), "grids of computing, waiting and total time by task and iteration")
    of = lambda k: sum(times[k] for t in turns.values() for times in t)
    count = sum(len(t) for t in turns.values())
    row = [number(len(turns)), number(max(map(len, turns.values())))]
    row += [time(t) for t in (of(1), of(0), of(0) + of(1), of(1) / count, of(0) / count)]
    page.table("turns", ["tasks", "iterations", "computing", "waiting", "total", "a turn computes", "and waits"], [row], words=0)
