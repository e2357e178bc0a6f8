#!/usr/bin/python3
# SPDX-License-Identifier: BSL-1.0
"""`benchmarks/papers` at a small size: the page has every section, the tables have numbers, and no control group is left; and what it
does where none can be made. usage: papers_test.py BUILD"""
import csv
import importlib.machinery
import importlib.util
import math
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TABLES = {"000-table-2": 2, "000-figure-3": 4, "000-table-3": 2, "001-table-1": 4, "001-figure-11": 4, "001-figure-12": 4, "001-figure-13": 3,
          "001-figure-14": 5, "001-figure-8": 3, "001-work": 3}


def check(holds, what):
    if not holds:
        sys.exit(f"papers_test: {what}")


def the_limit():
    loader = importlib.machinery.SourceFileLoader("papers", str(HERE / "papers"))
    papers = importlib.util.module_from_spec(importlib.util.spec_from_loader("papers", loader))
    loader.exec_module(papers)
    with tempfile.TemporaryDirectory() as directory:
        ordinary = papers.Limit(8, [(directory, "memory.max")])
        check(ordinary.procs is None, "takes an ordinary directory for a control group")
        check(not any(pathlib.Path(directory).iterdir()), "leaves something in an ordinary directory")
        pathlib.Path(directory, "cgroup.procs").touch()  # a group without the controller for memory
        check(papers.Limit(8, [(directory, "memory.max")]).procs is None, "takes a group without the controller for memory")
        check(len(list(pathlib.Path(directory).iterdir())) == 1, "leaves a group that cannot be limited")
    before = groups(papers)
    made = papers.Limit(24)
    check((made.procs is not None) == (groups(papers) != before), "does not know whether it has made a group")
    made.close()
    check(groups(papers) == before, "does not remove its group")
    return papers


def groups(papers):
    return {path for parent, _ in papers.Limit.PARENTS for path in pathlib.Path(parent).glob("weft-papers-*")}


def the_page(papers, build):
    with tempfile.TemporaryDirectory() as directory:
        command = [sys.executable, str(HERE / "papers"), "--build", build, "--directory", directory, "--out", directory + "/page",
                   "--edge", "512", "--memory", "2", "--times", "1", "000", "001"]
        before = groups(papers)
        done = subprocess.run(command, capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        check(groups(papers) == before, "a control group is left")
        page = pathlib.Path(directory, "page/index.html").read_text()
        for figure in ("Table 2", "Figure 3", "Table 3", "Figure 4", "Figures 5 to 8", "Table 1", "Figure 8", "Figure 11", "Figure 12", "Figure 13", "Figure 14"):
            check(f">{figure}" in page, f"the page has no {figure}")
        check(page.count("<svg") == 9, f"the page has {page.count('<svg')} plots")
        for name, rows in TABLES.items():
            head, *found = csv.reader(open(f"{directory}/page/{name}.csv"))
            check(len(found) == rows, f"{name} has {len(found)} rows")
            numbers = [float(v) for row in found for v in row[1:]]
            check(all(math.isnan(v) or v > 0 for v in numbers) and not all(map(math.isnan, numbers)), f"{name} holds {numbers}")
            check(all(not math.isnan(float(found[0][i])) for i in range(1, len(head))) or name.startswith("001-figure-1"), f"{name}: {found[0]}")
        check(not list(pathlib.Path(directory).glob("bench-papers-*")), "grids are left")
        refused = subprocess.run([*command[:-2], "--memory", "8", "000"], capture_output=True, text=True)
        check(refused.returncode == 2 and "at least 4 times as large" in refused.stderr, "takes data that are too small")


the_page(the_limit(), sys.argv[1])
