#!/usr/bin/python3
# SPDX-License-Identifier: BSL-1.0
"""Tests weft-report: made traces, whose numbers are computed here in another way, and traces of real runs.

usage: report_test.py <weft-report> <trace_program> <scene>
"""
import html.parser
import json
import os
import pathlib
import random
import re
import resource
import shutil
import subprocess
import sys
import tempfile
import time
import xml.dom.minidom

import report_traces
from report_traces import Maker

folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-report-"))


def check(condition, sentence):
    if not condition:
        sys.exit(sentence)


def equal(found, expected, what):
    check(found == expected, f"{what}: {found} instead of {expected}")


def near(found, expected, what):
    check(abs(found - expected) < 0.01, f"{what}: {found} instead of {expected}")


class Tables(html.parser.HTMLParser):
    """What is in the tables and lists of a page, and whether its elements nest."""

    def __init__(self, text):
        super().__init__()
        self.tables, self.open, self.items, self.texts, self.cell, self.graphics, self.references = {}, [], [], [], None, 0, []
        self.feed(text)
        check(not [t for t in self.open if t not in ("html",)], f"elements are not closed: {self.open}")

    def handle_starttag(self, tag, attributes):
        attributes = dict(attributes)
        self.references += [v for k, v in attributes.items() if k in ("src", "href", "xlink:href") and v]
        if tag in ("meta", "link", "path", "use", "rect", "image", "line"):
            return
        self.open.append(tag)
        if tag == "table":
            self.table = self.tables.setdefault(attributes["id"], [])
        elif tag == "tr":
            self.table.append([])
        elif tag in ("td", "th", "li"):
            self.cell = []
        self.graphics += tag == "svg"

    def handle_startendtag(self, tag, attributes):
        self.references += [v for k, v in attributes if k in ("src", "href", "xlink:href") and v]

    def handle_endtag(self, tag):
        if tag in ("meta", "link", "path", "use", "rect", "image", "line"):
            return
        check(self.open and self.open.pop() == tag, f"</{tag}> closes another element")
        if tag in ("td", "th"):
            self.table[-1].append("".join(self.cell))
        elif tag == "li":
            self.items.append("".join(self.cell))

    def handle_data(self, data):
        if self.cell is not None:
            self.cell.append(data)
        self.texts.append(data)


def run(*arguments, status=0, environment=None):
    done = subprocess.run([sys.executable, program, *map(str, arguments)], capture_output=True, text=True,
                          env={**os.environ, **(environment or {})})
    check(done.returncode == status, f"ended with {done.returncode}:\n{done.stdout}{done.stderr}")
    return done


def report(trace, *more):
    """The page of a trace, looked through, and the text itself."""
    done = run(trace, *more)
    check(done.stderr == "", f"said on the error stream: {done.stderr}")
    text = trace.with_suffix(".html").read_text()
    page = Tables(text)
    for r in page.references:
        check(r.startswith(("#", "data:")), f"the page refers to {r}")
    check(not re.search(r"url\((?!#)|@import|<script", text), "the page needs something else")
    return page, text


def made(name, maker, *more):
    return report(maker.write(folder / f"{name}.json"), *more)


# What was computed by hand

def numbers():
    """Two workers; all that the tables say is written here beside the events."""
    m = Maker(2)
    # Worker 0: root from 0 to 40, then from 60 to 100. In it 'a' (10 to 30), and in this 'b' (12 to 18).
    m.slice(0, "b", 12, 18), m.slice(0, "a", 10, 30), m.slice(0, "root", 0, 40)
    m.wait(0, 1, "a task elsewhere", 40.001, 59.999)
    m.slice(0, "steal", 48, 50, "idle"), m.slice(0, "search", 42, 50, "idle")
    m.slice(0, "b", 50, 58)
    m.slice(0, "sleep", 60, 100, "idle")
    # Worker 1: search from 0 to 20, of which the last 2 are a steal; 'a' from 20 to 56; the rest of the root from 60 on.
    m.slice(1, "steal", 18, 20, "idle"), m.slice(1, "search", 0, 20, "idle")
    m.stolen(1, "a", 20, 56, 99)
    m.slice(1, "root", 60, 100)
    m.wait(1, 1, "a mutex", 100.001, 109, args={"object": "0x7f00"})
    m.slice(1, "sleep", 102, 106, "idle")
    m.slice(1, "root", 109, 110)
    m.level(0, 5, 3, 4)
    page, _ = made("numbers", m)
    types = {row[0]: row[1:] for row in page.tables["types"]}
    # root: 40 - 20 + 40 + 1 without 'a'; one body in three parts. a: 20 - 6, and 36. b: 6, and 8.
    equal(types["root"], ["1", "61 µs", "49 %", "61 µs", "61 µs", "61 µs", "0 %"], "type root")
    equal(types["a"], ["2", "50 µs", "40 %", "25 µs", "33.8 µs", "36 µs", "0 %"], "type a")
    equal(types["b"], ["2", "14 µs", "11 %", "7 µs", "7.8 µs", "8 µs", "0 %"], "type b")
    causes = {row[0]: row[1:] for row in page.tables["causes"]}
    # Idle of the first: search from 42 to 48. Of the mutex: sleep from 102 to 106.
    equal(causes["a task elsewhere"], ["1", "20 µs", "20 µs", "20 µs", "6 µs"], "cause")
    equal(causes["a mutex"], ["1", "9 µs", "9 µs", "9 µs", "4 µs"], "cause mutex")
    equal(page.tables["longest"][1:], [["a task elsewhere", "root", "worker 0", "worker 1", "40 µs", "20 µs"],
                                       ["a mutex (0x7f00)", "root", "worker 1", "worker 1", "100 µs", "9 µs"]], "longest waits")
    head, both, first, second = page.tables["workers"]
    share = lambda row, what: row[head.index(what)]
    # Of 110: worker 0 has bodies for 40 + 8, a steal of 2, 6 for the wait, 40 of sleep, 14 between. The run has no gap.
    equal([share(first, w) for w in ("bodies", "steals", "waits: a task elsewhere", "searches", "sleep", "between records")],
          ["44 %", "1.8 %", "5.5 %", "0 %", "36 %", "13 %"], "worker 0")
    # Worker 1: bodies 36 + 40 + 1, search 18, steal 2, 4 for the mutex, no other sleep, 9 between.
    equal([share(second, w) for w in ("bodies", "steals", "waits: a mutex", "searches", "sleep", "between records")],
          ["70 %", "1.8 %", "3.6 %", "16 %", "0 %", "8.2 %"], "worker 1")
    check(page.graphics == 4, f"{page.graphics} figures instead of: utilisation, workers, lengths, counter")
    check("57 %" in "".join(page.items), "bodies: 125 of 220")
    # Bodies inside each other wait together, and go on elsewhere: one of each, and a second 'inner' behind it.
    m = Maker(2)
    m.slice(0, "inner", 10, 20), m.slice(0, "outer", 5, 20.001), m.slice(0, "root", 0, 20.002)
    m.wait(0, 1, "an event", 20.003, 29)
    m.slice(1, "inner", 30, 31), m.slice(1, "outer", 30, 34), m.slice(1, "inner", 36, 39), m.slice(1, "root", 30, 40)
    page, _ = made("nested", m)
    equal({row[0]: row[1:3] for row in page.tables["types"][1:]},
          {"inner": ["2", "14 µs"], "root": ["1", "8 µs"], "outer": ["1", "8 µs"]}, "bodies that wait together")
    equal(page.tables["longest"][1][:4], ["an event", "inner", "worker 0", "worker 1"], "the innermost is the one that waits")


def counted():
    """Numbers of random traces against counts of whole microseconds, cell by cell."""
    sys.path.insert(0, str(pathlib.Path(program).parent))
    from weft_report import measure, trace
    seen = {"waits": 0, "outside": 0, "alone": 0, "inner": 0, "transfers": 0, "dropped": 0, "some": 0, "left out": 0}
    for seed in range(400):
        chance = random.Random(seed)
        workers, horizon = chance.randrange(1, 5), 120
        m = Maker(workers, dropped=chance.randrange(2) * 5)
        inner = [[None] * horizon for _ in range(workers)]  # what is innermost, by microsecond: (kind, name, begin)
        firsts, ends, waiting = [], [horizon] * workers, [[] for _ in range(workers)]

        def paint(w, kind, name, begin, end):
            for t in range(begin, end):
                inner[w][t] = kind, name, begin
            ends[w] = min(ends[w], end)
            if kind != "task":
                m.slice(w, name, begin, end, "idle")

        def nest(w, begin, end, depth):
            name = f"t{chance.randrange(4)}"
            paint(w, "task", name, begin, end)
            at = begin + chance.randrange(3)
            while depth < 4 and at + 1 < end:
                stop = chance.randrange(at + 1, end + 1)
                if chance.random() < 0.5:
                    nest(w, at, stop, depth + 1)
                    seen["inner"] += 1
                at = stop + chance.randrange(4)
            m.slice(w, name, begin, end)  # behind those inside it, as it ends

        for w in range(workers):
            at = chance.randrange(10)
            firsts.append(None)
            while at < horizon - 1:
                stop = min(at + chance.randrange(1, 14), horizon)
                what = chance.choice(["task", "search", "sleep", "nothing", "nothing"])
                if what != "nothing" and firsts[w] is None:
                    firsts[w] = at
                if what == "task":
                    nest(w, at, stop, 0)
                elif what != "nothing":
                    paint(w, what, what, at, stop)
                    if what == "search" and chance.random() < 0.5 and stop - at > 1:
                        paint(w, "steal", "steal", stop - 1, stop)
                at = stop
            for begin in chance.sample(range(horizon - 2), chance.randrange(3)):
                end, cause = chance.randrange(begin + 1, horizon), chance.choice(["a mutex", "an event"])
                waiting[w].append((begin, end, cause))
                m.wait(w, chance.randrange(workers), cause, begin, end)
                seen["waits"] += 1
        moving = [False] * horizon
        for _ in range(chance.randrange(3)):
            begin = chance.randrange(horizon - 1)
            end = chance.randrange(begin + 1, horizon)
            m.wait(workers, None, "read", begin, end, "transfer", args={"bytes": 1})
            moving[begin:end] = [True] * (end - begin)
            seen["transfers"] += 1
        if all(f is None for f in firsts):
            continue
        lossy = [w for w in range(workers) if m.dropped and firsts[w] is not None]
        if m.dropped and chance.random() < 0.5:  # it is said of which records were dropped
            lossy = chance.sample(range(workers), chance.randrange(1, workers + 1))
            for w in lossy:
                m.add(w, "M", "dropped_records", args={"count": 1})
            lossy = [w for w in lossy if firsts[w] is not None]
            seen["some"] += len(lossy) < workers
        got = measure.Run(trace.read(m.write(folder / "random.json")))
        # Of a worker that lacks records, all is known that goes on when the first one that is left has ended.
        start = max([min(f for f in firsts if f is not None)] + [ends[w] for w in lossy])
        ends = [t + 1 for w in range(workers) for t in range(horizon) if inner[w][t]] + [e for l in waiting for _, e, _ in l]
        ends += [t + 1 for t in range(horizon) if moving[t]]
        stop = max(ends)
        check(got.start == start and got.stop == stop, f"seed {seed}: from {got.start} to {got.stop}")
        seen["dropped"] += bool(m.dropped)
        body = [[inner[w][t] is not None and inner[w][t][0] == "task" for t in range(horizon)] for w in range(workers)]
        shares = [{} for _ in range(workers)]
        alone, alone_in, in_transfer, active_time = 0, {}, 0, 0
        for t in range(start, stop):
            active = any(body[w][t] for w in range(workers) if t < horizon) or any(b <= t < e for l in waiting for b, e, _ in l)
            busy = [w for w in range(workers) if body[w][t]]
            active_time += active
            if len(busy) == 1:
                alone += 1
                name = inner[busy[0]][t][1]
                alone_in[name] = alone_in.get(name, 0) + 1
            for w in range(workers):
                kind = inner[w][t][0] if inner[w][t] else None
                here = [(b, c) for b, e, c in waiting[w] if b <= t < e]
                if not active:
                    what = "outside"
                elif kind == "task":
                    what = "bodies"
                elif kind in ("search", "sleep") and here:
                    what = "wait", max(here)[1]
                else:
                    what = kind or "unseen"
                if active and kind in ("search", "sleep") and moving[t]:
                    in_transfer += 1
                shares[w][what] = shares[w].get(what, 0) + 1
        rows = {got.trace.rows.all[r][1]: share for r, share in got.shares.items()}
        for w in range(workers):
            for what in {*shares[w], *rows[w]}:
                near(rows[w].get(what, 0.0), shares[w].get(what, 0), f"seed {seed}, worker {w}, {what}")
        near(got.active.total, active_time, f"seed {seed}, in runs")
        near(got.alone.total, alone, f"seed {seed}, alone")
        near(got.idle_in_transfer, in_transfer, f"seed {seed}, idle in transfers")
        for name in {*alone_in, *got.alone_in}:
            near(got.alone_in.get(name, 0.0), alone_in.get(name, 0), f"seed {seed}, alone in {name}")
        expected = {}
        for kind, name, begin in (cell for row in inner for cell in row if cell):
            if kind == "task" and begin >= start:
                expected[name] = expected.get(name, 0) + 1
        if not got.following or start == min(f for f in firsts if f is not None):  # else parts are left out with their bodies
            found = {name: own.sum() for name, own in got.types()}
            for name in {*found, *expected}:
                near(found.get(name, 0.0), expected.get(name, 0), f"seed {seed}, own time of {name}")
            seen["left out"] += got.left_out > 0
        if stop > start:
            levels = got.busy_over_time(range(start, stop + 1))
            for t in range(start, stop):
                near(levels["bodies"][t - start], sum(body[w][t] for w in range(workers)), f"seed {seed}, busy at {t}")
        seen["outside"] += any("outside" in s for s in shares)
        seen["alone"] += alone > 0
    check(all(n > 20 for n in seen.values()), f"too little happened: {seen}")
    print(seen)


# Advice

def advice():
    """Each rule speaks where it should, and not just below."""
    sys.path.insert(0, str(pathlib.Path(program).parent))
    from weft_report import advice, measure, trace

    def said(maker, name):
        return " ".join(a.text for a in advice.advise(measure.Run(trace.read(maker.write(folder / f"{name}.json")))))

    def grains(short):
        m = Maker(1)
        for i in range(200):
            m.slice(0, "leaf", 10 * i, 10 * i + (0.299 if i < short else 0.301))
        return said(m, "grain")

    check("50 % of the tasks are shorter than 0.3 µs, most of them 'leaf'" in grains(100), "no advice on the grain")
    check("72 % of the tasks" in grains(144), "another share of short tasks")
    check("shorter than 0.3 µs" not in grains(99), "advice on the grain of long tasks")

    def alone(length):
        m = Maker(2)
        m.slice(0, "start", 0, length), m.slice(0, "rest", length, 100), m.slice(1, "other", length, 100)
        return said(m, "alone")

    # One of two workers alone for 25 %: at most 1 / (0.25 + 0.75 / 2) = 1.6 times as fast.
    check("For 25 % of the run only one worker was in a body, 100 % of this time in 'start'" in alone(25), "no advice on the serial part")
    check("2 workers are at most 1.6 times as fast" in alone(25), "another limit")
    check("only one worker" not in alone(19), "advice on a short serial part")

    chain = Maker(2)
    for i in range(10):
        chain.slice(i % 2, "link", 10 * i, 10 * i + 10)
    check("100 % of this time in 'link': its 10 bodies ran one after the other" in said(chain, "chain"), "no advice on a chain")

    def idle(part, pending):
        m = Maker(2)
        m.slice(0, "work", 0, 100), m.slice(1, "work", 0, 100 - part), m.slice(1, "search", 100 - part, 100, "idle")
        m.level(0, 0, 0, pending)
        return said(m, "idle")

    check("nothing to do for 20 % of their time. On average 1.0 tasks were pending. So there are too few tasks" in idle(40, 1), "no advice on idle workers")
    check("waited for others" in idle(40, 30), "no advice on accesses")
    check("Workers had nothing to do for" not in idle(39, 1), "advice on busy workers")
    check("One body of 'work' took 100 µs" in idle(40, 1), "no advice on the longest body")

    moved = Maker(2)  # a strand with 6 pending tasks goes from worker 0 to worker 1 in the middle
    moved.slice(0, "a", 0, 50), moved.level(0, 0, 0, 6), moved.wait(0, 1, "an event", 50.001, 51), moved.slice(1, "a", 51.001, 100)
    moved.level(1, 70, 0, 2), moved.slice(1, "sleep", 0, 50, "idle")
    check("On average 4.8 tasks were pending" in said(moved, "moved"), "pending tasks of a strand that moves")

    def locks(waiting, cause="a mutex"):
        m = Maker(2)
        m.slice(0, "holds", 0, 100), m.slice(1, "wants", 0, 50)
        m.wait(1, 1, cause, 50.001, 100), m.slice(1, "sleep", 100 - waiting, 100, "idle"), m.slice(1, "wants", 100.001, 110)
        return said(m, "locks")

    # 26 of 220 are more than 10 %, 18 are less.
    check("waited for 'a mutex' (1 waits, 50 µs in the median)" in locks(26), "no advice on the lock")
    check("a mutex' (" not in locks(18), "advice on a lock that costs nothing")
    for cause in ("a mutex", "a shared mutex", "a semaphore", "the lock of an ORWL location"):
        check(f"'{cause}' (1 waits, 50 µs in the median): hold it for less time" in locks(26, cause), f"no advice on {cause}")
    for cause in ("a time", "a call that may block", "one of several channels", "a channel", "a barrier", "a latch", "a condition",
                  "a condition variable", "the sink of an append stream", "the items of a pipeline", "a part of its body, taken by a thief"):
        check(f"'{cause}' (1 waits, 50 µs in the median): look at what ends this wait" in locks(26, cause), f"no advice on {cause}")
        check("hold it for" not in locks(26, cause), f"advice as on a lock on {cause}")

    def steals(length):
        m = Maker(2)
        for i in range(20):
            m.slice(0, "forks", 100 * i, 100 * i + 90)
            m.slice(1, "steal", 100 * i, 100 * i + 2, "idle"), m.stolen(1, "small", 100 * i + 2, 100 * i + 2 + length, i + 1)
        return said(m, "steals")

    check("Half of the 20 stolen tasks took less than 3.9 µs, with all that ran inside them, and a steal takes 2 µs" in steals(3.9), "no advice on steals")
    check("stolen tasks took" not in steals(4.1), "advice on worthwhile steals")

    def disk(idle_time):
        m = Maker(1)
        m.slice(0, "computes", 0, 100 - idle_time), m.wait(0, 0, "an event", 100 - idle_time, 100), m.slice(0, "sleep", 100 - idle_time, 100, "idle")
        m.wait(1, None, "read", 0, 100, "transfer", args={"bytes": 1 << 20})
        return said(m, "disk")

    check("while data went between memory and files" in disk(11), "no advice on transfers")
    check("data went" not in disk(9), "advice on hidden transfers")

    unseen = Maker(1)
    for i in range(100):
        unseen.slice(0, "task", 10 * i, 10 * i + 7)
    unseen.slice(0, "task", 1000, 1001)
    unseen.wait(0, 0, "an event", 0, 1000)
    text = said(unseen, "unseen")
    check("30 % of the workers' time lies between the records" in text, "no advice on time between records")
    check("100 % of the tasks have no name" in text, "no advice on names")
    apart = Maker(1)
    apart.slice(0, "run", 0, 10), apart.slice(0, "run", 90, 100)
    check("For 80 % of the trace no run was under way" in said(apart, "apart"), "no advice on time outside runs")
    good = Maker(2)
    good.slice(0, "x", 0, 100), good.slice(1, "y", 0, 95)
    check("Workers were in bodies for 98 % of their time: no rule finds anything" in said(good, "good"), "no praise")


# Iterations

def turns():
    """The grids: of bodies that wait for locks, of numbered names, and of what an overlay has recorded."""
    def blocks(cause):
        m = Maker(2)
        for w in range(2):  # computes 10, then three times waits 5 and computes 2, 3, 4
            m.slice(w, "block", 0, 10)
            at = 10
            for k in range(3):
                m.wait(w, w, cause, at + 0.001, at + 5)
                m.slice(w, "block", at + 5.001, at + 5.001 + 2 + k)
                at = at + 5.001 + 2 + k
        return made("locks", m)

    for cause in ("a barrier", "the lock of an ORWL location"):
        page, text = blocks(cause)
        equal(page.tables["turns"][1], ["2", "3", "18 µs", "30 µs", "48 µs", "3 µs", "5 µs"], f"turns of bodies that wait for {cause}")
    for cause in ("a time", "a call that may block", "an event"):
        check("turns" not in blocks(cause)[0].tables, f"a grid of bodies that wait for {cause}")
    equal(page.tables["types"][1][:3], ["block", "2", "38 µs"], "bodies in parts")
    m = Maker(1)
    for k in range(4):
        for t in range(3):  # tasks of 2 every 10
            m.slice(0, f"cell {t}", 10 * (3 * k + t), 10 * (3 * k + t) + 2)
    m.slice(0, "other", 200, 201)
    page, _ = made("names", m)
    # Each waits from the end of its turn to the next one, 30 - 2, three times.
    equal(page.tables["turns"][1], ["3", "4", "24 µs", "252 µs", "276 µs", "2 µs", "21 µs"], "turns of names")
    recorded = folder / "turns.csv"
    recorded.write_text("task,name,iteration,waiting_ns,computing_ns,total_ns\n" +
                        "".join(f"{t},a, cell,{k},{1000 * k},{2000},{1000 * k + 2000}\n" for t in range(3) for k in range(4)))
    page, _ = made("names", m, "--turns", recorded)
    equal(page.tables["turns"][1], ["3", "4", "24 µs", "18 µs", "42 µs", "2 µs", "1.5 µs"], "turns of an overlay")
    m = Maker(1)
    for k in range(4):
        m.slice(0, "read", 10 * k, 10 * k + 1), m.slice(0, "write", 10 * k + 5, 10 * k + 6)
    page, _ = made("no grid", m)
    check("turns" not in page.tables, "a grid of tasks that are no iterations")
    for bad, sentence in (("", "does not begin with the heading"), ("task,name\n", "does not begin with the heading"),
                          ("task,name,iteration,waiting_ns,computing_ns,total_ns\n", "has no turns"),
                          ("task,name,iteration,waiting_ns,computing_ns,total_ns\n1,x,0,a,2,3\n", "line 2: no turn of a task"),
                          ("task,name,iteration,waiting_ns,computing_ns,total_ns\n1,x,1,1,2,3\n", "line 2: iteration 1 where 0 was expected")):
        recorded.write_text(bad)
        check(sentence in run(folder / "names.json", "--turns", recorded, status=1).stderr, f"not refused: {sentence}")


# Speed-up

def scaling():
    """The expected speed-up, beside a trace and alone."""
    written = folder / "scaling.csv"
    written.write_text("workers,speed_up\n1,1\n2,1.98765\n4,3.2\n1024,7.5\n")
    m = Maker(1)
    m.slice(0, "x", 0, 100)
    for page in (made("scaled", m, "--scaling", written)[0], alone(written)):
        equal(page.tables["scaling"], [["workers", "1", "2", "4", "1,024"], ["speed-up", "1", "1.99", "3.2", "7.5"]], "speed-up")
    check("types" in made("scaled", m, "--scaling", written)[0].tables, "the trace is missing beside the speed-up")
    check("scaling" not in made("scaled", m)[0].tables, "a speed-up that nobody has given")
    for bad, sentence in (("", "does not begin with the heading"), ("workers,speed_up\n", "has no speed-up"),
                          ("workers,speed_up\n1,x\n", "line 2: no number of workers"), ("workers,speed_up\n2,1\n2,1\n", "line 3: no speed-up of more workers"),
                          ("workers,speed_up\n1,nan\n", "line 2: no speed-up of more workers")):
        written.write_text(bad)
        check(sentence in run("--scaling", written, status=1).stderr, f"not refused: {sentence}")
    check("no trace is named" in run(status=2).stderr, "a report on nothing")
    check("no trace is named" in run("--scaling", written, "--merge", folder / "x.json", status=2).stderr, "nothing is merged")


def alone(scaling_file):
    run("--scaling", scaling_file)
    return Tables(scaling_file.with_suffix(".html").read_text())


# Several processes

BEGUN = 1_700_000_000_000_000_000


def processes():
    """Traces of several processes on one page: their times are aligned, and their workers told apart."""
    def one(name, process, later, rank, **more):
        m = Maker(1, process, origin=BEGUN + 1000 * later if later is not None else None, rank=rank, **more)
        m.slice(0, "work", 10, 30)
        m.wait(0, 0, "an event", 30.001, 39.999), m.slice(0, "work", 40, 50), m.level(0, 20, 0, 6)
        m.wait(1, None, "read", 12, 14, "transfer", args={"bytes": 1})
        return m.write(folder / f"{name}.json")

    def tables(*paths, to="two.html"):
        run(*paths, "-o", folder / to)
        return Tables((folder / to).read_text())

    # The second has begun 40 later, on another machine where it has the same number; its file is named first.
    page = tables(one("late", 7, 40, 1), one("early", 7, 0, 0))
    equal([row[0] for row in page.tables["workers"]], ["worker", "all", "process 0: worker 0", "process 1: worker 0"], "rows")
    # From 10 to 90. Each is in bodies for 30 of 80.
    equal([row[1] for row in page.tables["workers"][2:]], ["38 %", "38 %"], "parts of the time of all")
    equal(page.tables["types"][1][:3], ["work", "2", "60 µs"], "bodies of two processes")
    equal(sorted(row[4] for row in page.tables["longest"][1:]), ["30 µs", "70 µs"], "waits at common times")
    check("80 µsin runs" in page.items, f"the time of all runs: {page.items[:6]}")
    page = tables(one("first", 3, 0, None), one("second", 4, 5, None))
    equal([row[0] for row in page.tables["workers"][2:]], ["3: worker 0", "4: worker 0"], "numbers of processes")
    page = tables(one("first", 3, 0, None), one("second", 3, 5, None))
    equal([row[0] for row in page.tables["workers"][2:]], ["first.json, 3: worker 0", "second.json, 3: worker 0"], "two runtimes of a process")
    page = tables(one("lossy", 3, 0, 0, dropped=5), one("second", 4, 5, 1, dropped=7))
    check("12 records were dropped" in page.items[6], "dropped records of two processes")
    said = run(folder / "early.json", one("old", 4, None, None), status=1).stderr
    check("old.json does not tell when it began" in said and said.count("\n") == 1, "a trace that cannot be aligned")
    check("old.json" not in run(folder / "old.json").stderr, "alone it needs no alignment")
    said = run(folder / "early.json", folder / "late.json", "-o", folder / "late.json", status=1).stderr
    check("the page would replace its input" in said, "the page replaces the second trace")
    said = run(folder / "early.json", "--merge", folder / "early.json", status=1).stderr
    check("the merged trace would replace its input" in said, "the merged trace replaces a trace")
    (folder / "none.json").write_text("{}")
    check("none.json is no trace" in run(folder / "early.json", folder / "none.json", status=1).stderr, "which file is none")
    check(run(folder / "early.json", folder / "late.json").stdout.startswith(str(folder / "early.html")), "the name of the page")
    bad = Maker(1, origin=BEGUN)
    bad.events[1]["args"]["unix_ns"] = "now"
    check("is no trace of weft" in run(bad.write(folder / "bad.json"), status=1).stderr, "an origin that is no time")


def merged():
    """One trace of several: numbers that no other process has, common times, a row for each task that moved."""
    import trace_test

    def merge(*paths, rows=None):
        done = run(*paths, "--merge", folder / "all.json", *([] if rows is None else ["--rows", rows]))
        check(done.stderr == "", f"said on the error stream: {done.stderr}")
        events, dropped = trace_test.load(folder / "all.json")
        names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
        moved = [p for p, name in names.items() if name.startswith("tasks that moved")]
        run(folder / "all.json", "--merge", folder / "again.json", *([] if rows is None else ["--rows", rows]))
        return events, names, moved, done.stdout, dropped

    def row(events, pid, tid):
        return [(e["name"], e["ts"], round(e["ts"] + e["dur"], 3), *e["args"].values()) for e in events
                if e["ph"] == "X" and e["pid"] == pid and e["tid"] == tid]

    def one(rank, later):
        m = Maker(2, origin=BEGUN + 1000 * later, rank=rank, dropped=rank)
        m.slice(0, "inner", 2, 4), m.slice(0, "root", 0, 10)
        m.forked(0, 1, 5, 0)
        m.slice(1, "steal", 7, 8, "idle"), m.add(1, "t", "stolen", cat="arrow", bp="e", id=5 << 12, ts=8)
        m.slice(1, "inner", 8.5, 9), m.slice(1, "task", 8, 20), m.add(1, "f", "stolen", cat="arrow", bp="e", id=5 << 12, ts=20)
        m.wait(1, 0, "a mutex", 20.001, 29.999, args={"object": "0x7f00"}), m.slice(0, "task", 30, 35)
        m.wait(0, 0, "an event", 35.001, 36), m.slice(0, "task", 36.001, 40)
        m.slice(0, "stays", 50, 55), m.wait(0, 0, "an event", 55.001, 59), m.slice(0, "stays", 59.001, 61)
        m.slice(0, "goes", 70, 71), m.wait(0, 1, "an event", 71.001, 72), m.slice(1, "goes", 72.001, 73)
        m.wait(2, None, "write", 3, 4, "transfer", args={"bytes": 9})
        return m.write(folder / f"rank {rank}.json")

    events, names, moved, said, dropped = merge(one(0, 0), one(1, 100))
    equal(dropped, 1, "dropped records")
    check("4 tasks moved between workers, 4 of them have rows" in said, said)
    equal(sorted(names.values()), ["tasks that moved (process 0 of 4)", "tasks that moved (process 1 of 4)",
                                   "weft runtime, process 0 of 4", "weft runtime, process 1 of 4"], "processes")
    check(len(names) == 4 and len(moved) == 2, f"numbers of processes {names}")
    moved.sort(key=names.get)
    for pid, later, process in ((moved[0], 0, 0), (moved[1], 100, 1)):
        worker = lambda n: f"process {process}: worker {n}"
        equal(row(events, pid, 0), [("pending", later + 1, later + 8, worker(0)), ("task", later + 8, later + 20, worker(1)),
                                    ("a mutex (0x7f00)", later + 20, later + 30, worker(1)), ("task", later + 30, later + 35, worker(0)),
                                    ("an event", later + 35, later + 36.001, worker(0)), ("task", later + 36.001, later + 40, worker(0))], "the stolen task")
        equal(row(events, pid, 1), [("goes", later + 70, later + 71, worker(0)), ("an event", later + 71, later + 72.001, worker(0)),
                                    ("goes", later + 72.001, later + 73, worker(1))], "the task that waited")
        equal(row(events, pid, 2), [], "a task that stayed")
    check((folder / "all.json").read_text() == (folder / "again.json").read_text(), "merging what was merged changes it")
    # The page is the same, whether the traces were put together before or not.
    run(folder / "rank 0.json", folder / "rank 1.json", "-o", folder / "apart.html"), run(folder / "all.json", "-o", folder / "whole.html")
    apart, whole = (Tables((folder / name).read_text()) for name in ("apart.html", "whole.html"))
    check(len(apart.tables) >= 4, f"tables {list(apart.tables)}")
    equal(whole.tables, apart.tables, "tables of a merged trace")
    check("not of a kind" not in "".join(whole.texts), "rows of tasks that moved are foreign")
    _, _, _, said, _ = merge(folder / "rank 0.json", folder / "rank 1.json", rows=1)
    check("4 tasks moved between workers, 1 of them have rows" in said, said)
    check(not any(e["name"] == "goes" and e.get("cat") == "moved" for e in trace_test.load(folder / "all.json")[0]), "the shortest has a row")

    # Real ones: a cluster whose runtimes have one number, and two processes side by side.
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
    subprocess.run([trace_program, "cluster", str(folder / "part.json")], check=True, capture_output=True, env=environment)
    paths = [folder / f"part{n}.json" for n in ("", ".2", ".3")]
    events, names, moved, _, _ = merge(*paths)
    check({f"weft runtime, process {r} of 3" for r in range(3)} <= set(names.values()), f"processes {names}")
    for kind in ("task", "wait", "moved"):
        for pid in names:
            trace_test.check_nesting([e for e in events if e["pid"] == pid and e["ph"] == "X"])
    trace_test.check_arrows(events)
    count = lambda events, phase: sum(e["ph"] == phase for e in events)
    alone = [e for p in paths for e in trace_test.load(p)[0]]
    for phase in "XbesfC":
        equal(count([e for e in events if e["pid"] not in moved], phase), count(alone, phase), f"events '{phase}'")
    both = [subprocess.Popen([trace_program, "moment", str(folder / f"moment {i}.json")], stdout=subprocess.PIPE, text=True, env=environment)
            for i in range(2)]
    told = [dict(line.split(" ") for line in p.communicate()[0].splitlines()) for p in both]
    events, names, moved, _, _ = merge(*(folder / f"moment {i}.json" for i in range(2)))
    equal(sorted(names), sorted(p.pid for p in both), "numbers of the processes")
    origin = {e["args"]["unix_ns"] for e in events if e["name"] == "clock_origin"}
    equal(len(origin), 1, "origins")
    jump = 5_000_000  # of a thread that loses its processor between two clocks
    for p, times in zip(both, told):
        at = [e["ts"] * 1000 + min(origin) for e in events if e["pid"] == p.pid and e["name"] == "marked" and e["ph"] == "X"]
        check(int(times["before"]) - jump <= at[0] <= int(times["after"]) + jump, f"marked at {at}, not between {times}")
    # Thefts: each arrow that ends has a row.
    seen = 0
    for scene in ("mixed", *["waits"] * 50):  # thieves may be late on a busy machine
        path = folder / f"{scene}.json"
        subprocess.run([trace_program, scene, str(path)], check=True, capture_output=True, env=environment)
        events, names, moved, said, _ = merge(path, rows=100000)
        stolen = sum(e["ph"] == "f" and e["name"] == "stolen" for e in events)
        pending = sum(e["name"] == "pending" and e["pid"] in moved for e in events)
        print(f"{scene}: {stolen} stolen; {said}", end="")
        equal(pending, stolen, f"{scene}: stolen tasks with a row")
        seen += stolen
        if scene == "waits" and seen:
            break
    check(seen > 0, "nothing was stolen")


# Bad input

def refused():
    """One line and status 1 for what is no trace of weft; a page for what is one, whatever it lacks."""
    m = Maker(1)
    m.slice(0, "x", 1, 2)
    good = m.text()
    event = '{"ph":"X","pid":7,"tid":0,"name":"x","cat":"task","ts":1,"dur":1}'
    cases = {
        "empty": ("", "is empty: the program has ended before its runtime did"),
        "cut": (good[:len(good) // 2], "ends too early"),
        "cut at the end": (good.rstrip()[:-1], "ends too early"),
        "damaged": (good.replace('"dur":1', '"dur"1'), "is damaged"),
        "text": ("hello", "is damaged: Expecting value at line 1, column 1"),
        "number": ("17", "it has no list of events"),
        "object": ("{}", "it has no list of events"),
        "no list": ('{"traceEvents":{}}', "it has no list of events"),
        "foreign": ('{"traceEvents":[{"ph":"X","pid":1,"tid":1,"name":"f","cat":"c","ts":1,"dur":2}]}', "is a trace of another program"),
        "array": (f"[{event}]", "is a trace of another program"),
        "lacks": (good.replace('"dur":1', '"d":1'), "an event lacks the member 'dur'"),
        "word": (good.replace('"ts":1', '"ts":"1"'), "is no trace of weft"),
        "infinite": (good.replace('"ts":1', '"ts":Infinity'), "a time is negative, or is none"),
        "none": (good.replace('"ts":1', '"ts":NaN'), "a time is negative, or is none"),
        "negative": (good.replace('"dur":1', '"dur":-1'), "a time is negative, or is none"),
        "huge": (good.replace('"ts":1', '"ts":1e300'), "a time is negative, or is none"),
        "list": (good.replace('"pid":7', '"pid":[7]'), "is no trace of weft"),
        "deep": ("[" * 100000, "is no trace of weft"),
        "dropped": (good.replace('"dropped_records":0', '"dropped_records":"many"'), "is no trace of weft"),
    }
    for name, (text, sentence) in cases.items():
        path = folder / f"{name}.json"
        path.write_text(text)
        said = run(path, status=1).stderr
        check(sentence in said and said.startswith("weft-report: ") and said.count("\n") == 1, f"{name}: said {said!r}")
        check(not path.with_suffix(".html").exists(), f"{name}: a page nevertheless")
    binary = folder / "binary.json"
    binary.write_bytes(bytes(range(256)) * 10)
    check("is damaged" in run(binary, status=1).stderr, "binary data")
    check("No such file" in run(folder / "missing.json", status=1).stderr, "a file that is missing")
    check("Is a directory" in run(folder, "-o", folder / "x.html", status=1).stderr, "a folder")
    check("usage" in run(status=2).stderr, "no argument")
    path = m.write(folder / "good.json")
    check("No such file" in run(path, "-o", folder / "no/page.html", status=1).stderr, "a page in no folder")
    check("would replace its input" in run(path, "-o", path, status=1).stderr and path.read_text() == good, "the trace was replaced")
    # Each beginning of a trace is refused, or the whole one is taken.
    chance = random.Random(3)
    for _ in range(25):
        part = folder / "part.json"
        part.write_text(good[:chance.randrange(len(good) - 2)])
        check(run(part, status=1).stderr.count("\n") == 1, "more than a line")
    nothing, _ = made("nothing", Maker(2))
    check("No task ran while the trace was made" in " ".join(nothing.items), "a trace without tasks")
    only = Maker(1)
    only.slice(0, "sleep", 3, 5, "idle")
    made("only sleep", only)
    zero = Maker(1)
    zero.slice(0, "x", 5, 5)
    made("zero", zero)
    for e in [{"ph": "i", "pid": 7, "tid": 0, "name": "mark", "ts": 1}, {"ph": "X", "pid": 7, "tid": 0, "name": "y", "cat": "gpu", "ts": 1, "dur": 1}]:
        zero.events.append(e)
    page, _ = made("mixed", zero)
    check("2 events are not of a kind that weft writes" in "".join(page.texts), "foreign events are not told")
    def lost(of):  # 'outer' lasts for 1000, and what ran in it before 900 is not there any more
        m = Maker(2, dropped=1234)
        for i in range(50):
            m.slice(0, "small", 900 + 2 * i, 901.5 + 2 * i)
            m.slice(1, "small", (900 if 1 in of else 0) + 2 * i, (901 if 1 in of else 1) + 2 * i)
        m.slice(0, "outer", 0, 1000)
        for w in of:
            m.add(w, "M", "dropped_records", args={"count": 617})
        page, text = made("lost", m)
        check("1,234 records were dropped" in page.items[6] and "from 902 µs on" in "".join(page.texts), "dropped records are not told")
        # 'outer', the first 'small' of each, and what worker 1 did long before.
        check(f"{3 if 1 in of else 52} bodies that began before are left out" in "".join(page.texts), "bodies that are left out are not told")
        equal([row[0] for row in page.tables["types"][1:]], ["small"], "types of whole bodies")
        # From 901.5 to 1000, of which half a microsecond is not the own time of any 'small'.
        check(page.tables["workers"][2][1] == "100 %", "worker 0 from 901.5 on")
        for share in re.findall(r"([\d.]+) %", "\n".join(page.texts)):
            check(float(share) <= 100, f"{share} % of a whole")

    lost((0, 1)), lost((0,)), lost(())
    everything = Maker(1, dropped=3)
    everything.slice(0, "inner", 50, 60), everything.slice(0, "outer", 0, 100)
    page, _ = made("everything", everything)
    check("All tasks that are left began before the workers are known" in " ".join(page.items) and "types" not in page.tables, "bodies that began too early")
    twice = Maker(1, process=1)
    twice.slice(0, "x", 0, 1)
    other = Maker(1, process=2)
    other.slice(0, "x", 0, 1)
    twice.events += other.events
    page, _ = made("processes", twice)
    equal([row[0] for row in page.tables["workers"]], ["worker", "all", "1: worker 0", "2: worker 0"], "workers of two processes")


def fuzzed():
    """Real traces in which members are missing or have other values: a page, or one line."""
    sys.path.insert(0, str(pathlib.Path(program).parent))
    from weft_report import page, trace
    subprocess.run([trace_program, "waits", str(folder / "real.json")], check=True, capture_output=True)
    whole = json.loads((folder / "real.json").read_text())
    values = [None, True, -1, 0, 1e18, float("inf"), float("nan"), "x", "", [], {}, [1], {"a": 1}, 1 << 70, "\ud800"]
    ended = {"pages": 0, "refused": 0}
    path = folder / "fuzzed.json"
    for seed in range(100):
        chance, data = random.Random(seed), json.loads(json.dumps(whole))
        events = data["traceEvents"]
        for _ in range(chance.randrange(1, 4)):
            e = chance.choice(events)
            if e is not None and isinstance(e, dict) and e:
                place = chance.choice([e, e, e, e.get("args") or e, data] if isinstance(e.get("args") or e, dict) else [e])
                key = chance.choice(list(place))
                if chance.random() < 0.3:
                    del place[key]
                else:
                    place[key] = chance.choice(values)
        path.write_text(json.dumps(data))
        try:
            Tables(page.make(trace.read(path), None, None, "fuzzed")[0])
            ended["pages"] += 1
        except trace.Fault as fault:
            check("\n" not in str(fault), f"seed {seed}: more than a line: {fault}")
            ended["refused"] += 1
    check(min(ended.values()) > 10, f"too little happened: {ended}")
    print(ended)


def names():
    """Names with any characters stay text."""
    hostile = ["font: 12px abc", 'style="font: 9px abc', "<script>alert(1)</script>", "</title><em>", "a&amp;b", '"quoted" \'too\'', "$x^2$", "$x^2$ and $", "_hidden", "\\frac{1}{2}", "\x00\x1b[31m\n", "\ud800",
               "\u202eright", "]]>", "<!--", "π and 木 and 🧵", "", "x" * 255, "%s %d", "{name}", "a\u0301"]
    m = Maker(1)
    for i, name in enumerate(hostile):
        m.slice(0, name, 100 * i, 100 * i + (60 if name == "$x^2$" else 50))
        m.wait(0, 0, name, 100 * i + 60, 100 * i + 70)
    m.level(0, 3, 1, 2)
    m.add(0, "C", "<memory>", ts=10, args={"<bytes & $more$>": 1 << 20})
    m.wait(1, None, "<read $a$>", 3, 50, "transfer", args={"bytes": 1 << 20})
    path = folder / "<names> & $.json"
    page, text = report(m.write(path))
    found = {row[0] for row in page.tables["types"]}
    for drawn in re.findall(r"<svg.*?</svg>", text, re.DOTALL):
        xml.dom.minidom.parseString(drawn)
    check("font: 12px abc" in re.sub(r"<[^>]*>", "", text), "a name that looks like a style was changed")
    for name in ("<script>alert(1)</script>", "a&amp;b", '"quoted" \'too\'', "$x^2$", "$x^2$ and $", "_hidden", "π and 木 and 🧵", "(no name)", "x" * 47 + "…"):
        check(name in found, f"{name!r} is not in the table of types")
    check(not re.search(r"<script|<em>|[\x00-\x08\x0e-\x1f\u202e]", text), "a name became markup")
    check("$x^2$: 1 of median 60 µs, 60 µs in total" in page.texts, "a formula")
    short = Maker(1)
    for i in range(100):
        short.slice(0, "<em>", i, i + 0.1)
    page, text = made("advice", short)
    check("0.3 ?s" in run(folder / "advice.json", environment={"PYTHONIOENCODING": "ascii"}).stdout, "a terminal without letters")
    check("<em>" in page.items[6] and "<em>" not in text, "a name in an advice became markup")
    page, text = report(path)
    check("C: " not in text and "matplotlib" not in run(path).stderr, "warnings")
    check(page.graphics == 6, f"{page.graphics} figures")
    check(text == (run(path), path.with_suffix(".html").read_text())[1], "the same trace makes another page")


# Real runs

def real():
    """Traces of real programs, compared with what they have counted themselves."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
    for scene in ("tree", "serial", "mixed", "waits", "hostile", "small", "aborts", "throws"):
        path = folder / f"real {scene}.json"
        done = subprocess.run([trace_program, scene, str(path)], capture_output=True, text=True, env=environment)
        page, _ = report(path)
        types = {row[0]: row[1:] for row in page.tables["types"]}
        promised = [line.rsplit(" ", 1) for line in done.stdout.splitlines() if line.startswith("tasks ")]
        check(promised or scene in ("hostile", "small", "aborts"), f"{scene} promises nothing")
        for words, count in promised:
            # Parts of bodies are put together again, so that there is one body for each task.
            equal(int(types[words[len("tasks "):]][0].replace(",", "")), int(count), f"{scene}: bodies of {words}")
        if scene == "waits":
            equal(types["slow"][0], "20", "bodies of slow")
            equal(types["task"][0], "1", "the root, in one piece")
            waits = sum(int(row[1]) for row in page.tables["causes"][1:])
            equal(waits, int(re.search(r"suspensions (\d+)", done.stdout)[1]), "waits")
            for cause, body in (row[:2] for row in page.tables["longest"][1:]):
                # A thief that has taken 'held' waits for its event when the body has ended already.
                known = {"task", "held", "slow", "other"} | ({"ended, or not known"} if cause == "an event" else set())
                check(body in known, f"the body that waits for '{cause}': {body}")
        if scene == "tree":
            check(f"{re.search(r'steals (.*)', done.stdout)[1]}steals" in page.items, f"steals in {page.items[:6]}")
        if scene == "small":
            check("records were dropped" in " ".join(page.items), "dropped records are not told")


def large():
    """A million events: how long it takes and how large the page is; and what is large in another way."""
    maker = report_traces.large(1_000_000)
    path = maker.write(folder / "large.json")
    begin = time.monotonic()
    report(path)
    computed = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
    size = path.with_suffix(".html").stat().st_size
    print(f"{len(maker.events)} events: {time.monotonic() - begin:.1f} s, page of {size / 1e6:.2f} MB")
    check(size < 5_000_000, f"the page has {size} bytes")
    check(computed < 20, f"the report took {computed:.1f} s of the processor")
    sys.path.insert(0, str(pathlib.Path(program).parent))
    from weft_report import measure, trace

    def moving(strands):  # each goes from worker to worker, and what was counted of its tasks with it
        m = Maker(2)
        for i in range(strands):
            w = i % 2
            m.slice(w, "a", 4 * i, 4 * i + 1), m.level(w, 4 * i + 1, 1, 5)
            m.wait(w, 1 - w, "a task elsewhere", 4 * i + 1.1, 4 * i + 1.5)
        run = measure.Run(trace.read(m.write(folder / "moving.json")))
        begin = time.process_time()
        run.move_levels_()
        equal(len(run.counters["tasks", "pending"][0]), 3 * strands, "levels of strands that move")
        return time.process_time() - begin

    few, four_times = min(moving(30_000) for _ in range(3)), moving(120_000)
    print(f"moving strands: {few:.2f} s, four times as many: {four_times:.2f} s")
    check(four_times < 9 * few, "strands that move take more than in proportion to their number")
    many = Maker(2000)
    for i in range(20_000):
        w = i % 2000
        many.slice(w, f"cell {i % 5000}", i, i + 3), many.wait(w, w, f"lock {i % 700}", i + 3.001, i + 4000), many.add(w, "C", f"c{i % 50}", ts=i, args={f"k{i % 30}": i})
    page, text = made("many", many)
    check(len(text) < 5_000_000, f"the page of many workers has {len(text)} bytes")
    equal(page.tables["turns"][1][:2], ["5,000", "4"], "the grid of many tasks")


def missing():
    """Without matplotlib it says how to get it."""
    (folder / "matplotlib").mkdir()
    (folder / "matplotlib/__init__.py").write_text("raise ModuleNotFoundError('none', name='matplotlib')")
    said = run(Maker(1).write(folder / "x.json"), status=1, environment={"PYTHONPATH": str(folder)}).stderr
    check(said.count("\n") == 1 and "apt-get install python3-matplotlib" in said, f"said {said}")
    check("usage" in run("--help", environment={"PYTHONPATH": str(folder)}).stdout, "no help without matplotlib")


# In a browser

measuring = """<script>window.addEventListener('load', () => {
const r = [...document.querySelectorAll('svg')].map(s => { const b = s.getBoundingClientRect(); return [Math.round(b.width), Math.round(b.height)] });
document.body.insertAdjacentHTML('beforeend', '<pre id=measured>' + JSON.stringify({svg: r, page: document.documentElement.scrollWidth, window: innerWidth,
 texts: document.querySelectorAll('svg text').length}) + '</pre>') })</script>"""


def browser():
    """Opened without a network, the page shows its figures and reports no error, also on a narrow screen."""
    chromium = shutil.which("chromium")

    def dump(address, *more):
        return subprocess.run([chromium, "--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--enable-logging=stderr",
                               f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND", *more, "--dump-dom", address],
                              capture_output=True, text=True, timeout=100)

    if chromium is None or "<html" not in dump("about:blank").stdout:
        print("there is no chromium that starts: skipped")
        return

    def show(path, width):
        done = dump(path.as_uri(), f"--window-size={width},900")
        measured = re.search(r"<pre id=\"measured\">(.*?)</pre>", done.stdout)
        check(measured, f"the page was not shown: {done.stderr}")
        return json.loads(measured[1]), [line for line in done.stderr.splitlines() if "CONSOLE" in line]

    path, expected = folder / "shown.json", folder / "expected.csv"
    subprocess.run([trace_program, "waits", str(path)], check=True, capture_output=True)
    expected.write_text("workers,speed_up\n1,1\n2,1.9\n4,3.2\n")
    _, scaled = report(path, "--scaling", expected)
    _, text = report(path)
    page = folder / "measured.html"
    for width, shown, figures in ((1200, text, 5), (500, text, 5), (1200, scaled, 6), (500, scaled, 6)):
        page.write_text(shown + measuring)
        found, errors = show(page, width)
        equal(errors, [], "errors of the browser")
        equal(len(found["svg"]), figures, "figures: utilisation, workers, lengths, tasks, memory, and the expected speed-up if it is known")
        check(all(w >= 450 and h >= 100 for w, h in found["svg"]), f"figures of {found['svg']}")
        check(found["page"] <= found["window"], f"the page is {found['page']} wide in a window of {found['window']}")
        check(found["texts"] > 50, f"{found['texts']} texts in the figures")
    page.write_text(text + "<script>console.error('planted')</script>" + measuring)
    check(any("planted" in e for e in show(page, 1200)[1]), "a planted error is not seen")
    print(f"figures: {found['svg']}")


if __name__ == "__main__":
    program, trace_program, scene = sys.argv[1:]
    program = str(pathlib.Path(program).resolve())
    try:
        globals()[scene]()
    finally:
        shutil.rmtree(folder, ignore_errors=True)
