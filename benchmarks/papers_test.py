#!/usr/bin/python3
# SPDX-License-Identifier: BSL-1.0
"""`benchmarks/papers` at a small size: the page has every section, the tables have numbers, and no control group is left; and what it
does where none can be made. usage: papers_test.py BUILD [kaapi | locks]; status 77: skipped"""
import csv
import importlib.machinery
import importlib.util
import math
import pathlib
import shutil
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
        numbers = lambda name: [[float(v) for v in row] for row in read(name)]
        simulated = numbers("figure-7-simulated")
        check([row[0] for row in simulated] == [21, 22, 23] and all(0 < row[2] < row[3] and 0 < row[4] < 100 and row[8] > 0 for row in simulated), f"Figure 7, simulated: {simulated}")
        trees = read("uts")
        check([row[:2] for row in trees] == [[t, p] for t in ("T1", "T3") for p in ("1", "2")] and all(float(v) > 0 for row in trees for v in row[2:]), f"UTS: {trees}")
        check([row[0] for row in numbers("uts-simulated")] == [4, 8] and all(0 < row[3] < 1 for row in numbers("uts-simulated")), f"UTS, simulated: {numbers('uts-simulated')}")
        kernel = numbers("lk23")
        check([row[0] for row in kernel] == [1, 2] and all(v > 0 for row in kernel for v in row), f"kernel 23: {kernel}")
        steps = [[float(v) for v in row] for row in read("figure-9")]
        check([row[:2] for row in steps] == [[p, s] for s in (10, 20) for p in (1, 2)], f"Figure 9: {steps}")
        check(all(0 < row[k + 1] <= row[k] <= row[k + 2] for row in steps for k in (2, 5)), f"Figure 9: {steps}")
        check("Left out: a network" in page or len(read("figure-8")) == 8, "Figure 8 lacks rows")


def the_locks_page():
    mpis = [m for m in ("openmpi", "mpich") if shutil.which(f"mpicxx.{m}") and shutil.which(f"mpiexec.{m}")]
    missing = ["smpirun (libsimgrid-dev)"] * (shutil.which("smpirun") is None) + ["an MPI (libopenmpi-dev or libmpich-dev)"] * (not mpis)
    if missing:
        print(f"papers_test: skipped, without {' and '.join(missing)}")
        sys.exit(77)
    with tempfile.TemporaryDirectory() as directory:
        done = subprocess.run([sys.executable, str(HERE / "papers"), "--small", "--out", directory, "002"], capture_output=True, text=True)
        check(done.returncode == 0, done.stderr)
        page = pathlib.Path(directory, "index.html").read_text()
        for heading in ("Table 1: ", "Figure 6: ", "Figure 7: ", "Figure 8: ", "Table 2: ", "The shapes of Figures 6 to 8", "MPI_Win_lock, simulated", "Table 3: ", "All processes lock one target",
                        "Targets", "Figures 6 to 8 on a cluster", "Figures 6 to 8, real processes", "Table 3, real processes"):
            check(f">{heading}" in page, f"the page has no '{heading}'")
        check(page.count("<svg") == 6 + 2 * len(mpis), f"the page has {page.count('<svg')} plots")
        read = lambda name: list(csv.reader(open(f"{directory}/002-{name}.csv")))[1:]
        check([row[0] for row in read("table-1")][:3] == ["RCKMPI, published", "GBH, published", "MCS-WP, published"], "Table 1 lacks designs of the paper")
        for figure, kinds in ((6, 5), (7, 5), (8, 6)):
            rows = [[float(v) for v in row] for row in read(f"figure-{figure}")]
            check([row[0] for row in rows] == [1, 2, 4, 8] and all(len(row) == 1 + kinds and min(row) > 0 for row in rows), f"Figure {figure}: {rows}")
        quartiles = [[float(v) for v in row[2:5]] for row in read("table-2")]
        check(len(quartiles) == 16 and all(0 < q1 <= q2 <= q3 for q1, q2, q3 in quartiles), f"Table 2: {quartiles}")
        check(len(read("shapes")) == 9 and not any("nan" in cell for row in read("shapes") for cell in row), "the shapes")
        check([row[:2] for row in read("win-lock")] == [[form, x] for form in ("nothing", "a read of 8 bytes") for x in ("0", "50", "100")], "MPI_Win_lock lacks rows")
        check([(row[0], row[1], row[2]) for row in read("table-3")] == [(r, m, k) for r, m in (("0", "-"), ("1", "close"), ("1", "distant")) for k in ("32", "512", "1024")], "Table 3 lacks rows")
        check(all(float(v) > 0 for row in read("table-3") for v in row[3:]), "Table 3 has no times")
        check(read("targets")[-1] == ["runs repeat exactly", "yes", "yes", "yes"], f"targets: {read('targets')}")
        cluster = read("cluster")
        check(len(cluster) == 30 and all(0 < float(row[5]) <= float(row[7]) <= float(row[8]) for row in cluster), f"the cluster: {cluster}")
        names, processes = {"openmpi": "Open MPI", "mpich": "MPICH"}, {"openmpi": ("1", "2"), "mpich": ("1",)}
        jobs = [(names[m], n) for m in mpis for n in processes[m]]
        real = read("real")
        check([row[:2] for row in real[::32]] == [list(job) for job in jobs] and len(real) == 32 * len(jobs), "real processes lack rows")
        check(all(0 < float(row[5]) <= float(row[7]) <= float(row[8]) for row in real), f"real processes: {real}")
        writer = read("real-table-3")
        check(len(writer) == 6 * len(jobs) and all(float(v) > 0 for row in writer for v in row[4:]), f"Table 3, real processes: {writer}")


if sys.argv[2:] == ["kaapi"]:
    the_kaapi_page()
elif sys.argv[2:] == ["locks"]:
    the_locks_page()
else:
    the_page(the_limit(), sys.argv[1])
