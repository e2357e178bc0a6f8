#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Counts what including weft costs the compiler, as a multiple of a few standard headers.

usage: compile.py <compiler> <include> [--control]

Both are counted in instructions of the compiler under valgrind, which are the same on every machine. With --control the
limits are halved, and every one must be found exceeded.
"""
import re
import shlex
import subprocess
import sys
import tempfile

# What everybody pays who uses smart pointers, strings, vectors and stop tokens.
usual = "#include <memory>\n#include <string>\n#include <vector>\n#include <stop_token>\n"
weft = "#include <weft/weft.hpp>\n"
# Flags, and the largest multiple. docs/reference/performance.md has the figures.
limits = [
    (["-DNDEBUG", "-DWEFT_COMPILED=1"], 1.75),
    (["-DWEFT_COMPILED=1"], 1.9),
    (["-DNDEBUG"], 3.6),
]


def instructions(compiler, text, flags):
    """How many instructions the compiler proper takes to check a source."""
    with tempfile.NamedTemporaryFile("w", suffix=".cpp") as source:
        source.write(text)
        source.flush()
        arguments = ["-std=c++20", "-fsyntax-only", *flags, source.name]
        said = subprocess.run([compiler, *arguments, "-###"], text=True, capture_output=True).stderr
        command = next(shlex.split(line) for line in said.splitlines() if "cc1plus" in line)
        counted = subprocess.run(["valgrind", "--tool=cachegrind", "--cache-sim=no", "--cachegrind-out-file=/dev/null", *command],
                                 text=True, capture_output=True)
        refs = re.search(r"refs:\s+([\d,]+)", counted.stderr)
        if counted.returncode != 0 or not refs:
            sys.exit(f"not compiled:\n{counted.stderr[-2000:]}")
        return int(refs[1].replace(",", ""))


def main(arguments):
    control = "--control" in arguments
    compiler, include = (a for a in arguments[1:] if a != "--control")
    base = instructions(compiler, usual, [])
    exceeded = 0
    for flags, limit in limits[:1] if control else limits:
        ratio = instructions(compiler, weft, ["-I", include, *flags]) / base
        if control:
            limit /= 2
        exceeded += ratio > limit
        print(f"{' '.join(flags)}: {ratio:.2f} times {base / 1e9:.2f} G instructions, at most {limit:.2f}")
    sys.exit(exceeded == 0 if control else exceeded != 0)


if __name__ == "__main__":
    main(sys.argv)
