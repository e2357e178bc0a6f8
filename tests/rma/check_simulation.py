#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""The locks in a simulated network of 48 cores that all lock one of them: a queue takes a fifth of the time of counters with back-off at
most, and a twentieth of the time without; who writes while 47 read waits less; a run repeats exactly, whatever the addresses in memory are.
And a hash table in that network, through a window of simulated processes: it holds what it shall (the program checks that), and searches
that take no lock take less time.

usage: check_simulation.py <source directory> <directory for what it builds>"""
import os
import pathlib
import sys

source, out = map(pathlib.Path, sys.argv[1:])
sys.path.insert(0, str(source / "benchmarks/rma"))
import paper_002 as paper

out.mkdir(parents=True, exist_ok=True)
run, chip, cores = paper.Simulator(out), paper.mesh(6), paper.cores(range(48))
hot = {kind: run(chip, cores, "hot", kind, 100, 3) for kind in ("gbh", "gbh_backoff", "mcs_wp")}
total = {kind: figures[3] for kind, figures in hot.items()}
writer = {kind: run(chip, cores, "writer", kind, 32, 5)[1] for kind in ("gbh_backoff", "mcs_wp")}
os.environ["ANOTHER_LAYOUT_OF_THE_STACK"] = "x" * 333
again = run(chip, cores, "hot", "gbh", 100, 3)
table = {kind: run(chip, cores, "table", kind, 10, 10) for kind in ("none", "mcs_wp")}

wrong = [what for what, right in [
    ("gbh_backoff takes less than 5 times as long as mcs_wp", total["gbh_backoff"] >= 5 * total["mcs_wp"]),
    ("gbh takes less than 20 times as long as mcs_wp", total["gbh"] >= 20 * total["mcs_wp"]),
    ("beside 47 readers gbh_backoff takes less than 2.7 times as long as mcs_wp", writer["gbh_backoff"] >= 2.7 * writer["mcs_wp"]),
    ("a hash table with locks is not slower than one without", table["mcs_wp"][1] > 1.5 * table["none"][1]),
    ("a run does not repeat", again == hot["gbh"])] if not right]
print(f"microseconds: {total}, a writer beside 47 readers: {writer}, a table: {table}")
sys.exit("\n".join(wrong) or 0)
