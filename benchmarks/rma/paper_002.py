# SPDX-License-Identifier: BSL-1.0
"""The experiments of Christgau and Schnor (2016) on locks on remote memory: simulated by SimGrid on a platform like the Single-Chip
Cloud Computer and on a cluster, and on real processes with each MPI that is found. Used by `benchmarks/papers`."""
import math
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor

HERE = pathlib.Path(__file__).resolve().parent
HEAD = '<?xml version="1.0"?>\n<!DOCTYPE platform SYSTEM "https://simgrid.org/simgrid.dtd">\n<platform version="4.1">'

# Quartiles in microseconds at 48 processes (Table 2), for 0, 50 and 100 % exclusive locks.
TABLE_2 = {"gbh": ((3.00, 3.39, 4.14), (2.94, 13.62, 61.85), (23.52, 54.86, 143.40)),
           "gbh_registers": ((2.98, 3.35, 4.02), (2.79, 6.33, 8.88), (8.90, 12.31, 19.24)),
           "mcs_wp": ((16.39, 20.13, 24.76), (15.51, 20.52, 30.00), (14.17, 16.90, 22.06))}
# Microseconds of PUT and UNLOCK for 32, 512 and 1024 bytes (Table 3): GBH with back-off, MCS-WP.
TABLE_3 = {(0, "-"): ((5.4, 18.8, 34.3), (4.9, 18.4, 33.9)),
           (1, "close"): ((6.3, 20.2, 35.6), (8.7, 22.0, 37.4)),
           (1, "distant"): ((6.5, 19.9, 35.4), (6.8, 22.5, 38.1)),
           (11, "close"): ((13.2, 46.0, 86.3), (18.3, 51.7, 90.9)),
           (11, "distant"): ((12.9, 45.3, 86.1), (10.6, 24.6, 41.0)),
           (47, "-"): ((90.6, 136.4, 244.4), (23.1, 51.7, 89.7))}


def mesh(columns):
    """Tiles in so many columns and four rows, with two cores and one port each, and four memory controllers, at the ends of the rows
    1 and 3. An access passes the port of the core's tile, and a bank of memory or the port of another tile; each takes 4 bytes in 16 ns, which
    is what each further reader adds to each word of the writer in Table 3; an access alone takes the 121 ns of the same table."""
    cores, place = columns * 8, lambda tile: (tile % columns, tile // columns)
    controllers = [(0, 0), (columns - 1, 0), (0, 2), (columns - 1, 2)]
    out = [HEAD, '<zone id="mesh" routing="Full">']

    def route(source, target, a, b, *links):
        hops = f"hops{abs(a[0] - b[0]) + abs(a[1] - b[1])}"
        out.append(f'<route src="{source}" dst="{target}">' + "".join(f'<link_ctn id="{link}"/>' for link in (*links, hops)) + "</route>")

    for core in range(cores):
        x, y = place(core // 2)
        out.append(f'<host id="core{core}" speed="533Mf"><prop id="memory" value="{(x >= columns // 2) + 2 * (y >= 2)}"/></host>')
    for kind, link, count in (("tile", "port", cores // 2), ("mc", "bank", 4)):
        out += [f'<host id="{kind}{i}" speed="1Gf"/><link id="{link}{i}" bandwidth="250MBps" latency="0us"/>' for i in range(count)]
    out += [f'<link id="hops{h}" bandwidth="100GBps" latency="{0.105 + 0.01 * h:.3f}us" sharing_policy="FATPIPE"/>' for h in range(columns + 4)]
    for core in range(cores):
        own = core // 2
        for i, at in enumerate(controllers):
            route(f"core{core}", f"mc{i}", place(own), at, f"port{own}", f"bank{i}")
        for tile in range(cores // 2):
            route(f"core{core}", f"tile{tile}", place(own), place(tile), *{f"port{own}", f"port{tile}"})
        for other in range(core + 1, cores):
            route(f"core{core}", f"core{other}", place(own), place(other // 2))
    return "\n".join([*out, "</zone></platform>"])


def cluster(nodes):
    """Nodes of 16 processes; 0.1 us within a node, 1 us between two, where a packet of 64 bytes occupies a node's link for 21 ns."""
    return (f'{HEAD}<cluster id="cluster" prefix="node" suffix="" radical="0-{nodes - 1}" speed="1Gf" bw="3GBps" lat="0.5us" '
            'loopback_bw="6GBps" loopback_lat="0.1us"/></platform>')


class Simulator:
    """Builds the program and runs it on platforms: a simulation is one thread, so as many run at a time as there are processors."""

    def __init__(self, out):
        self.out, self.program = out, out / "simulated"
        build("smpicxx", "simulated.cpp", self.program)

    def all(self, calls):
        """The results of many simulations in the order of `calls`, each (platform, hosts, words...)."""
        with ThreadPoolExecutor(os.cpu_count()) as pool:
            return list(pool.map(lambda call: self(*call), calls))

    def __call__(self, platform, hosts, *words):
        with tempfile.TemporaryDirectory(dir=self.out) as place:
            files = {"platform.xml": platform, "hosts": "\n".join(hosts)}
            for name, text in files.items():
                pathlib.Path(place, name).write_text(text + "\n")
            done = subprocess.run(
                ["smpirun", "-np", str(len(hosts)), "-platform", "platform.xml", "-hostfile", "hosts",
                 "--cfg=smpi/simulate-computation:no", "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0", "--cfg=network/crosstraffic:0",
                 "--cfg=surf/precision:1e-13", "--log=root.thresh:error", str(self.program.resolve()), *map(str, words)],
                capture_output=True, text=True, cwd=place)
        if done.returncode != 0:
            sys.exit(f"simulated {' '.join(map(str, words))}: {done.stderr.strip()}")
        return [float(v) for v in done.stdout.split(",")]


def build(compiler, source, program):
    command = [compiler, "-std=c++20", "-O2", "-DNDEBUG", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", f"-I{HERE.parents[1] / 'include'}",
               str(HERE / source), "-o", str(program), "-lboost_context", "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")


def cores(numbers):
    return [f"core{i}" for i in numbers]


def simulated(page, lines, pairs):
    if shutil.which("smpirun") is None:
        page.text("The simulation needs SimGrid: apt-get install libsimgrid-dev")
        return
    run, chip = Simulator(page.out), mesh(6)
    page.text("Simulated with SimGrid: the steps that weft's processes execute, on 24 tiles in a 6 x 4 mesh with two cores each and four memory controllers. Atomic operations "
              "are two accesses under a test-and-set register; a process that waits for the register reads it all the time. Accesses take what Table 3 says of a writer alone and of "
              "each further reader; the software around an atomic operation takes what Table 2 says of GBH without writers. Everything else comes out of the simulation.")
    kinds = ["gbh", "gbh_backoff", "gbh_registers", "mcs_wp", "rma_rw", "d_mcs"]
    sizes = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]
    # 64 on a mesh with two columns more; the long ones first
    wanted = [(kind, exclusive, n) for n in reversed(sizes) for exclusive in (0, 50, 100) for kind in kinds if kind != "d_mcs" or exclusive == 100]
    at = dict(zip(wanted, run.all([(chip if n <= 48 else mesh(8), cores(range(n)), "pairs", kind, exclusive, pairs) for kind, exclusive, n in wanted])))
    for figure, exclusive, title in ((6, 0, "shared locks only"), (7, 50, "half of them exclusive"), (8, 100, "exclusive locks only")):
        page.heading(f"Figure {figure}: {title}", 3)
        medians = {kind: [at[kind, exclusive, n][1] for n in sizes] for kind in kinds if (kind, exclusive, 48) in at}
        page.table(f"002-figure-{figure}", ["processes", *medians], [[n, *(medians[k][i] for k in medians)] for i, n in enumerate(sizes)])
        drawn = lines(sizes, medians, "processes", "microseconds, median", log=False)
        for kind, published in TABLE_2.items():
            drawn.axes[0].plot([48], [published[figure - 6][1]], marker="x", color="black", markersize=9)
            drawn.axes[0].annotate(f" {kind}, published", (48, published[figure - 6][1]), fontsize=7, ha="right", va="bottom")
        drawn.axes[0].set_ylim(0, 1.08 * max(*(p[figure - 6][1] for p in TABLE_2.values()), *(max(m) for m in medians.values())))
        page.figure(drawn, f"A lock and its unlock, random targets, {pairs} pairs in each process (the paper: 1000). Crosses: the paper's medians at 48 processes.")

    page.heading("Table 2: quartiles at 48 processes", 3)
    rows = []
    for kind in kinds:
        for exclusive in (0, 50, 100):
            if (kind, exclusive, 48) not in at:
                continue
            q1, q2, q3 = at[kind, exclusive, 48][:3]
            there = TABLE_2.get(kind)
            p = there[exclusive // 50] if there else (math.nan,) * 3
            rows.append([kind, exclusive, q1, q2, q3, (q3 - q1) / q2, *p, (p[2] - p[0]) / p[1]])
    page.table("002-table-2", ["kind", "% exclusive", "Q1", "Q2", "Q3", "IQR/Q2", "Q1, published", "Q2", "Q3", "IQR/Q2"], rows)
    page.text("Microseconds. The paper's back-off cannot be one between attempts to get a lock alone: with random targets these seldom fail (gbh_backoff has the figures of gbh), and what takes "
              "long is the register of core 0, which holds the word that all exclusive locks change. With a back-off between two looks at a register (gbh_registers) the figures are the paper's. "
              "MCS-WP takes less than the published time: in weft a lock that is free takes one operation, and only who does not get it so joins the queue.")

    page.heading("Table 3: a writer that readers wait for", 3)
    rows, ratios, calls = [], [], []
    for readers, mapping in TABLE_3:
        hosts = {"close": [*range(1, 6), *range(12, 18)], "distant": [*range(6, 12), *range(18, 23)], "-": range(1, 48)}[mapping]
        hosts = cores([0, *list(hosts)[:readers]])
        calls += [(chip, hosts, "writer", kind, size, 101) for size in (32, 512, 1024) for kind in ("gbh_backoff", "mcs_wp")]
    results = iter(run.all(calls))
    for (readers, mapping), published in TABLE_3.items():
        for i, size in enumerate((32, 512, 1024)):
            ours = [next(results)[1], next(results)[1]]
            rows.append([readers, mapping, size, *ours, ours[0] / ours[1], published[0][i], published[1][i], published[0][i] / published[1][i]])
            if readers == 47:
                ratios.append(ours[0] / ours[1])
    page.table("002-table-3", ["readers", "mapping", "bytes", "gbh_backoff", "mcs_wp", "ratio", "gbh_backoff, published", "mcs_wp", "ratio"], rows)
    page.text(f"Median microseconds of 101 times that the writer puts and unlocks. With 47 readers GBH takes {min(ratios):.1f} to {max(ratios):.1f} times as long as MCS-WP; published: 2.7 to 3.9. The writer begins "
              "250 to 350 us after the readers: then those of MCS-WP all wait, each at a word of its own. Earlier they still push themselves onto the writer's stack, which costs as much as GBH's attempts; "
              "later, weft's back-off, up to 1 ms, has made GBH's attempts rarer, and the ratio falls below 2. The paper does not say when its writer begins, nor how long its back-off becomes.")

    page.heading("All processes lock one target exclusively", 3)
    rows, there = [], ("gbh", "gbh_backoff", "mcs_wp", "d_mcs", "rma_rw")
    results = iter(run.all([(mesh(columns), cores(range(8 * columns)), "hot", kind, 100, 5) for columns in (6, 8) for kind in there]))
    for columns in (6, 8):
        total = {kind: next(results)[3] for kind in there}
        rows.append([8 * columns, *total.values(), total["gbh_backoff"] / total["mcs_wp"], total["gbh"] / total["mcs_wp"]])
    page.table("002-hot", ["processes", *(f"{k}, us" for k in total), "gbh_backoff / mcs_wp", "gbh / mcs_wp"], rows)
    again = [run(mesh(8), cores(range(64)), "hot", kind, 100, 5)[3] for kind in ("gbh", "mcs_wp")]
    exact = again == [rows[1][1], rows[1][3]]
    page.text(f"Time of all, five locks each. Run once more, 64 processes take {again[0]:.1f} us with gbh and {again[1]:.1f} with mcs_wp: "
              + ("exactly as before." if exact else "not as before, which is a fault."))

    spread = max((at["mcs_wp", 100, n][2] - at["mcs_wp", 100, n][0]) / at["mcs_wp", 100, n][1] for n in (48, 64))
    targets = [("48 and 64 processes, one target, exclusive: gbh_backoff / mcs_wp", "at least 5", min(r[6] for r in rows), min(r[6] for r in rows) >= 5),
               ("the same, gbh / mcs_wp", "at least 20", min(r[7] for r in rows), min(r[7] for r in rows) >= 20),
               ("random targets, all exclusive, mcs_wp: largest IQR / median (paper: 0.46)", "below 1", spread, spread < 1),
               ("47 readers: least gbh_backoff / mcs_wp (paper: 2.7 to 3.9)", "at least 2.7", min(ratios), min(ratios) >= 2.7),
               ("runs repeat exactly", "yes", "yes" if exact else "no", exact)]
    page.heading("Targets", 3)
    page.table("002-targets", ["what", "target", "simulated", "met"], [[what, wanted, value, "yes" if met else "NO"] for what, wanted, value, met in targets])

    page.heading("A cluster of nodes with 16 processes", 3)
    rows, calls = [], []
    for processes in (64, 256, 1024):
        hosts = [f"node{i // 16}" for i in range(processes)]
        for what, kinds_here, exclusive, count in (("random targets", ("gbh", "gbh_backoff", "mcs_wp", "rma_rw"), 50, 10),
                                                   ("one target", ("gbh_backoff", "mcs_wp", "rma_rw"), 5, 10)):
            for kind in kinds_here:
                if kind == "rma_rw" and processes > 256:
                    continue  # takes minutes
                mode = "pairs" if what == "random targets" else "hot"
                calls.append((cluster(processes // 16), hosts, mode, kind, exclusive, count))
                rows.append([processes, what, exclusive, kind])
    for row, (*_, count), (q1, q2, q3, all_, accesses) in zip(rows, calls, run.all(calls)):
        row += [q1, q2, q3, all_, accesses / row[0] / count]
    page.table("002-cluster", ["processes", "locks", "% exclusive", "kind", "Q1, us", "Q2", "Q3", "time of all, us", "accesses for a pair"], rows)


def real(page):
    rows = []
    for mpi, counts, options in (("openmpi", (1, 2, 4), ["--oversubscribe"]), ("mpich", (1, 2), [])):
        compiler, launcher = shutil.which(f"mpicxx.{mpi}"), shutil.which(f"mpiexec.{mpi}")
        if compiler is None or launcher is None:
            page.text(f"{mpi} is not there: apt-get install lib{mpi}-dev {mpi}{'-bin' if mpi == 'openmpi' else ''}")
            continue
        program = page.out / f"pairs-{mpi}"
        build(compiler, "pairs.cpp", program)
        environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
        for n in counts:
            series = {}
            for _ in range(5):
                done = subprocess.run([launcher, *options, "-n", str(n), str(program)], capture_output=True, text=True, env=environment)
                if done.returncode != 0:
                    sys.exit(f"{program} in {n} processes: {done.stderr.strip()}")
                for line in done.stdout.split():
                    memory, kind, exclusive, *quartiles = line.split(",")
                    series.setdefault((memory, kind, int(exclusive)), []).append([float(q) for q in quartiles])
            for key, times in series.items():
                rows.append([mpi, n, *key, *(statistics.median(column) for column in zip(*times))])
    page.table("002-real", ["MPI", "processes", "memory", "kind", "% exclusive", "Q1, us", "Q2", "Q3"], rows)


def paper_002(page, lines, pairs):
    page.heading("002: locks on remote memory")
    page.heading("Table 1: the designs", 3)
    page.table("002-table-1", ["", "RCKMPI, published", "GBH, published", "MCS-WP, published", "weft: mpi", "gbh, gbh_backoff", "mcs_wp", "rma_rw", "d_mcs"],
               [["communication", "messages", "shared memory", "shared memory", "that of the MPI", *["shared memory, MPI's operations or messages"] * 4],
                ["synchronization", "deferred", "immediate", "immediate", "that of the MPI", *["immediate"] * 4],
                ["readers and writers", *["yes"] * 6, "yes", "writers only"],
                ["fairness", "FIFO", "best effort", "writers are preferred", "that of the MPI", "best effort", "writers are preferred", "readers and writers take turns", "FIFO"],
                ["data structures", "-", "central and distributed counters", "distributed counters", "-", "central and distributed counters", "a queue and a stack for each target",
                 "a counter and a queue for each group, a queue of groups", "a queue for each target"]])
    page.text("Where the paper errs: in its section 4.2 an exclusive unlock of GBH sets the counter of the target to zero. That wipes out what a reader has added that is about to subtract it again, and the counter stays "
              "wrong for ever. weft subtracts; the other form is a mutant of the test rma.search, which finds it.")
    simulated(page, lines, pairs)
    page.heading("Real processes", 3)
    page.text(f"This machine has {os.cpu_count()} processors, so four processes take turns. Medians of five runs of 1000 pairs in each process; the times include reading the clock, 20 to 40 ns. "
              "The part of RCKMPI is played by MPI_Win_lock.")
    real(page)
