# SPDX-License-Identifier: BSL-1.0
"""Reads a trace of weft (include/weft/observe/trace.hpp writes it) into columns. Times are in microseconds."""
import csv
import json
from array import array

import numpy

TASK, SEARCH, STEAL, SLEEP = range(4)
KINDS = {("task", None): TASK, ("idle", "search"): SEARCH, ("idle", "steal"): STEAL, ("idle", "sleep"): SLEEP}
LATEST = 1e15  # microseconds, some 30 years: sums stay exact enough


class Fault(Exception):
    """What is wrong with the input, in one line."""


def shown(name, most=48):
    """A name as people can read it: one short line."""
    text = "".join(c if c.isprintable() else "\N{MIDDLE DOT}" for c in name.encode("utf-8", "replace").decode()).strip()
    return (text[:most - 1] + "\N{HORIZONTAL ELLIPSIS}" if len(text) > most else text) or "(no name)"


class Numbers:
    """Gives equal things the same number, from 0."""

    def __init__(self):
        self.all, self.of = [], {}

    def __call__(self, thing):
        number = self.of.get(thing)
        if number is None:
            number = self.of[thing] = len(self.all)
            self.all.append(thing)
        return number


class Trace:
    """Workers; slices of their rows, in the order in which they ended; waits, transfers and counters; how many records were dropped, and of which rows."""

    def __init__(self):
        self.rows = Numbers()  # (process, thread)
        self.names = Numbers()  # of tasks, waits, transfers
        self.row_names, self.foreign, self.is_weft, self.events = {}, 0, False, 0
        self.begin, self.length = array("d"), array("d")
        self.row, self.name, self.kind = array("l"), array("l"), array("b")
        self.open, self.pairs = {}, {"wait": [], "transfer": []}
        self.goes_on, self.stolen_ends, self.counters = {}, [], {}
        self.lossy = set()  # rows of which records were dropped

    def take(self, e):
        """Called for each object of the file, the innermost first."""
        phase = e.get("ph")
        if phase is None:
            return e
        self.events += 1
        if phase == "X":
            category, name = e["cat"], e["name"]
            kind = TASK if category == "task" else KINDS.get((category, name))
            if kind is None:
                self.foreign += 1
                return None
            self.begin.append(e["ts"])
            self.length.append(e["dur"])
            self.row.append(self.rows((e["pid"], e["tid"])))
            self.name.append(self.names(str(name)))
            self.kind.append(kind)
        elif phase == "f":
            if e["name"] == "stolen":
                self.stolen_ends.append((self.rows((e["pid"], e["tid"])), float(e["ts"])))
            elif e["name"] == "goes on":  # the arrow of wait n has the number n * 4096 + 4095
                self.goes_on[e["pid"], e["id"] >> 12] = self.rows((e["pid"], e["tid"]))
        elif phase == "b":
            self.open[e["pid"], e["cat"], e["id"]] = e
        elif phase == "e":
            first = self.open.pop((e["pid"], e["cat"], e["id"]), None)
            if first is None or first["cat"] not in self.pairs:
                self.foreign += 1
            else:
                self.pairs[first["cat"]].append(
                    (float(first["ts"]), float(e["ts"]), self.rows((e["pid"], e["tid"])), self.names(str(first["name"])),
                     (e["pid"], e["id"]), float(first.get("args", {}).get("bytes", 0))))
        elif phase == "C":
            source = (e["pid"], e.get("id"))
            hash(source)  # refuses what is no number
            for key, value in e["args"].items():
                series = self.counters.setdefault((str(e["name"]), str(key)), ([], [], []))
                for column, x in zip(series, (e["ts"], value, source)):
                    column.append(x)
        elif phase == "M":
            name = e["args"].get("name")
            if e["name"] == "process_name" and name == "weft runtime":
                self.is_weft = True
            elif e["name"] == "thread_name":
                self.row_names[self.rows((e["pid"], e["tid"]))] = str(name)
            elif e["name"] == "dropped_records":
                self.lossy.add(self.rows((e["pid"], e["tid"])))
        elif phase not in "st":
            self.foreign += 1
        return None

    def close(self, dropped):
        self.dropped = dropped
        for column in ("begin", "length", "row", "name", "kind"):
            setattr(self, column, numpy.array(getattr(self, column)))
        self.end = self.begin + self.length
        self.waits, self.transfers = (sorted(self.pairs[kind], key=lambda p: p[:4]) for kind in ("wait", "transfer"))
        for name, (at, value, source) in self.counters.items():
            self.counters[name] = numpy.array(at, float), numpy.array(value, float), source
        for times in (self.begin, self.length, *(c[0] for c in self.counters.values()),
                      *(numpy.array([p[:2] for p in all_], float) for all_ in self.pairs.values())):
            if not ((times >= 0).all() and (times <= LATEST).all()):  # also if it is no number
                raise ValueError("a time is negative, or is none")
        for values in (numpy.array([t[5] for t in self.transfers]), *(c[1] for c in self.counters.values())):
            if not (abs(values) <= 1e18).all():
                raise ValueError("a number of bytes or tasks is none")
        transfers = {r for r, name in self.row_names.items() if name == "transfers"}
        self.workers = [r for r in range(len(self.rows.all)) if r not in transfers]
        if self.dropped and not self.lossy:  # not said of which
            self.lossy = set(self.workers)
        processes = {p for p, _ in self.rows.all}
        for r in self.workers:
            process, thread = self.rows.all[r]
            name = self.row_names.get(r, f"worker {thread}")
            self.row_names[r] = name if len(processes) == 1 else f"{process}: {name}"
        by_number = lambda text: (len(text), text)
        self.workers.sort(key=lambda r: [by_number(str(n)) for n in self.rows.all[r]])
        return self


def read(path):
    """The trace in a file. Raises Fault if there is none, OSError if the file cannot be read."""
    data = path.read_bytes()
    if not data.strip():
        raise Fault(f"{path} is empty: the program has ended before its runtime did, or still runs")
    trace = Trace()
    try:
        # Names may have any bytes when somebody else has written them.
        text = data.decode("utf-8", "replace")
        del data
        whole = json.loads(text, object_hook=trace.take)
    except json.JSONDecodeError as e:
        how = "ends too early" if e.pos >= len(text.rstrip()) - 1 or "Unterminated" in e.msg else "is damaged"
        raise Fault(f"{path} {how}: {e.msg} at line {e.lineno}, column {e.colno}; write the trace again") from None
    except KeyError as e:
        raise Fault(f"{path} is no trace of weft: an event lacks the member {e}") from None
    except (AttributeError, TypeError, ValueError, OverflowError, RecursionError) as e:
        raise Fault(f"{path} is no trace of weft: {e}") from None
    del text
    events = whole.get("traceEvents") if isinstance(whole, dict) else whole
    if not isinstance(events, list):
        raise Fault(f"{path} is no trace: it has no list of events 'traceEvents'")
    if not trace.is_weft:
        raise Fault(f"{path} is a trace of another program: no process in it is called 'weft runtime'")
    try:
        other = whole.get("otherData", {}) if isinstance(whole, dict) else {}
        return trace.close(int(other.get("dropped_records", 0)))
    except (AttributeError, TypeError, ValueError, OverflowError) as e:
        raise Fault(f"{path} is no trace of weft: {e}") from None


def read_turns(path):
    """What orwl::overlay::write_times has written, as {(task, name): [(waiting, computing), ...]}."""
    turns = {}
    with open(path, newline="", encoding="utf-8", errors="replace") as lines:
        rows = csv.reader(lines)
        if next(rows, None) != ["task", "name", "iteration", "waiting_ns", "computing_ns", "total_ns"]:
            raise Fault(f"{path} does not begin with the heading that overlay::write_times writes")
        for number, row in enumerate(rows, 2):
            try:
                task, iteration, waiting, computing = int(row[0]), int(row[-4]), int(row[-3]), int(row[-2])
            except (ValueError, IndexError):
                raise Fault(f"{path}, line {number}: no turn of a task") from None
            of_task = turns.setdefault((task, ",".join(row[1:-4])), [])
            if iteration != len(of_task):
                raise Fault(f"{path}, line {number}: iteration {iteration} where {len(of_task)} was expected")
            of_task.append((waiting / 1000, computing / 1000))
    if not turns:
        raise Fault(f"{path} has no turns: call overlay::record() before run()")
    return turns
