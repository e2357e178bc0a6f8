#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs a scene of trace_program and checks the trace against what the program itself has counted.

usage: trace_test.py <trace_program> <scene>
"""
import collections
import json
import os
import pathlib
import socket
import subprocess
import sys
import tempfile
import time

fields = {
    "X": {"ph", "pid", "tid", "name", "cat", "ts", "dur"},
    "M": {"ph", "pid", "tid", "name", "args"},
    "C": {"ph", "pid", "tid", "name", "id", "ts", "args"},
    "b": {"ph", "pid", "tid", "name", "cat", "id", "ts"},
    "e": {"ph", "pid", "tid", "name", "cat", "id", "ts"},
    "s": {"ph", "pid", "tid", "name", "cat", "bp", "id", "ts"},
    "t": {"ph", "pid", "tid", "name", "cat", "bp", "id", "ts"},
    "f": {"ph", "pid", "tid", "name", "cat", "bp", "id", "ts"},
}


def check(condition, sentence):
    if not condition:
        sys.exit(sentence)


def load(path):
    """The events of a file that has the form it should have."""
    data = json.loads(path.read_bytes().decode("utf-8"))
    check(set(data) == {"displayTimeUnit", "traceEvents", "otherData"}, f"members {set(data)}")
    for e in data["traceEvents"]:
        check(e["ph"] in fields and fields[e["ph"]] | {"args"} >= set(e) >= fields[e["ph"]], f"fields of {e}")
        check(e.get("ts", 0) >= 0 and e.get("dur", 0) >= 0, f"times of {e}")
    return data["traceEvents"], data["otherData"]["dropped_records"]


def check_process(events):
    """Each trace says once whose it is and when it began. Returns the arguments of what says so, by name."""
    about = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "M":
            about[e["name"]].append(e["args"])
    for name in ("process_name", "process_labels", "clock_origin"):
        check(len(about[name]) == 1, f"{name}: {about[name]}")
    check(about["process_labels"][0] == {"labels": socket.gethostname()[:64]}, f"machine {about['process_labels']}")
    return {name: all_[0] for name, all_ in about.items()}


def check_bytes(events, read, written, spilled):
    """Transfers have as many bytes as the program knows, also those that were in a scratch file, and the counter adds them up."""
    transfers = [e for e in events if e["ph"] == "b" and e["cat"] == "transfer"]
    sums = {name: sum(e["args"]["bytes"] for e in transfers if e["name"] == name) for name in ("read", "write")}
    check(sums["write"] == written + spilled, f"{sums} written, instead of {written} and {spilled}")
    check(read + spilled // 2 <= sums["read"] <= read + spilled and read > 0, f"{sums} read, instead of {read} and {spilled}")
    check({e["name"] for e in transfers} == {"read", "write"}, "other transfers")
    counted = [e for e in events if e["ph"] == "C" and e["name"] == "bytes"]
    check(len(counted) == len(transfers), f"the counter has {len(counted)} values of {len(transfers)} transfers")
    check(all(a["ts"] <= b["ts"] for a, b in zip(counted, counted[1:])), "the counter goes back")
    check(counted[-1]["args"] == {"read": sums["read"], "written": sums["write"]}, f"in the end {counted[-1]}")


def check_nesting(events):
    """The slices of a row nest: none ends inside another one that it did not begin in."""
    rows = collections.defaultdict(list)
    for e in events:
        if e["ph"] == "X":
            rows[e["tid"]].append((e["ts"], -e["dur"], e))
    for row in rows.values():
        open_ends = []
        for ts, minus, e in sorted(row, key=lambda r: r[:2]):
            while open_ends and open_ends[-1] <= ts + 0.002:
                open_ends.pop()
            check(not open_ends or ts - minus <= open_ends[-1] + 0.002, f"{e} crosses the end of another slice")
            open_ends.append(ts - minus)


def check_arrows(events):
    """An arrow goes forward in time, from one worker to others."""
    arrows = collections.defaultdict(list)
    for e in events:
        if e["ph"] in "stf" and e["cat"] == "arrow":
            arrows[e["id"]].append(e)
    whole = 0
    for points in arrows.values():
        points.sort(key=lambda e: "stf".index(e["ph"]))
        check([e["ph"] for e in points] in (["s", "t", "f"], ["s", "f"], ["t"]), f"arrow {points}")
        check(all(a["ts"] <= b["ts"] + 0.002 for a, b in zip(points, points[1:])), f"arrow {points} goes back")
        whole += points[0]["ph"] == "s" and points[-1]["ph"] == "f"
    return whole


def main(program, scene):
    folder = pathlib.Path(tempfile.mkdtemp(prefix="weft-trace-"))
    path = folder / "trace.json"
    environment = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
    began = time.time_ns()
    run = subprocess.run([program, scene, str(path)], capture_output=True, text=True, env=environment)
    ended = time.time_ns()
    said = run.stdout + run.stderr
    print(said)
    if scene in ("aborts", "terminates"):
        check(run.returncode == -6, f"ended with {run.returncode}")
    else:
        check(run.returncode == 0, f"ended with {run.returncode}")
    if scene == "unwritable":
        check("weft: cannot write the trace '/nonexistent/trace.json'" in run.stdout, "not refused at the start")
        return
    if scene == "full":
        check("result 55" in run.stdout, "the run was lost")
        check(run.stdout.count("No space left") == 1 and run.stderr.count("No space left") == 1, "the loss was not told")
        return

    events, dropped = load(path)
    about = check_process(events)
    origin, last = about["clock_origin"]["unix_ns"], max((e["ts"] + e.get("dur", 0) for e in events if "ts" in e), default=0)
    jump = 5_000_000  # of a thread that loses its processor between two clocks
    check(began - jump <= origin and origin + 1000 * last <= ended + jump, f"began at {origin} by a run from {began} to {ended}")
    check_nesting(events)
    arrows = check_arrows(events)
    count = collections.Counter(e["name"] for e in events if e["ph"] == "X" and e["cat"] == "task")
    numbers = {}
    for line in run.stdout.splitlines():
        words = line.rsplit(" ", 1)
        if words[0].startswith("tasks "):
            name = words[0][len("tasks "):]
            # A body that waits appears once more for each of its waits.
            most = int(words[1]) * (1 if scene not in ("waits", "tree") else 3)
            check(int(words[1]) <= count[name] <= most, f"{count[name]} slices of {name}")
        elif len(words) == 2 and words[1].isdigit():
            numbers[words[0]] = int(words[1])
    if scene == "serial":
        check(count["fib"] == calls(16) - 1, f"{count['fib']} slices")
        check(arrows == 0, "an arrow without a thief")
    if scene == "tree":
        steals = sum(e["ph"] == "X" and e["name"] == "steal" for e in events)
        check(steals == numbers["steals"], f"{steals} steals in the trace")
        check(arrows > 0 or steals == 0, "no arrow from a fork to the end of a stolen task")
    looks = [e for e in events if e["ph"] == "C" and e["name"] == "memory"]
    memory = [e["args"]["resident"] for e in looks]
    # Where records are dropped, all those of memory may be among them: it is looked up every few milliseconds.
    check(memory or dropped or not count, "no resident memory")
    check(all(m > 1 << 20 for m in memory), f"resident memory {memory[:10]}")
    if count and not dropped:
        # Workers look when a body has ended, and say what there is then.
        first = min(e["ts"] + e["dur"] for e in events if e["ph"] == "X" and e["cat"] == "task")
        check(min(e["ts"] for e in looks) >= first - 0.002, "memory is known before a body has ended")
    if scene == "turns":
        check(numbers["total"] == 5050, "wrong result")
    if scene == "mixed":
        check(numbers["indices"] == 5000 and numbers["total"] >= 1000, "wrong results")
        check(count["loop"] >= 5, "no loop")
    if scene == "waits":
        waits = [e for e in events if e["ph"] == "b" and e["cat"] == "wait"]
        check(len(waits) == sum(e["ph"] == "e" for e in events), "a wait without an end")
        check(len(waits) == numbers["suspensions"], f"{len(waits)} waits in the trace")
        check("an event" in {e["name"] for e in waits}, "no wait for the event")
    if scene == "hostile":
        # The root, which waits where its tasks are stolen, appears once more for each of its waits.
        roots = count.pop("task")
        check(roots >= 1 and sum(count.values()) == numbers["forked"], f"{roots} slices of the root, {sum(count.values())} of tasks")
        check(len(count) > 2000, f"{len(count)} names")
    if scene == "small":
        left = sum(e["ph"] in "X" for e in events)
        check(0 < dropped and "lacks the oldest" in run.stderr, "the loss was not told")
        check(left + sum(e["ph"] == "C" and e["name"] == "tasks" for e in events) + dropped >= numbers["forked"], f"{left} slices, {dropped} dropped")
    else:
        check(dropped == 0, f"{dropped} records dropped")
    if scene == "two":
        check(count["of the first"] == 1 and count["of the second"] == 0, "the first trace has the wrong tasks")
        events, _ = load(folder / "trace.2.json")
        check(sum(e["name"] == "of the second" for e in events) == 1, "the second trace has the wrong tasks")
        check(run.stdout == "", run.stdout)
    if scene in ("plain", "segmented", "spilled", "queue"):
        check_bytes(events, numbers["read"], numbers["written"], numbers.get("spilled", 0))
        check((numbers.get("spilled", 0) > 0) == (scene == "spilled"), f"spilled: {numbers}")
    if scene == "objects":
        told = [line[len("waits for "):] for line in run.stdout.splitlines() if line.startswith("waits for ")]
        objects = collections.Counter(f"{e['name']} = {e['args']['object']}" for e in events if e["ph"] == "b" and "args" in e)
        check(len(told) == 10 and set(told) <= set(objects), f"no waits for {set(told) - set(objects)} in {objects}")
        without = {e["name"] for e in events if e["ph"] == "b" and "args" not in e}
        check(without <= {"a time", "a task elsewhere", "an event"}, f"waits for nothing known: {without}")
    if scene == "moment":
        marked = [origin + 1000 * e["ts"] for e in events if e["name"] == "marked" and e["ph"] == "X"]
        check(numbers["before"] - jump <= marked[0] <= numbers["after"] + jump, f"marked at {marked}, not between {numbers}")
    if scene == "cluster":
        check(numbers["leaves"] == 256, "wrong result")
        ran = 0
        for rank, name in enumerate(("trace.json", "trace.2.json", "trace.3.json")):
            of_one, _ = load(folder / name)
            about = check_process(of_one)
            check(about["process_name"] == {"name": f"weft runtime, process {rank} of 3"}, f"{about['process_name']}")
            check(about["process_sort_index"] == {"sort_index": rank}, "order of the processes")
            check_nesting(of_one)
            check_arrows(of_one)
            ran += sum(e["name"] == "part" and e["ph"] == "X" for e in of_one)
        check(ran >= 2 ** 9 - 1, f"{ran} parts in all traces")
    else:
        check(about["process_name"] == {"name": "weft runtime"} and "process_sort_index" not in about, f"{about['process_name']}")
    if scene == "request":
        check(count["early"] == 1, "not written on request")
    if scene == "stalls":
        check(count["before the stall"] == 1 and "no task was seen" in run.stderr, "not written at a stall")
    if scene in ("aborts", "terminates"):
        check(count["before"] == 1 and count["last"] >= 1, f"slices {count}")


def calls(n):
    a, b = 1, 1
    for _ in range(n - 1):
        a, b = b, a + b + 1
    return b


if __name__ == "__main__":
    main(*sys.argv[1:])
