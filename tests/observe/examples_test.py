#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs programs with WEFT_TRACE and checks that each of their traces has the form it should have.

usage: examples_test.py <program>...     a program may be followed by arguments, all in one word; "" is none. Of what is
started by mpiexec, each process has a trace. `recorded` before a program: all its runs are recorded, so no bodies are in its trace.
"""
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from trace_test import check, check_arrows, check_nesting, check_process, load


def main(commands):
    for command in filter(None, commands):
        words = shlex.split(command)
        recorded = words[0] == "recorded"
        words = words[recorded:]
        name = pathlib.Path(words[0]).name
        processes = int(words[words.index("-n") + 1]) if name.startswith("mpiexec") else 1
        with tempfile.TemporaryDirectory(prefix="weft-trace-") as folder:
            path = pathlib.Path(folder) / ("trace.json" if processes == 1 else "trace-%p.json")
            plain = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
            run = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=plain | {"WEFT_TRACE": str(path), "WEFT_TRACE_MB": "4"})
            check(run.returncode == 0, f"{name} ended with {run.returncode}: {run.stdout}{run.stderr}")
            traces = sorted(path.parent.glob("trace*.json"))
            check(path in traces if processes == 1 else len(traces) == processes, f"{name} has written {traces}")
            bodies, named = [], set()
            for trace in traces:
                events, _ = load(trace)
                check_nesting(events)
                arrows = check_arrows(events)
                bodies.append(sum(e["ph"] == "X" and e["cat"] == "task" for e in events))
                named.add(check_process(events)["process_name"]["name"])
                print(f"{name}: {len(events)} events, {arrows} arrows from a fork to an end")
            check((sum(bodies) == 0) == recorded, f"{name} has {sum(bodies)} tasks in its traces")
            if processes > 1:
                check(all(bodies), f"a process of {name} has no task: {bodies}")
                check(named == {f"weft runtime, process {r} of {processes}" for r in range(processes)}, f"the processes are called {named}")


if __name__ == "__main__":
    main(sys.argv[1:])
