# SPDX-License-Identifier: BSL-1.0
"""The experiments of Christgau and Schnor (2016) on locks on remote memory: simulated by SimGrid on a platform like the Single-Chip
Cloud Computer and on a cluster, and on real processes with each MPI that is found. Used by `benchmarks/papers`."""
import math
import os
import pathlib
import re
import resource
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
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
        figures, why = self.attempt(platform, hosts, *words)
        if figures is None:
            sys.exit(f"simulated {' '.join(map(str, words))}: {why}")
        return figures

    def attempt(self, platform, hosts, *words):
        """The numbers that the program prints, or None and what it says in their place."""
        with tempfile.TemporaryDirectory(dir=self.out) as place:
            files = {"platform.xml": platform, "hosts": "\n".join(hosts)}
            for name, text in files.items():
                pathlib.Path(place, name).write_text(text + "\n")
            done = subprocess.run(
                ["smpirun", "-np", str(len(hosts)), "-platform", "platform.xml", "-hostfile", "hosts",
                 "--cfg=smpi/simulate-computation:no", "--cfg=network/model:CM02", "--cfg=network/TCP-gamma:0", "--cfg=network/crosstraffic:0",
                 "--cfg=surf/precision:1e-13", "--log=root.thresh:error", str(self.program.resolve()), *map(str, words)],
                capture_output=True, text=True, cwd=place)
        if done.returncode == 0 and done.stdout:  # SimGrid ends well after a deadlock, too
            return [float(v) for v in done.stdout.split(",")], ""
        said = re.search(r"/CRITICAL\] (.*)", done.stdout + done.stderr)
        return None, said[1] if said else (done.stderr.strip() or f"status {done.returncode}").splitlines()[0]


def build(compiler, source, program):
    command = [compiler, "-std=c++20", "-O2", "-DNDEBUG", "-DOMPI_SKIP_MPICXX", "-DMPICH_SKIP_MPICXX", f"-I{HERE.parents[1] / 'include'}",
               str(HERE / source), "-o", str(program), "-lboost_context", "-pthread"]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr.strip()}")


def cores(numbers):
    return [f"core{i}" for i in numbers]


class Extent:
    """How much is measured: all of it, or so little that it takes seconds and means nothing."""

    def __init__(self, pairs, small):
        self.pairs = min(pairs, 3) if small else pairs
        self.chip = [1, 2, 4, 8] if small else [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64]
        self.most = min(48, self.chip[-1])  # processes of Table 2
        self.readers = [(0, "-"), (1, "close"), (1, "distant")] if small else list(TABLE_3)
        self.writes = 3 if small else 101
        self.one_target = [(6, 8)] if small else [(6, 48), (8, 64)]  # columns of the mesh, processes
        # Pairs of each process by number of processes: what is simulated in a minute.
        self.cluster = {16: 2, 32: 1} if small else {16: 10, 64: 10, 128: 10, 256: 10, 512: 4, 1024: 2}
        self.hot = {16: 2, 32: 1} if small else {64: 10, 256: 10, 512: 2, 1024: 1}
        self.slow = pairs >= 1000  # whether what takes one processor four minutes is simulated, too
        self.real = {"openmpi": (1, 2) if small else (1, 2, 3, 4), "mpich": (1,) if small else (1, 2)}
        self.runs, self.real_pairs = (1, 20) if small else (3, 1000)


KINDS = ["gbh", "gbh_backoff", "gbh_registers", "mcs_wp", "rma_rw", "d_mcs"]
MIXES = ((6, 0, "shared locks only"), (7, 50, "half of them exclusive"), (8, 100, "exclusive locks only"))


def logarithmic(axes):
    """Powers of ten and what lies between them, as plain numbers."""
    axes.set_yscale("log")
    low, high = axes.get_ylim()
    decades = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    steps = (1, 2, 5) if len(decades) <= 4 else (1,)
    ticks = [t for d in decades for t in (s * 10.0**d for s in steps) if low <= t <= high]
    axes.set_yticks(ticks, [f"{t:.10g}" for t in ticks])
    axes.minorticks_off()


def spread(quartiles):
    return (quartiles[2] - quartiles[0]) / quartiles[1]


def chip_figures(page, lines, run, extent):
    """Figures 6 to 8 and Table 2. *Returns*: quartiles by kind, share of exclusive locks and number of processes."""
    sizes = extent.chip
    # 64 on a mesh with two columns more; the long ones first
    wanted = [(kind, exclusive, n) for n in reversed(sizes) for exclusive in (0, 50, 100) for kind in KINDS if kind != "d_mcs" or exclusive == 100]
    chips = {columns: mesh(columns) for columns in (6, 8)}
    at = dict(zip(wanted, run.all([(chips[6 if n <= 48 else 8], cores(range(n)), "pairs", kind, exclusive, extent.pairs) for kind, exclusive, n in wanted])))
    for figure, exclusive, title in MIXES:
        page.heading(f"Figure {figure}: {title}", 3)
        medians = {kind: [at[kind, exclusive, n][1] for n in sizes] for kind in KINDS if (kind, exclusive, sizes[0]) in at}
        page.table(f"002-figure-{figure}", ["processes", *medians], [[n, *(medians[k][i] for k in medians)] for i, n in enumerate(sizes)])
        drawn = lines(sizes, medians, "processes", "microseconds, median", log=False)
        axes = drawn.axes[0]
        for curve in list(axes.lines):
            if curve.get_label() in TABLE_2:
                marker, size = {"gbh": ("D", 10), "gbh_registers": ("X", 8), "mcs_wp": ("P", 10)}[curve.get_label()]
                axes.plot([48], [TABLE_2[curve.get_label()][figure - 6][1]], marker=marker, markersize=size, markeredgecolor="black", linestyle="none",
                          color=curve.get_color(), label=f"{curve.get_label()}, published")
        axes.set_ylim(1, 200), logarithmic(axes)
        axes.legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)
        page.figure(drawn, f"A lock and its unlock, random targets, {extent.pairs} pairs in each process (the paper: 1000). With a black edge: the paper's medians at 48 processes; it gives the others in "
                           "plots only. The vertical axis is logarithmic.")

    page.heading(f"Table 2: quartiles at {extent.most} processes", 3)
    rows = []
    for kind in KINDS:
        for exclusive in (0, 50, 100):
            if (kind, exclusive, extent.most) not in at:
                continue
            q = at[kind, exclusive, extent.most][:3]
            there = TABLE_2.get(kind)
            p = there[exclusive // 50] if there else (math.nan,) * 3
            rows.append([kind, exclusive, *q, spread(q), *p, spread(p)])
    page.table("002-table-2", ["kind", "% exclusive", "Q1", "Q2", "Q3", "IQR/Q2", "Q1, published", "Q2, published", "Q3, published", "IQR/Q2, published"], rows)
    registers = "{:.3g}, {:.3g} and {:.3g}".format(*(at["gbh_registers", x, extent.most][1] for x in (0, 50, 100)))
    page.text("Microseconds. The paper's back-off cannot be one between attempts to get a lock alone: with random targets these seldom fail (all exclusive, gbh_backoff takes as long as gbh), and what takes "
              f"long is the register of core 0, which holds the word that all exclusive locks change. With a back-off between two looks at a register (gbh_registers) the medians are {registers}; published: 3.35, 6.33 and 12.31. "
              "MCS-WP takes less than the published time: in weft a lock that is free takes one operation, and only who does not get it so joins the queue.")
    return at


def shapes(page, extent, at):
    """What the paper says of its curves, beside ours."""
    few, most = extent.chip[1], extent.most
    middle = extent.chip[len(extent.chip) // 2]
    median = lambda kind, exclusive, n: at[kind, exclusive, n][1]
    values = lambda kind, exclusive, sizes: ", ".join(f"{median(kind, exclusive, n):.3g}" for n in sizes)
    span = [few, middle, most]
    at_span = f"at {', '.join(map(str, span))} processes"
    peak = [n for n in (12, 24, 32, 48) if n in extent.chip] or span
    means = [median("mcs_wp", x, most) for x in (0, 50, 100)]
    page.heading("The shapes of Figures 6 to 8, side by side", 3)
    page.table("002-shapes", ["figure", "published", "simulated: medians in microseconds"], [
        [6, "GBH: nearly constant, with and without back-off alike", f"gbh {values('gbh', 0, span)}; gbh_backoff {values('gbh_backoff', 0, span)} {at_span}"],
        [6, "MCS-WP: above GBH (5.9 times at 48)", f"mcs_wp {values('mcs_wp', 0, span)} {at_span}: {median('mcs_wp', 0, most) / median('gbh', 0, most):.2f} times gbh at {most}"],
        [6, "MCS-WP: rises up to 24 processes, less at 32, then constant", f"mcs_wp {values('mcs_wp', 0, peak)} at {', '.join(map(str, peak))}"],
        [7, "GBH without back-off: rises linearly with the processes", f"gbh {values('gbh', 50, span)} {at_span}"],
        [7, "GBH with back-off: constant, 3 us above Figure 6", f"gbh_registers {values('gbh_registers', 50, span)} {at_span}; "
            f"{median('gbh_registers', 50, most) - median('gbh_registers', 0, most):.2g} above Figure 6 at {most}"],
        [8, "GBH without back-off: four times its time in Figure 7", f"gbh {values('gbh', 100, span)} {at_span}: {median('gbh', 100, most) / median('gbh', 50, most):.2g} times at {most}"],
        [8, "GBH with back-off: comes near to MCS-WP (0.73 times at 48)", f"gbh_registers {values('gbh_registers', 100, span)} {at_span}: "
            f"{median('gbh_registers', 100, most) / median('mcs_wp', 100, most):.2g} times at {most}"],
        ["6 to 8", "MCS-WP: the same for all mixes (20.1, 20.5, 16.9 at 48)", f"mcs_wp {', '.join(f'{m:.3g}' for m in means)} at {most}"],
        ["6, 8", "RCKMPI with messages at once: highest, linear in Figure 8, up to four times the others", "not simulated: see MPI_Win_lock below"]])


def win_lock(page, run, extent):
    """What SimGrid's MPI_Win_lock does."""
    page.heading("MPI_Win_lock, simulated", 3)
    wanted = [(form, exclusive) for form in ("bare", "read") for exclusive in (0, 50, 100)]
    rows = []
    for form, exclusive in wanted:
        found, why = run.attempt(mesh(6), cores(range(extent.most)), "win_lock", form, exclusive, 20)
        median = found[1] if found else math.nan
        rows.append(["nothing" if form == "bare" else "a read of 8 bytes", exclusive, median, "-" if found else why.removeprefix("simulated: ")])
    page.table("002-win-lock", ["between lock and unlock", "% exclusive", "median, us", "failure"], rows)
    page.text(f"SimGrid 3.32 has MPI_Win_lock, but no curve of it can be drawn; {extent.most} processes, 20 pairs each, random targets. A lock sends no message and takes no simulated time, so what is left is the read. "
              "Where shared and exclusive locks meet, SimGrid finds a deadlock, or the benchmark that a writer is beside readers. "
              "The paper's RCKMPI has both faces: by default it sends nothing before the first access, and with messages at once it deadlocked where locks were mixed. "
              "The MPI_Win_lock of Open MPI and MPICH is measured below.")


def chip_writer(page, run, extent):
    """Table 3. *Returns*: ratios with the most readers."""
    page.heading("Table 3: a writer that readers wait for", 3)
    rows, ratios, calls, most, times_of_gbh = [], [], [], extent.readers[-1], {}
    for readers, mapping in extent.readers:
        hosts = {"close": [*range(1, 6), *range(12, 18)], "distant": [*range(6, 12), *range(18, 23)], "-": range(1, 48)}[mapping]
        hosts = cores([0, *list(hosts)[:readers]])
        calls += [(mesh(6), hosts, "writer", kind, size, extent.writes) for size in (32, 512, 1024) for kind in ("gbh_backoff", "mcs_wp")]
    results = iter(run.all(calls))
    for readers, mapping in extent.readers:
        published = TABLE_3[readers, mapping]
        for i, size in enumerate((32, 512, 1024)):
            ours = [next(results)[1], next(results)[1]]
            rows.append([readers, mapping, size, *ours, ours[0] / ours[1], published[0][i], published[1][i], published[0][i] / published[1][i]])
            times_of_gbh[readers, mapping, size] = ours[0]
            if (readers, mapping) == most:
                ratios.append(ours[0] / ours[1])
    page.table("002-table-3", ["readers", "mapping", "bytes", "gbh_backoff", "mcs_wp", "ratio", "gbh_backoff, published", "mcs_wp, published", "ratio, published"], rows)
    page.text(f"Median microseconds of {extent.writes} times that the writer puts and unlocks. With the most readers, {most[0]}, GBH takes {min(ratios):.1f} to {max(ratios):.1f} times as long as MCS-WP; published for 47: 2.7 to 3.9. The writer begins "
              "250 to 350 us after the readers: then those of MCS-WP all wait, each at a word of its own. Earlier they still push themselves onto the writer's stack, which costs as much as GBH's attempts; "
              "later, weft's back-off, up to 1 ms, has made GBH's attempts rarer, and the ratio falls below 2. The paper does not say when its writer begins, nor how long its back-off becomes.")
    if (11, "close") in extent.readers:
        times = [times_of_gbh[11, "close", size] / times_of_gbh[0, "-", size] for size in (32, 512, 1024)]
        page.text(f"With 11 readers the simulated writer with GBH takes {min(times):.2f} to {max(times):.2f} times as long as alone; the paper's takes 2.4 to 2.5 times as long.")
    return ratios


def chip_one_target(page, run, extent):
    """*Returns*: rows of the table, and whether runs repeat."""
    page.heading("All processes lock one target exclusively", 3)
    rows, there = [], ("gbh", "gbh_backoff", "mcs_wp", "d_mcs", "rma_rw")
    results = iter(run.all([(mesh(columns), cores(range(n)), "hot", kind, 100, 5) for columns, n in extent.one_target for kind in there]))
    for _, n in extent.one_target:
        total = {kind: next(results)[3] for kind in there}
        rows.append([n, *total.values(), total["gbh_backoff"] / total["mcs_wp"], total["gbh"] / total["mcs_wp"]])
    page.table("002-hot", ["processes", *(f"{k}, us" for k in total), "gbh_backoff / mcs_wp", "gbh / mcs_wp"], rows)
    columns, n = extent.one_target[-1]
    again = [run(mesh(columns), cores(range(n)), "hot", kind, 100, 5)[3] for kind in ("gbh", "mcs_wp")]
    exact = again == [rows[-1][1], rows[-1][3]]
    page.text(f"Time of all, five locks each. Run once more, {n} processes take {again[0]:.1f} us with gbh and {again[1]:.1f} with mcs_wp: "
              + ("exactly as before." if exact else "not as before, which is a fault."))
    return rows, exact


def on_a_cluster(page, lines, run, extent):
    page.heading("Figures 6 to 8 on a cluster of nodes with 16 processes", 3)
    kinds, sizes = ("gbh", "gbh_backoff", "mcs_wp", "rma_rw"), list(extent.cluster)
    hosts = {n: [f"node{i // 16}" for i in range(n)] for n in (*extent.cluster, *extent.hot)}
    wanted = [("random", kind, exclusive, n) for n in sizes for exclusive in (0, 50, 100) for kind in kinds]
    wanted += [("one", kind, 5, n) for n in extent.hot for kind in ("gbh_backoff", "mcs_wp", "rma_rw") if kind != "mcs_wp" or n <= 512 or extent.slow]
    count = {what: extent.cluster if what == "random" else extent.hot for what, *_ in wanted}
    # The long ones first: one that begins last is waited for alone.
    order = sorted(wanted, key=lambda w: (-w[3], w[1] != "mcs_wp" if w[0] == "one" else w[1] != "rma_rw", -w[2]))
    at = dict(zip(order, run.all([(cluster(n // 16), hosts[n], "pairs" if what == "random" else "hot", kind, exclusive, count[what][n]) for what, kind, exclusive, n in order])))
    counts = ", ".join(f"{n}: {pairs}" for n, pairs in extent.cluster.items())
    for figure, exclusive, title in MIXES:
        drawn = lines(sizes, {kind: [at["random", kind, exclusive, n][1] for n in sizes] for kind in kinds}, "processes", "microseconds, median")
        drawn.axes[0].set_ylim(0.1, 1000), logarithmic(drawn.axes[0])
        drawn.axes[0].legend(loc="center left", bbox_to_anchor=(1.01, 0.5), fontsize=8)
        page.figure(drawn, f"As Figure {figure}, on a cluster: {title}. The paper has nothing beside it. Pairs in each process, by processes: {counts}; with so few, the start, where nobody knows yet which targets "
                           "others want, has a large part in them.")
    rows = []
    for key in wanted:
        what, kind, exclusive, n = key
        q1, q2, q3, all_, accesses = at[key]
        rows.append([n, what, exclusive, kind, count[what][n], q1, q2, q3, all_, accesses / n / count[what][n]])
    page.table("002-cluster", ["processes", "targets", "% exclusive", "kind", "pairs", "Q1, us", "Q2", "Q3", "time of all, us", "accesses for a pair"], rows, fold="All figures of the cluster")
    if not extent.slow:
        page.text("One target locked by 1024 processes with mcs_wp is left out: it takes a processor about four minutes, since each process that waits looks at its word all the time. --pairs 1000 has it.")


def simulated(page, lines, extent):
    if shutil.which("smpirun") is None:
        page.text("The simulation needs SimGrid: apt-get install libsimgrid-dev")
        return
    start, used = time.monotonic(), resource.getrusage(resource.RUSAGE_CHILDREN)
    before = used.ru_utime + used.ru_stime
    run = Simulator(page.out)
    page.text("Simulated with SimGrid: the steps that weft's processes execute, on 24 tiles in a 6 x 4 mesh with two cores each and four memory controllers. Atomic operations "
              "are two accesses under a test-and-set register; a process that waits for the register reads it all the time. Accesses take what Table 3 says of a writer alone and of "
              "each further reader; the software around an atomic operation takes what Table 2 says of GBH without writers. Everything else comes out of the simulation.")
    at = chip_figures(page, lines, run, extent)
    shapes(page, extent, at)
    win_lock(page, run, extent)
    ratios = chip_writer(page, run, extent)
    rows, exact = chip_one_target(page, run, extent)
    sizes = [n for n in (48, 64) if n in extent.chip] or [extent.most]
    widest = max(spread(at["mcs_wp", 100, n]) for n in sizes)
    numbers = " and ".join(str(n) for _, n in extent.one_target)
    targets = [(f"{numbers} processes, one target, exclusive: gbh_backoff / mcs_wp", "at least 5", min(r[6] for r in rows), min(r[6] for r in rows) >= 5),
               ("the same, gbh / mcs_wp", "at least 20", min(r[7] for r in rows), min(r[7] for r in rows) >= 20),
               (f"random targets, all exclusive, mcs_wp, {' and '.join(map(str, sizes))} processes: largest IQR / median (paper: 0.46)", "below 1", widest, widest < 1),
               (f"readers: {extent.readers[-1][0]}; least gbh_backoff / mcs_wp (paper, 47: 2.7 to 3.9)", "at least 2.7", min(ratios), min(ratios) >= 2.7),
               ("runs repeat exactly", "yes", "yes" if exact else "no", exact)]
    page.heading("Targets", 3)
    page.table("002-targets", ["what", "target", "simulated", "met"], [[what, wanted, value, "yes" if met else "NO"] for what, wanted, value, met in targets])
    on_a_cluster(page, lines, run, extent)
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    page.text(f"The simulations took {(used.ru_utime + used.ru_stime - before) / 60:.1f} minutes of processor time, and {(time.monotonic() - start) / 60:.1f} minutes with {os.cpu_count()} processors.")


MPIS = {"openmpi": "Open MPI", "mpich": "MPICH"}
MEMORIES = {"shared": "memory that the processes share", "mpi": "MPI's one-sided operations"}
REAL_KINDS = ["mpi", "gbh", "gbh_backoff", "mcs_wp", "rma_rw", "d_mcs"]


def real_runs(page, mpi, extent):
    """*Returns*: medians over the runs, by what was measured, processes, memory, kind and number; None if the MPI is not there."""
    compiler, launcher = shutil.which(f"mpicxx.{mpi}"), shutil.which(f"mpiexec.{mpi}")
    if compiler is None or launcher is None:
        page.text(f"{MPIS[mpi]} is not there: apt-get install lib{mpi}-dev {'openmpi-bin' if mpi == 'openmpi' else 'mpich'}")
        return None
    program = page.out / f"pairs-{mpi}"
    build(compiler, "pairs.cpp", program)
    environment = {**os.environ, "OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
    options = ["--oversubscribe"] if mpi == "openmpi" else []
    series = {}
    for n in extent.real[mpi]:
        for _ in range(extent.runs):
            done = subprocess.run([launcher, *options, "-n", str(n), str(program), str(extent.real_pairs), str(extent.writes)], capture_output=True, text=True, env=environment)
            if done.returncode != 0:
                sys.exit(f"{program} in {n} processes: {done.stderr.strip()}")
            for line in done.stdout.split():
                what, memory, kind, number, *figures = line.split(",")
                series.setdefault((what, n, memory, kind, int(number)), []).append([float(f) for f in figures])
    return {key: [statistics.median(column) for column in zip(*times)] for key, times in series.items()}


def real_figures(page, plot, extent, found):
    page.heading("Figures 6 to 8, real processes", 3)
    for mpi, at in found.items():
        for memory in MEMORIES:
            figure, rows = plot.subplots(2, 3, figsize=(11, 6), sharex=True, sharey="row", layout="constrained")
            sizes = extent.real[mpi]
            for column, (number, exclusive, title) in enumerate(MIXES):
                for kind in REAL_KINDS:
                    points = [at.get(("pairs", n, memory, kind, exclusive)) for n in sizes]
                    if None in points:
                        continue
                    label = "MPI_Win_lock" if kind == "mpi" else kind
                    style = {"color": f"C{REAL_KINDS.index(kind)}", "marker": "o", "markersize": 4}
                    rows[0][column].plot(sizes, [p[1] for p in points], label=label, **style)
                    rows[1][column].plot(sizes, [p[3] / 1e3 for p in points], **style)
                rows[0][column].set_title(f"Figure {number}: {title}", fontsize=10)
                rows[1][column].set_xlabel("processes"), rows[1][column].set_xticks(sizes)
                for row in rows:
                    row[column].grid(alpha=0.3)
            for row in rows:
                for axes in row:
                    axes.set_yscale("log")
                logarithmic(row[0])  # which the others share
            rows[0][0].set_ylabel("microseconds, median of a pair"), rows[1][0].set_ylabel("milliseconds, all pairs")
            handles = {}
            for axes in rows[0]:
                handles.update({label: handle for handle, label in zip(*axes.get_legend_handles_labels())})
            figure.legend(handles.values(), handles.keys(), loc="upper center", bbox_to_anchor=(0.5, 0), ncol=len(handles), fontsize=9)
            page.figure(figure, f"{MPIS[mpi]}, {MEMORIES[memory]}: {extent.real_pairs} pairs in each process. Above: a lock and its unlock. Below: from the first to the last.")
    rows = [[MPIS[mpi], n, memory, kind, exclusive, *figures] for mpi, at in found.items() for (what, n, memory, kind, exclusive), figures in at.items() if what == "pairs"]
    page.table("002-real", ["MPI", "processes", "memory", "kind", "% exclusive", "Q1, us", "Q2", "Q3", "time of all, us"], rows, fold="All figures of real processes")


def real_writer(page, extent, found):
    page.heading("Table 3, real processes: a writer that readers wait for", 3)
    kinds, rows = [k for k in REAL_KINDS if k != "d_mcs"], []
    for mpi, at in found.items():
        for memory in MEMORIES:
            for n in extent.real[mpi]:
                for i, size in enumerate((32, 512, 1024)):
                    medians = {kind: at["writer", n, memory, kind, size][1] for kind in kinds}
                    published = TABLE_3.get((n - 1, "close" if n > 1 else "-"))
                    rows.append([MPIS[mpi], memory, n - 1, size, *medians.values(), medians["gbh_backoff"] / medians["mcs_wp"],
                                 published[0][i] / published[1][i] if published else math.nan])
    page.table("002-real-table-3", ["MPI", "memory", "readers", "bytes", *("MPI_Win_lock" if k == "mpi" else k for k in kinds), "gbh_backoff / mcs_wp", "the same, published"], rows)
    page.text(f"Median microseconds of {extent.writes} times that process 0 puts into its own memory and unlocks, medians of {extent.runs} runs. It begins 300 us after the readers. The published ratio is that of the close mapping. "
              "The paper's large ratio is one of 47 readers on one chip; with one to three there is nothing like it to see, in the paper or here.")


def real(page, plot, extent):
    page.heading("Real processes", 2)
    processors = os.cpu_count()
    runs = "One run" if extent.runs == 1 else f"Medians of {extent.runs} runs"
    page.text(f"This machine has {processors} processors. Where there are more processes, or other programs run, they take turns, and the time of all is mostly that of the system's time slices. {runs} of {extent.real_pairs} pairs in each process; "
              "the times include reading the clock, 20 to 40 ns. The part of RCKMPI is played by MPI_Win_lock, which is followed by a read of a word of the target, so that it cannot be put off. "
              "MPICH has two processes at most: those that wait spin, so more of them than processors would hold each other up.")
    found = {mpi: at for mpi in MPIS if (at := real_runs(page, mpi, extent)) is not None}
    if found:
        real_figures(page, plot, extent, found)
        real_writer(page, extent, found)


def paper_002(page, plot, lines, pairs, small):
    extent = Extent(pairs, small)
    page.heading("002: locks on remote memory")
    if small:
        page.text("--small: these figures mean nothing.")
    page.text(f"Pairs of lock and unlock in each simulated process: {extent.pairs} (--pairs; 200 by default, with which all takes 10 to 20 minutes on two processors; the paper: 1000). Real processes: {extent.real_pairs}.")
    page.heading("Table 1: the designs", 3)
    anywhere, central = "shared memory, MPI's operations or messages", "central and distributed counters"
    page.table("002-table-1", ["", "communication", "synchronization", "readers and writers", "fairness", "data structures"],
               [["RCKMPI, published", "messages", "deferred", "yes", "FIFO", "-"],
                ["GBH, published", "shared memory", "immediate", "yes", "best effort", central],
                ["MCS-WP, published", "shared memory", "immediate", "yes", "writers are preferred", "distributed counters"],
                ["weft: mpi", *["that of the MPI"] * 2, "yes", "that of the MPI", "-"],
                ["weft: gbh, gbh_backoff", anywhere, "immediate", "yes", "best effort", central],
                ["weft: mcs_wp", anywhere, "immediate", "yes", "writers are preferred", "a queue and a stack for each target"],
                ["weft: rma_rw", anywhere, "immediate", "yes", "readers and writers take turns", "a counter and a queue for each group, a queue of groups"],
                ["weft: d_mcs", anywhere, "immediate", "writers only", "FIFO", "a queue for each target"]])
    page.text("Where the paper errs: in its section 4.2 an exclusive unlock of GBH sets the counter of the target to zero. That wipes out what a reader has added that is about to subtract it again, and the counter stays "
              "wrong for ever. weft subtracts; the other form is a mutant of the test rma.search, which finds it.")
    simulated(page, lines, extent)
    real(page, plot, extent)
