# SPDX-License-Identifier: BSL-1.0
"""Puts traces of several processes into one file, with a process of its own for the tasks that moved between workers."""
import json

from .measure import Run
from .trace import MOVED, Numbers, load

MOST = 1000  # rows of tasks


def write(trace, to, most=MOST):
    """Writes all that the files of a trace have, at common times. `most`: rows of tasks, those of the longest. Returns how many
    tasks have moved, and how many of them have rows."""
    used, arrows = Numbers(), Numbers()
    made = [trace.of_process[n].is_made for n in range(len(trace.processes.all))]  # by an earlier call
    pids = [None if made[n] else used_as(pid, used) for n, (_, pid) in enumerate(trace.processes.all)]
    tasks = Run(trace).moved()
    shown = sorted(sorted(tasks, key=lambda t: begin_of(t) - t[2][-1][2])[:most], key=begin_of)
    first = True
    with open(to, "w", encoding="utf-8") as out:
        out.write('{"displayTimeUnit":"ns","traceEvents":[\n')
        for events in (*(of_file(trace, number, pids, arrows) for number in range(len(trace.paths))), rows(trace, shown, pids, used)):
            for e in events:
                out.write(("" if first else ",\n") + json.dumps(e, separators=(",", ":")))
                first = False
        out.write(f'\n],"otherData":{{"dropped_records":{trace.dropped}}}}}\n')
    return len(tasks), len(shown)


def used_as(pid, used):
    """Another number for a process, if one of another file has it: on two machines, or as another runtime."""
    while pid in used.of or not isinstance(pid, int):
        pid = pid + 10_000_000 if isinstance(pid, int) else 1  # more than the system gives
    used(pid)
    return pid


def of_file(trace, number, pids, own):
    """Its events, with numbers that are those of no other file. `own`: those of arrows and waits."""
    later, order = trace.later_of[number], [p.rank for p in trace.of_process.values() if not p.is_made]
    ranked = None not in order and len(set(order)) == len(order)
    whole = load(trace.paths[number])
    for e in whole["traceEvents"] if isinstance(whole, dict) else whole:
        process = trace.processes.of[number, e["pid"]]
        if trace.of_process[process].is_made:
            continue
        e["pid"] = pids[process]
        if "ts" in e:
            e["ts"] = round(e["ts"] + later, 3)
        if e["ph"] in "be":
            e["id"] = own(("wait", process, e["id"])) + 1
        elif e["ph"] in "stf":
            kind = "wait" if e["name"] == "goes on" else "stolen"
            e["id"] = own((kind, process, e["id"] >> 12)) + 1 << 12 | e["id"] & 4095
        elif e["ph"] == "M" and e["name"] == "clock_origin":
            e["args"]["unix_ns"] = trace.origin_of_all
        elif e["ph"] == "M" and e["name"] == "process_sort_index" and not ranked:
            continue
        if e["ph"] == "M" and e["name"] == "process_name" and not ranked:
            yield {"ph": "M", "pid": e["pid"], "tid": 0, "name": "process_sort_index", "args": {"sort_index": process}}
        yield e


def begin_of(task):
    _, fork, parts, _ = task
    return fork[1] if fork else parts[0][1]


def rows(trace, tasks, pids, used):
    """A row for each task: pending until it was stolen, its body on the workers that executed it, and its waits."""
    groups = {}
    for task in tasks:
        groups.setdefault(trace.rows.all[task[2][0][0]][0], []).append(task)
    for process, of_process in sorted(groups.items()):
        pid = used_as(pids[process], used)
        runtime = (trace.of_process[process].name or "").partition(", ")[2] or str(pids[process])
        meta = lambda what, tid, **args: {"ph": "M", "pid": pid, "tid": tid, "name": what, "args": args}
        yield meta("process_name", 0, name=f"{MOVED} ({runtime})")
        yield meta("process_sort_index", 0, sort_index=sum(p is not None for p in pids) + process)
        for tid, (name, fork, parts, waits) in enumerate(of_process):
            yield meta("thread_name", tid, name=f"{name} {tid}")
            yield meta("thread_sort_index", tid, sort_index=tid)
            made = lambda what, begin, end, **args: {"ph": "X", "pid": pid, "tid": tid, "name": what, "cat": "moved", "ts": round(begin, 3),
                                                     "dur": max(round(end - begin, 3), 0), "args": args}
            worker = lambda row: trace.row_names.get(row, "?")
            if fork and fork[1] <= parts[0][1]:
                yield made("pending", fork[1], parts[0][1], forked_by=worker(fork[0]))
            for i, (row, begin, end) in enumerate(parts):
                yield made(name, begin, end, worker=worker(row))
                if i < len(waits):
                    yield made(waits[i].which, end, max(parts[i + 1][1], end), began_on=worker(waits[i].row))
