# SPDX-License-Identifier: BSL-1.0
"""The experiments of Gautier, Besseron and Pigeon (2007) on KAAPI: Fibonacci on processors that are there and on simulated ones, N-queens on
the processes of this machine, how much of a message's time is hidden behind computing, and a short step that is repeated, partitioned and stolen. Used by
`benchmarks/papers`."""
import math
import os
import pathlib
import re
import shutil
import statistics
import subprocess
import sys

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
# Figure 6: T1 / Tp by processors, of fib(35) and fib(40), by the new implementation of KAAPI and the old one.
FIGURE_6 = {1: (1, 1, 1, 1), 2: (1.96, 1.90, 1.98, 1.96), 4: (3.91, 3.61, 3.99, 3.90), 8: (7.57, 5.38, 7.96, 7.38), 16: (11.81, 4.67, 15.33, 10.30)}
# A loopback of 100 Mbit/s with packets of an Ethernet, in a network namespace of its own.
SLOW_NETWORK = "ip link set lo mtu 1500 up && tc qdisc add dev lo root tbf rate 100mbit burst 2kb latency 400ms && exec \"$@\""
# How many solutions there are.
SOLUTIONS = {8: 92, 10: 724, 14: 365_596, 15: 2_279_184, 16: 14_772_512, 17: 95_815_104, 21: 314_666_222_712, 22: 2_691_008_701_644, 23: 24_233_937_684_440}
HOW = {"mpi": "MPI_Isend, compute, MPI_Wait", "messages": "weft's messages", "partitioned": "a graph that weft has partitioned", "stealing": "a task that is stolen"}


def build(out, program, compiler, *words, folder=HERE):
    made = out / f"004-{program}"
    command = [compiler, "-std=c++20", "-O2", "-DNDEBUG", f"-I{ROOT / 'include'}", f"-I{ROOT / 'benchmarks/support'}", *words, str(folder / f"{program}.cpp"),
               "-o", str(made), "-lboost_context", "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")
    return made.resolve()


def output(command, **options):
    done = subprocess.run([*map(str, command)], capture_output=True, text=True, **options)
    if done.returncode != 0:
        sys.exit(f"{' '.join(map(str, command))}: {done.stderr.strip() or done.returncode}")
    return done.stdout


def run(command, **options):
    return [[float(v) for v in line.split(",")] for line in output(command, **options).splitlines()]


def build_simulated(out, program, sources, *words):
    """`sources`: of tests/simulation."""
    return build(out, program, shutil.which("g++") or "c++", "-DWEFT_PLATFORM=\"simulation/platform.hpp\"", "-DWEFT_CHECKED=0", f"-I{ROOT / 'tests'}", f"-I{ROOT / 'benchmarks'}", *words,
                 *(str(ROOT / f"tests/simulation/{name}.cpp") for name in sources))


def figure_6(page, lines, small):
    page.heading("Figure 6: Fibonacci, a task for each call and each sum", 3)
    sizes, virtual = ((20, 25), (16, 20)) if small else ((35, 40), (25, 30))
    compiler = shutil.which("g++") or "c++"
    here = {(int(n), int(workers)): seconds for n, workers, seconds in run([build(page.out, "fib", compiler), 1 if small else 5, *sizes])}
    program = build_simulated(page.out, "fib_simulated", ("cost_model", "machine"), "-DWEFT_ASYMMETRIC=1")
    simulated = {(int(n), int(workers)): took for n, workers, took in run([program, *virtual])}
    page.table("004-figure-6", ["processors", *(f"fib({n}), {who}" for n in (35, 40) for who in ("published", "published, old")), *(f"fib({n}), here" for n in sizes),
                                *(f"fib({n}), simulated" for n in virtual)],
               [[p, *published, *(here[n, 1] / here[n, p] if (n, p) in here else math.nan for n in sizes), *(simulated[n, 1] / simulated[n, p] for n in virtual)]
                for p, published in FIGURE_6.items()])
    ps = list(FIGURE_6)
    page.figure(lines(ps, {"fib(35), published": [f[0] for f in FIGURE_6.values()], "fib(40), published": [f[2] for f in FIGURE_6.values()],
                           **{f"fib({n}), simulated": [simulated[n, 1] / simulated[n, p] for p in ps] for n in virtual}}, "processors", "T1 / Tp", log=False),
                f"Here: {os.cpu_count()} processors. Simulated: the scheduler of weft on processors where each operation has a price, as test simulation.scaling; smaller numbers, since a "
                "task of weft takes a few nanoseconds where the paper's took 33.5.")
    page.table("004-fib", ["n", "plain program, s", "one worker, s", "T1 / Ts here", "T1 / Ts published: KAAPI's low level", "Athapascan"],
               [[n, here[n, 0], here[n, 1], here[n, 1] / here[n, 0], 13.4, 81] for n in sizes])


def figure_7(page, plot, launch, small):
    page.heading("Figure 7: N-queens, how busy the processors are", 3)
    program, processes = build(page.out, "queens", launch.compiler, "-DOMPI_SKIP_MPICXX"), min(2, os.cpu_count())
    found = run([*launch(processes), program, *((8, 10) if small else (14, 15, 16, 17))], env=launch.environment)
    for n, solutions, *_ in found:
        if solutions != SOLUTIONS[n]:
            sys.exit(f"{int(n)} queens: {int(solutions)} solutions in place of {SOLUTIONS[n]}")
    page.table("004-figure-7", ["queens", "solutions", "seconds", "idle, % of the time of all"],
               [[int(n), int(solutions), seconds, 100 * (1 - statistics.mean(shares))] for n, solutions, seconds, *shares in found])
    drawn, axes = plot.subplots(figsize=(7, 3.2))
    for n, _, _, *shares in found:
        axes.plot([100 * s for s in shares], label=f"{int(n)} queens")
    axes.set_xlabel("% of the run"), axes.set_ylabel("% busy"), axes.set_ylim(0, 105), axes.grid(alpha=0.3), axes.legend()
    page.figure(drawn, f"Share of the time that {processes} processes with one worker each spend in searches; every placement in the first five rows is a task. The paper: 23 queens on 1422 "
                       "processors, idle 22.72 of 4434.9 s, which is 0.51 % (printed: 0.63 %).")


def figure_7_simulated(page, program, small):
    page.heading("Figure 7, simulated: 1422 processes", 3)
    published = 4434.9 - 22.72  # seconds that each process of the paper computes
    n, rows, processes = (9, 3, 16) if small else (15, 7, 1422)
    work = {queens: 1e-3 * published * SOLUTIONS[queens] / SOLUTIONS[23] for queens in (21, 22, 23)}
    found = run([program, *(word for each in work.values() for word in ("queens", n, rows, processes, each))])
    page.table("004-figure-7-simulated", ["queens", "processes", "seconds of computing, each, a thousandth", "seconds in all", "idle, % of the time of all", "published", "messages of a process", "at most",
                                          "tasks that went to other processes"],
               [[queens, int(p), each, all_, 100 * (1 - each / all_), 0.51 if queens == 23 else math.nan, messages, int(most), int(sent)]
                for queens, (p, each, all_, messages, most, sent) in zip(work, found)])
    page.text(f"Weft's protocol of thefts between processes, on a simulated network, as test simulation.cluster. The tree is that of {n} queens, in which every placement in the first {rows} rows is a task; "
              "its bodies do not search, they take virtual time: so long that each process computes a thousandth of what those of the paper compute for 23 queens (4434.9 s less the idle 22.72), and less for 21 and 22, by the "
              "numbers of solutions. A thousandth, since the simulation of longer ones takes too long; messages take what they take, so with the whole time shares of idle time are smaller. Which trees these have below, and what tasks the paper made of them, is not in the paper.")


def uts(page, lines, launch, simulated, small):
    page.heading("Beyond the figures: unbalanced tree search", 3)
    if launch.compiler is not None:
        program = build(page.out, "uts", launch.compiler, "-DOMPI_SKIP_MPICXX", folder=ROOT / "benchmarks/cluster")
        rows = []
        for tree in ("T1", "T3"):
            for processes in (1, 2):
                text = output([*launch(processes), program, 1 if small else 5, 5000 if tree == "T3" else 5, tree], env=launch.environment)
                alone, together, ratio = re.search(r"alone ([0-9.]+) s, cluster ([0-9.]+) s; alone / cluster ([0-9.]+)", text).groups()
                rows.append([tree, processes, float(alone), float(together), float(ratio)])
        page.table("004-uts", ["tree", "processes", "seconds in a runtime of one process", "in the cluster", "the first / the second"], rows)
    depth, sizes, each = (6, (4, 8), 0.01) if small else (10, (64, 256, 1024), 1)
    found = run([simulated, *(word for p in sizes for word in ("uts", depth, p, each))])
    page.table("004-uts-simulated", ["processes", "seconds of computing, each", "seconds in all", "efficiency", "messages of a process", "at most", "tasks that went to other processes"],
               [[int(p), computing, all_, computing / all_, messages, int(most), int(sent)] for p, computing, all_, messages, most, sent in found])
    page.figure(lines(sizes, {"efficiency": [computing / all_ for _, computing, all_, *_ in found]}, "processes", "efficiency"),
                "The tree T1, each of its nodes a task, on a simulated cluster; counts are exact, and bodies take so long that each process computes for the same time. The aim of weft: 0.80 with 64 processes, 0.75 with "
                "256, 0.70 with 1024.")


def lk23(page, lines, launch, small):
    page.heading("Beyond the figures: Livermore kernel 23 on a ring of processes", 3)
    program = build(page.out, "lk23_ring", launch.compiler, "-DOMPI_SKIP_MPICXX", "-ffp-contract=off", folder=ROOT / "examples")
    most = 2 if small else max(2, os.cpu_count())
    processes, rows = [1 << k for k in range(most.bit_length())], []
    for p in processes:
        text = output([*launch(p), program, *((400, 10, 100, 1) if small else (2048, 40, 128, 5))], env=launch.environment)
        ring, plain = map(float, re.search(r"processes: ([0-9.]+) s, plain loops ([0-9.]+) s", text).groups())
        rows.append([p, ring, plain, plain / ring])
    page.table("004-lk23", ["processes", "seconds", "seconds of the plain loops", "plain loops / ring"], rows)
    page.figure(lines(processes, {"plain loops / ring": [row[3] for row in rows]}, "processes", "plain loops / ring", log=False),
                "examples/lk23_ring.cpp: the step of all blocks is partitioned, rows of blocks go round the ring, and sweeps follow each other without a barrier. The results have the bits of the plain loops.")


def figure_8(page, plot, launch, small):
    page.heading("Figure 8: a message, and computing meanwhile", 3)
    slow = ["unshare", "--net", "bash", "-c", SLOW_NETWORK, "bash"]
    if None in map(shutil.which, ("unshare", "ip", "tc")) or subprocess.run([*slow, "true"], capture_output=True).returncode != 0:
        page.text("Left out: a network of 100 Mbit/s needs the programs unshare, ip and tc, and the permission to make a network namespace.")
        return
    program = build(page.out, "overlap", launch.compiler, "-DOMPI_SKIP_MPICXX")
    tcp = {**launch.environment, "OMPI_MCA_btl": "tcp,self", "OMPI_MCA_pml": "ob1", "OMPI_MCA_btl_tcp_if_include": "lo", "OMPI_MCA_btl_tcp_links": "1"}
    rows = []
    for size in (2048, 65536):
        drawn, axes = plot.subplots(figsize=(7, 3.6))
        for how, name in HOW.items():
            found = run([*slow, *launch(2), program, how, size, 3 if small else 21, 0, 0.25, 0.5, 0.75, 1, 1.5, 2], env=tcp)
            equal, total = found[4]
            rows.append([size, name, found[0][1], equal, total, (found[0][1] + equal - total) / min(found[0][1], equal)])
            axes.plot([c for c, _ in found], [t for _, t in found], marker="o", label=name)
        axes.set_xlabel("microseconds of computing"), axes.set_ylabel("microseconds in all"), axes.set_ylim(bottom=0), axes.grid(alpha=0.3), axes.legend()
        page.figure(drawn, f"{size} bytes and an acknowledgement between two processes, by TCP over a loopback of 100 Mbit/s. Flat, then along the time of computing: hidden. Parallel to it from "
                           "the beginning: not hidden.")
    page.table("004-figure-8", ["bytes", "by", "us without computing", "us of computing", "us in all", "share of the message's time that is hidden"], rows)
    page.text("The time of a task that is stolen begins when it is forked, so it has the wait for the theft in it. "
              "The paper's finding of 2007 was that MPI over TCP makes no progress while a program computes, and that a thread which sends and receives does. Each process needs two processors "
              "for that: where there are two in all, what computes has one, and the threads of both processes that send and receive share the other, "
              "which is what a message of 2 KB takes longer for then.")


def figure_9(page, lines, launch, small):
    page.heading("Figure 9: a step of 30 ms that is repeated, partitioned among processes or stolen", 3)
    program = build(page.out, "steps", launch.compiler, "-DOMPI_SKIP_MPICXX", folder=ROOT / "benchmarks/cluster")
    most = 2 if small else max(2, os.cpu_count())
    processes = [1 << k for k in range(most.bit_length())]
    rows, curves = [], {}
    for steps in (10, 20):
        for p in processes:
            text = output([*launch(p), program, 1 if small else 9, steps, 1 if small else 30], env=launch.environment)
            ratio = {how: re.search(rf"serial / {how} ([0-9.]+) \(([0-9.]+) to ([0-9.]+)\)", text) for how in ("partitioned", "stealing")}
            rows.append([p, steps, *(float(v) for how in ratio.values() for v in how.groups())])
            for how, found in ratio.items():
                curves.setdefault(f"{how}, {steps} steps", []).append(float(found[1]))
    page.table("004-figure-9", ["processes", "steps", *(f"serial / {how}{what}" for how in ("partitioned", "stealing") for what in ("", ", least", ", most"))], rows)
    page.figure(lines(processes, curves, "processes", "serial time / time", log=False),
                f"Here: {os.cpu_count()} processors, processes with one worker each, a ring of 16 strips; medians of pairs in turns. Ten or twenty steps in a run, as in the paper, which shows "
                "threads of one process, up to 16, and no numbers; there partitioning was ahead of stealing, the more so with more processors.")


class Launch:
    """How programs are started with Open MPI; `compiler` is None where it is missing."""

    def __init__(self):
        self.launcher, self.compiler = shutil.which("mpiexec.openmpi"), shutil.which("mpicxx.openmpi")
        if self.launcher is None:
            self.compiler = None
        self.environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}

    def __call__(self, processes):
        # Bound to one core, as by default, the threads of a process would have to take turns.
        return [self.launcher, "--oversubscribe", "--bind-to", "none", "-n", str(processes)]


def paper_004(page, plot, lines, small):
    page.heading("004: KAAPI, work stealing and data flow")
    figure_6(page, lines, small)
    searches = build_simulated(page.out, "searches_simulated", ("virtual_time", "machine"))
    launch = Launch()
    if launch.compiler is None:
        page.text("Figures 7 to 9 on processes of this machine need Open MPI: apt-get install libopenmpi-dev openmpi-bin")
        figure_7_simulated(page, searches, small)
        uts(page, lines, launch, searches, small)
        return
    figure_7(page, plot, launch, small)
    figure_7_simulated(page, searches, small)
    figure_8(page, plot, launch, small)
    figure_9(page, lines, launch, small)
    uts(page, lines, launch, searches, small)
    lk23(page, lines, launch, small)
