#!/usr/bin/python3
# SPDX-License-Identifier: BSL-1.0
"""`benchmarks/papers` at a small size: the page has every section, the tables have numbers, and no control group is left; and what it
does where none can be made. usage: papers_test.py BUILD [kaapi]"""
import csv
import importlib.machinery
import importlib.util
import math
import pathlib
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
TABLES = {"000-table-2": 2, "000-figure-3": 4, "000-table-3": 2, "001-table-1": 4, "001-figure-11": 3, "001-figure-12": 3, "001-figure-13": 3,
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


def the_kaapi_page():
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([sys.executable, str(HERE / "papers"), "--small", "--out", directory, "004"], capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        page = pathlib.Path(directory, "index.html").read_text()
        for figure in (6, 7, 8, 9):
            check(f">Figure {figure}" in page, f"the page has no Figure {figure}")
        read = lambda name: list(csv.reader(open(f"{directory}/004-{name}.csv")))[1:]
        speed_ups = [[float(v) for v in row] for row in read("figure-6")]
        check([row[0] for row in speed_ups] == [1, 2, 4, 8, 16], "Figure 6 lacks processors")
        check(all(row[-1] > 0 for row in speed_ups), f"Figure 6: {speed_ups}")
        check([row[:2] for row in read("figure-7")] == [["8", "92"], ["10", "724"]], f"Figure 7: {read('figure-7')}")
        steps = [[float(v) for v in row] for row in read("figure-9")]
        check([row[:2] for row in steps] == [[p, s] for s in (10, 20) for p in (1, 2)], f"Figure 9: {steps}")
        check(all(0 < row[k + 1] <= row[k] <= row[k + 2] for row in steps for k in (2, 5)), f"Figure 9: {steps}")
        check("Left out: a network" in page or len(read("figure-8")) == 6, "Figure 8 lacks rows")


if sys.argv[2:] == ["kaapi"]:
    the_kaapi_page()
else:
    the_page(the_limit(), sys.argv[1])
