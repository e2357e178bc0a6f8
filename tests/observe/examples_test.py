#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs programs with WEFT_TRACE and checks that each of their traces has the form it should have.

usage: examples_test.py <program>...     a program may be followed by arguments, all in one word
"""
import os
import pathlib
import shlex
import subprocess
import sys
import tempfile

from trace_test import check, check_arrows, check_nesting, load


def main(commands):
    for command in commands:
        words = shlex.split(command)
        name = pathlib.Path(words[0]).name
        with tempfile.TemporaryDirectory(prefix="weft-trace-") as folder:
            path = pathlib.Path(folder) / "trace.json"
            plain = {k: v for k, v in os.environ.items() if not k.startswith("WEFT_")}
            run = subprocess.run(words, capture_output=True, text=True, cwd=folder, env=plain | {"WEFT_TRACE": str(path)})
            check(run.returncode == 0, f"{name} ended with {run.returncode}: {run.stdout}{run.stderr}")
            traces = sorted(path.parent.glob("trace*.json"))
            check(path in traces, f"{name} has written {traces}")
            bodies = 0
            for trace in traces:
                events, _ = load(trace)
                check_nesting(events)
                arrows = check_arrows(events)
                bodies += sum(e["ph"] == "X" and e["cat"] == "task" for e in events)
                print(f"{name}: {len(events)} events, {arrows} arrows from a fork to an end")
            check(bodies > 0, f"{name} has no task in its traces")


if __name__ == "__main__":
    main(sys.argv[1:])
