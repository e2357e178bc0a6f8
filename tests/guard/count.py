#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Counts the instructions of the fast path with callgrind and compares them with the recorded floors.

usage: count.py <guard_fib> <compiler> <floors.txt> [--record | --control]

--record writes the counts into floors.txt. --control demands that floors 3 % below the counts are reported as
exceeded. Ends with 77 (skipped) when no floor was recorded with this compiler, but some were with another.
"""
import os
import pathlib
import re
import subprocess
import sys
import tempfile

n, small, tolerance = 22, 12, 0.02
modes = ["inlined", "deferred"]
how = "to record: cmake --build build/release --target record_guard; commit tests/guard/floors.txt and say why"


def fib(k):
    a, b = 0, 1
    for _ in range(k):
        a, b = b, a + b
    return a


def tasks(k):
    """Three per call with n >= 2, and the one that the root forks."""
    return 3 * (fib(k + 1) - 1) + 1


def count(program, k, mode):
    """Instructions between the program's two marks, by all its threads that collect."""
    environment = {key: value for key, value in os.environ.items() if not key.startswith("WEFT_")}
    with tempfile.TemporaryDirectory() as folder:
        out = pathlib.Path(folder, "callgrind")
        run = subprocess.run(
            ["valgrind", "--tool=callgrind", "--collect-atstart=no", f"--callgrind-out-file={out}", program, str(k), mode],
            capture_output=True, text=True, env=environment,
        )
        if run.returncode != 0 or run.stdout != f"{fib(k)}\n":
            sys.exit(f"{program} {k} {mode} under valgrind ended with {run.returncode}:\n{run.stdout}{run.stderr}")
        total = re.search(r"^(?:totals|summary): (\d+)", out.read_text(), re.MULTILINE)
        return int(total[1])


def measure(program):
    """Instructions per task; the small run takes away what a run costs whatever its size."""
    return {
        mode: (count(program, n, mode) - count(program, small, mode)) / (tasks(n) - tasks(small)) for mode in modes
    }


def exceeded(measured, floors):
    return [mode for mode in modes if measured[mode] > floors[mode] * (1 + tolerance)]


def read(path):
    rows = [line.split() for line in path.read_text().splitlines() if line.strip() and not line.startswith("#")]
    return {(compiler, mode): float(number) for compiler, mode, number in rows}


def record(path, compiler, measured):
    floors = read(path) | {(compiler, mode): number for mode, number in measured.items()}
    comments = [line for line in path.read_text().splitlines() if line.startswith("#")]
    rows = [f"{row[0]} {row[1]} {number:.2f}" for row, number in sorted(floors.items())]
    path.write_text("\n".join(comments + rows) + "\n")


def main(program, compiler, floors_file, switch=None):
    floors_file = pathlib.Path(floors_file)
    measured = measure(program)
    if switch == "--record":
        record(floors_file, compiler, measured)
    if switch == "--control":
        floors = {mode: number * 0.97 for mode, number in measured.items()}
        if exceeded(measured, floors) != modes or exceeded(measured, measured) or min(measured.values()) < 1:
            sys.exit("a fast path that grew by 3 % would not be reported")
        print("a fast path that grew by 3 % would be reported")
        return

    floors = read(floors_file)
    known = {mode: floors[compiler, mode] for mode in modes if (compiler, mode) in floors}
    for mode in modes:
        floor = f"{known[mode]:.2f}" if mode in known else "none"
        print(f"{mode}: {measured[mode]:.2f} instructions per task, recorded {floor} ({compiler})")
    if len(known) < len(modes):
        if {other for other, _ in floors} - {compiler}:
            print(f"no floor recorded with {compiler}: skipped\n{how}")
            sys.exit(77)
        sys.exit(f"no floor recorded\n{how}")
    worse = exceeded(measured, known)
    if worse:
        sys.exit(f"the fast path grew by more than {tolerance:.0%}: {', '.join(worse)}\n{how}")
    if any(measured[mode] < known[mode] * (1 - tolerance) for mode in modes):
        print(f"the fast path shrank: record it, or it may grow back unseen\n{how}")


if __name__ == "__main__":
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    main(*sys.argv[1:])
