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


NAME, MOVED = "weft runtime", "tasks that moved"  # how names of processes begin


class Process:
    """A runtime: who writes it, and when its times begin, in nanoseconds since 1970."""

    def __init__(self):
        self.name, self.rank, self.origin, self.is_made = None, None, None, False


class Trace:
    """Workers; slices of their rows, in the order in which they ended; waits, transfers and counters; how many records were dropped, and of which rows."""

    def __init__(self, before=None):
        """`before`: another file's, from which it goes on counting."""
        self.file = before.file + 1 if before else 0
        self.rows = before.rows if before else Numbers()  # (number of the process, thread)
        self.names = before.names if before else Numbers()  # of tasks, waits, transfers
        self.processes = before.processes if before else Numbers()  # (file, what the file calls it)
        self.of_process = before.of_process if before else {}
        self.row_names, self.foreign, self.is_weft, self.events = {}, 0, False, 0
        self.begin, self.length = array("d"), array("d")
        self.row, self.name, self.kind = array("l"), array("l"), array("b")
        self.open, self.pairs = {}, {"wait": [], "transfer": []}
        self.goes_on, self.forks, self.stolen_ends, self.counters = {}, {}, [], {}
        self.lossy = set()  # rows of which records were dropped

    def number(self, e):
        """That of the event's process."""
        number = self.processes((self.file, e["pid"]))
        if number not in self.of_process:
            self.of_process[number] = Process()
        return number

    def place(self, e):
        return self.rows((self.number(e), e["tid"]))

    def take(self, e):
        """Called for each object of the file, the innermost first."""
        phase = e.get("ph")
        if phase is None:
            return e
        self.events += 1
        if phase == "X":
            category, name = e["cat"], e["name"]
            kind = TASK if category == "task" else KINDS.get((category, name))
            if category == "moved":  # weft-report itself has made it
                return None
            if kind is None:
                self.foreign += 1
                return None
            self.begin.append(e["ts"])
            self.length.append(e["dur"])
            self.row.append(self.place(e))
            self.name.append(self.names(str(name)))
            self.kind.append(kind)
        elif phase == "s" and e["name"] == "stolen":
            self.forks[self.number(e), e["id"]] = self.place(e), float(e["ts"])
        elif phase == "f":
            if e["name"] == "stolen":
                self.stolen_ends.append((self.place(e), float(e["ts"]), (self.number(e), e["id"])))
            elif e["name"] == "goes on":  # the arrow of wait n has the number n * 4096 + 4095
                self.goes_on[self.number(e), e["id"] >> 12] = self.place(e)
        elif phase == "b":
            self.open[self.number(e), e["cat"], e["id"]] = e
        elif phase == "e":
            first = self.open.pop((self.number(e), e["cat"], e["id"]), None)
            if first is None or first["cat"] not in self.pairs:
                self.foreign += 1
            else:
                self.pairs[first["cat"]].append(
                    (float(first["ts"]), float(e["ts"]), self.place(e), self.names(str(first["name"])),
                     (self.number(e), e["id"]), float(first.get("args", {}).get("bytes", 0)), first.get("args", {}).get("object")))
        elif phase == "C":
            source = (self.number(e), e.get("id"))
            hash(source)  # refuses what is no number
            for key, value in e["args"].items():
                series = self.counters.setdefault((str(e["name"]), str(key)), ([], [], []))
                for column, x in zip(series, (e["ts"], value, source)):
                    column.append(x)
        elif phase == "M":
            self.describe(e, e["args"].get("name"), self.of_process[self.number(e)])
        elif phase not in "st":
            self.foreign += 1
        return None

    def describe(self, e, name, process):
        what = e["name"]
        if what == "process_name":
            process.name, process.is_made = str(name), str(name).startswith(MOVED)
            self.is_weft |= process.name.startswith(NAME)
        elif what == "process_sort_index":
            process.rank = int(e["args"]["sort_index"])
        elif what == "clock_origin":
            process.origin = int(e["args"]["unix_ns"])
            if not 0 <= process.origin < 1 << 63:
                raise ValueError("the origin of its clock is no time")
        elif what == "thread_name" and not process.is_made:
            self.row_names[self.place(e)] = str(name)
        elif what == "dropped_records":
            self.lossy.add(self.place(e))

    def origin(self):
        """That of this file: its processes have begun to count at one time."""
        known = [p.origin for n, p in self.of_process.items() if self.processes.all[n][0] == self.file and p.origin is not None]
        return min(known, default=None)

    def move(self, later):
        """All times become later, by so many microseconds."""
        if later == 0:
            return
        self.begin = array("d", [t + later for t in self.begin])
        self.pairs = {kind: [(b + later, e + later, *more) for b, e, *more in all_] for kind, all_ in self.pairs.items()}
        self.forks = {key: (row, t + later) for key, (row, t) in self.forks.items()}
        self.stolen_ends = [(row, t + later, key) for row, t, key in self.stolen_ends]
        for at, _, _ in self.counters.values():
            at[:] = [t + later for t in at]

    def add(self, other):
        """Adds what another file has."""
        for column in ("begin", "length", "row", "name", "kind", "stolen_ends"):
            getattr(self, column).extend(getattr(other, column))
        for known in ("forks", "goes_on", "row_names", "lossy"):
            getattr(self, known).update(getattr(other, known))
        for kind, all_ in other.pairs.items():
            self.pairs[kind] += all_
        for name, series in other.counters.items():
            for column, more in zip(self.counters.setdefault(name, ([], [], [])), series):
                column += more
        self.foreign += other.foreign
        self.dropped += other.dropped
        self.events += other.events

    def close(self):
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
        by_number = lambda text: (len(text), text)
        labels = self.label_processes_()
        for r in self.workers:
            process, thread = self.rows.all[r]
            name = self.row_names.get(r, f"worker {thread}")
            self.row_names[r] = name if len(labels) == 1 else f"{labels[process]}: {name}"
        rank = lambda n: self.of_process[n].rank or 0
        self.workers.sort(key=lambda r: (rank(self.rows.all[r][0]), self.rows.all[r][0], by_number(str(self.rows.all[r][1]))))
        return self

    def label_processes_(self):
        """What is said before the names of workers: the number in the cluster, or else that of the system, or else the file and that."""
        used = sorted({p for p, _ in self.rows.all})
        ranks = [self.of_process[n].rank for n in used]
        keys = [self.processes.all[n] for n in used]
        if None not in ranks and len(set(ranks)) == len(used):
            return {n: f"process {r}" for n, r in zip(used, ranks)}
        if len({str(pid) for _, pid in keys}) == len(used):
            return {n: str(pid) for n, (_, pid) in zip(used, keys)}
        return {n: f"{self.paths[file].name}, {pid}" for n, (file, pid) in zip(used, keys)}


def read(*paths):
    """The traces in some files as one, whose times begin with the first. Raises Fault if one is none, OSError if a file cannot be read."""
    traces = []
    for path in paths:
        traces.append(parse(path, traces[-1] if traces else None))
    origins = [t.origin() for t in traces]
    if len(paths) > 1 and None in origins:
        raise Fault(f"{paths[origins.index(None)]} does not tell when it began, and cannot be put beside others: an older weft has written it")
    whole = traces[0]
    whole.origin_of_all = min(o for o in origins if o is not None) if None not in origins else None
    whole.paths, whole.later_of = paths, [(o - whole.origin_of_all) / 1000 if o is not None else 0.0 for o in origins]
    try:
        for one, later in zip(traces, whole.later_of):
            one.move(later)
            if one is not whole:
                whole.add(one)
        return whole.close()
    except (AttributeError, TypeError, ValueError, OverflowError) as e:
        raise Fault(f"{paths[0]} is no trace of weft: {e}") from None


def load(path, hook=None):
    """What a file has as JSON. Raises Fault if it is none of a trace, OSError if the file cannot be read."""
    data = path.read_bytes()
    if not data.strip():
        raise Fault(f"{path} is empty: the program has ended before its runtime did, or still runs")
    try:
        # Names may have any bytes when somebody else has written them.
        text = data.decode("utf-8", "replace")
        del data
        return json.loads(text, object_hook=hook)
    except json.JSONDecodeError as e:
        how = "ends too early" if e.pos >= len(text.rstrip()) - 1 or "Unterminated" in e.msg else "is damaged"
        raise Fault(f"{path} {how}: {e.msg} at line {e.lineno}, column {e.colno}; write the trace again") from None
    except KeyError as e:
        raise Fault(f"{path} is no trace of weft: an event lacks the member {e}") from None
    except (AttributeError, TypeError, ValueError, OverflowError, RecursionError) as e:
        raise Fault(f"{path} is no trace of weft: {e}") from None


def parse(path, before):
    """The trace in one file, behind those in others, not closed."""
    trace = Trace(before)
    whole = load(path, trace.take)
    events = whole.get("traceEvents") if isinstance(whole, dict) else whole
    if not isinstance(events, list):
        raise Fault(f"{path} is no trace: it has no list of events 'traceEvents'")
    if not trace.is_weft:
        raise Fault(f"{path} is a trace of another program: no process in it is called '{NAME}'")
    try:
        other = whole.get("otherData", {}) if isinstance(whole, dict) else {}
        trace.dropped = int(other.get("dropped_records", 0))
    except (AttributeError, TypeError, ValueError, OverflowError) as e:
        raise Fault(f"{path} is no trace of weft: {e}") from None
    return trace


def read_scaling(path):
    """What observe::work_and_span::print_csv has written, as ([workers], [speed-up])."""
    workers, speed_up = [], []
    with open(path, newline="", encoding="utf-8", errors="replace") as lines:
        rows = csv.reader(lines)
        if next(rows, None) != ["workers", "speed_up"]:
            raise Fault(f"{path} does not begin with the heading that work_and_span::print_csv writes")
        for number, row in enumerate(rows, 2):
            try:
                p, times = int(row[0]), float(row[1])
            except (ValueError, IndexError):
                raise Fault(f"{path}, line {number}: no number of workers and speed-up") from None
            if p <= (workers[-1] if workers else 0) or not 0 <= times <= LATEST or len(row) != 2:
                raise Fault(f"{path}, line {number}: no speed-up of more workers")
            workers.append(p), speed_up.append(times)
    if not workers:
        raise Fault(f"{path} has no speed-up")
    return workers, speed_up


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
