# SPDX-License-Identifier: BSL-1.0
"""What the benchmarks of weft's core are to show: each target beside what was measured."""
import json
import re
import statistics


class Results:
    """Runs by kernel, problem, rival and number of workers; seconds, and the counters by their names."""

    def __init__(self):
        self.runs = {}
        self.workers = None  # how many "all workers" are
        self.failures = []
        self.machine = "unknown machine"

    def read(self, file):
        data = json.loads(file.read_text())
        self.machine = data["context"].get("machine", self.machine)
        repeated = {}
        for run in data["benchmarks"]:
            if run.get("run_type") == "aggregate":
                continue
            kernel, problem, rival, workers = run["run_name"].split("/")[:4]
            key = (kernel, problem, rival, 1 if workers == "1w" else 0)
            if run.get("error_occurred") or run.get("skipped"):
                message = run.get("error_message") or run.get("skip_message")
                self.failures.append(f"{'/'.join(run['run_name'].split('/')[:4])}: {message}")
                continue
            if workers != "1w":
                self.workers = int(workers[:-1])
            repeated.setdefault(key, []).append(run)
        for key, runs in repeated.items():
            values = {"seconds": [run["real_time"] / 1e3 for run in runs]}
            for name in ("ns_per_task", "noise_percent", "peak_MB", "paired_ratio"):
                if name in runs[0]:
                    values[name] = [run[name] for run in runs]
            self.runs[key] = values

    def each(self, kernel, problem, rival, one_worker=True, what="seconds"):
        """The values of all runs, in their order; None: there are none."""
        return self.runs.get((kernel, problem, rival, 1 if one_worker else 0), {}).get(what)

    def get(self, kernel, problem, rival, one_worker=True, what="seconds"):
        """Their median."""
        found = self.each(kernel, problem, rival, one_worker, what)
        return None if found is None else statistics.median(found)

    def noise(self):
        """The noisiest of weft's own medians, in percent of the machine; short runs say nothing in 10 ms ticks."""
        return max((statistics.median(v["noise_percent"]) for k, v in self.runs.items()
                    if k[2].startswith("weft") and statistics.median(v["seconds"]) > 0.2), default=0)


def divide(over, under):
    return None if over is None or not under else over / under


def divide_each(over, under):
    """The ratios of runs that were interleaved: the first over the first, and so on; of the medians if one has more."""
    if not over or not under:
        return None
    if len(over) != len(under):
        return [statistics.median(over) / statistics.median(under)]
    return [a / b for a, b in zip(over, under)]


class Table:
    def __init__(self):
        self.rows = []

    def add(self, what, target, value, met, form="{:.2f}"):
        """`value`: a number, or those of several runs, which are shown as their median, least and largest."""
        runs = value if isinstance(value, list) else [value]
        value = None if value is None else statistics.median(runs)
        shown = "not measured" if value is None else form.format(value)
        if len(runs) > 1:
            shown += f" ({form.format(min(runs))} to {form.format(max(runs))})"
        verdict = "-" if value is None else ("yes" if met(value) else "no")
        self.rows.append((what, target, shown, verdict))

    def at_most(self, what, limit, value, unit="", form="{:.2f}"):
        self.add(what, f"at most {limit}{unit}", value, lambda v: v <= limit, form + unit)

    def at_least(self, what, limit, value, form="{:.2f}"):
        self.add(what, f"at least {limit}", value, lambda v: v >= limit, form)

    def write(self):
        print("| what | target | measured | met? |")
        print("| --- | --- | --- | --- |")
        for row in self.rows:
            print("| " + " | ".join(row) + " |")


def graph_targets(t, r):
    graph = lambda problem, rival="weft", one=True, what="seconds": r.get("graph", problem, rival, one, what)
    runs = lambda problem, rival="weft", one=True: r.each("graph", problem, rival, one)
    for rival, words, limit in (("weft", "", 1.1), ("weft-deferred", ", inlining off", 1.1),
                                ("weft-uncapped", ", inlining off, all pending", 1.2)):
        for problem in ("independent", "chain", "wavefront", "random", "tiny-frames"):
            t.at_most(f"graph `{problem}`, empty bodies{words}, all workers / 1 worker", limit,
                      divide_each(runs(problem, rival, False), runs(problem, rival)))
    t.at_most("graph `wavefront`, empty bodies, all workers / oneTBB with counters written by hand", 1.8,
              divide_each(runs("wavefront", one=False), runs("wavefront", "tbb-counters", False)))
    t.at_most("the same, 1 worker / counters written by hand, no library", 1.8,
              divide_each(runs("wavefront"), runs("wavefront", "counters")))
    for body, limit in (("250ns", 60), ("500ns", 80), ("1us", 92), ("2us", 95), ("5us", 97)):
        share = divide_each(runs(f"wavefront-{body}", "serial"), runs(f"wavefront-{body}", one=False))
        t.at_least(f"graph `wavefront-{body}`, all workers: percent of the processors that bodies keep busy", limit,
                   share and [100 * v / r.workers for v in share], "{:.0f}")
    metg = r.each("graph", "metg", "weft", False)
    t.at_most("smallest task at which a 3-point stencil keeps all workers half efficient", 0.3,
              metg and [v * 1e6 for v in metg], " us")
    alone = runs("alternating")
    pure = [v for v in (graph("alternating"), graph("alternating", "weft-deferred", False)) if v is not None]
    t.at_most("tasks of 20 ns and of 20 us in one frame, all workers / the faster of never and always deferring", 1.1,
              alone and divide_each(runs("alternating", one=False), [min(pure)] * len(alone)))
    t.at_most("a thief's time per task, 10^6 tasks pending / 10^3 pending", 1.2,
              divide(graph("steal-1000000", one=False, what="ns_per_task"),
                     graph("steal-1000", one=False, what="ns_per_task")))
    t.at_most("tasks of 5 us, all workers, time per task, 10^6 pending / 10^3 pending", 1.2,
              divide(graph("pending-1000000", one=False, what="ns_per_task"),
                     graph("pending-1000", one=False, what="ns_per_task")))
    t.at_most("stencil of 10^4 tasks, all workers: replayed iteration / recorded one, per task", 0.5,
              divide(graph("stencil-10000", "weft-replaying", False), graph("stencil-10000", "weft-recording", False)))
    t.at_least("Cholesky n = 2048 in tiles of 128, 1 worker / all workers", 1.9,
               divide_each(runs("cholesky-2048"), runs("cholesky-2048", one=False)))
    for problem, tile in (("cholesky-2048", 128), ("cholesky-2048-64", 64)):
        for rival in ("tbb-flow", "libgomp"):
            for one, words in ((True, "1 worker"), (False, "all workers")):
                t.at_least(f"Cholesky n = 2048 in tiles of {tile}, {words}, {rival} / weft", 1,
                           divide_each(runs(problem, rival, one), runs(problem, one=one)))


def ordered_targets(t, r):
    """Ordered locks and Livermore kernel 23."""
    large, small = "2048^2,blocks=64^2", "2048^2,blocks=16^2"
    kernel = lambda problem, rival, one=True, what="seconds": r.get("lk23", problem, rival, one, what)
    t.at_most("kernel 23 tuned, 2048^2, 16 sweeps, 1 worker, per point and sweep (with AVX-512; 1.5 with AVX2)", 1.0,
              kernel(large, "weft-tuned", what="ns_per_task"), " ns")
    t.at_least("the plain loops / that", 4, divide(kernel(large, "serial"), kernel(large, "weft-tuned")))
    t.at_least("kernel 23 tuned, 1 worker / all workers", 1.7,
               divide(kernel(large, "weft-tuned"), kernel(large, "weft-tuned", False)))
    t.at_most("kernel 23 tuned, 1 worker / the same tiles in a loop, in turns in one process", 1.03,
              kernel(large, "weft-tuned-in-turns", what="paired_ratio"), form="{:.3f}")
    for problem, words, factor in ((large, "64^2", 1), (small, "16^2", 1.5)):
        t.at_least(f"kernel 23, blocks of {words}, all workers, OpenMP doacross / overlay", factor,
                   divide(kernel(problem, "libgomp", False), kernel(problem, "weft-orwl", False)))
    lock = lambda problem, rival, one=True, what="ns_per_task": r.get("orwl", problem, rival, one, what)
    t.at_most("uncontended iterative handle, acquire and next", 50, lock("uncontended", "weft-handles"), " ns")
    t.at_most("hand-off between two recurrent tasks, 1 worker", 150, lock("hand-off", "weft-overlay"), " ns")
    t.at_least("two threads with a condition variable / that", 10,
               divide(lock("hand-off", "two threads", False), lock("hand-off", "weft-overlay")))
    t.at_most("10^6 requests posted and checked for cycles", 1, lock("schedule", "weft-overlay", what="seconds"), " s")


def thread_targets(t, r):
    """Bodies that wait for each other."""
    get = lambda problem, rival="weft", one=True: r.get("threads", problem, rival, one, "ns_per_task")
    t.at_most("`mutex` that nobody else wants, lock and unlock / `std::mutex`", 1.2,
              divide(get("lock-unlock"), get("lock-unlock", "std")))
    t.at_most("`condition` set while nobody waits", 10, get("condition-set"), " ns")
    for one, words, limit in ((True, "1 worker", 60), (False, "all workers", 300)):
        t.at_most(f"two bodies that take turns through a `condition`, per turn, {words}", limit,
                  get("ping-pong", one=one), " ns")
        t.at_least(f"`channel` of 64 items, {words}, Boost.Fiber / weft", 1,
                   divide(get("channel-64", "boost-fiber", one), get("channel-64", one=one)))
    t.at_most("10^6 bodies that wait at one `latch`, time of each, 1 worker", 1000, get("crowd"), " ns")


def algorithm_targets(t, r):
    """Parallel algorithms against the best rival, and against the standard's serial ones."""
    get = lambda problem, rival="weft", one=False: r.get("algorithms", problem, rival, one)
    rivals = ("tbb", "std-par", "libgomp", "libomp")
    for problem, words in (("sort-10^7", "`sort`"), ("stable-sort-10^7", "`stable_sort`"),
                           ("stable-sort-pairs-10^7", "`stable_sort` of pairs"),
                           ("inclusive-scan-10^7", "`inclusive_scan`"),
                           ("transform-reduce-10^7", "`transform_reduce`")):
        best = min((v for v in (get(problem, rival) for rival in rivals) if v is not None), default=None)
        t.at_least(f"{words} of 10^7 elements, all workers, best rival / weft", 1, divide(best, get(problem)))
        t.at_most(f"the same, 1 worker, weft / serial", 1.05,
                  divide(get(problem, one=True), get(problem, "serial", True)))
    t.at_least("`pipeline` of 4 stages of 10 us, all workers, oneTBB / weft", 1,
               divide(get("pipeline-4x10us", "tbb"), get("pipeline-4x10us")))


def append_targets(t, r):
    """Serial-append streams and what is made of them."""
    get = lambda problem, rival="weft", one=False, what="seconds": r.get("append", problem, rival, one, what)
    minus = lambda a, b, scale=1: None if a is None or b is None else (a - b) * scale
    slot = lambda rival: get("slot-at-fork", rival, True, "ns_per_task")
    t.at_most("place in a stream for a deferred task, 1 worker", 40,
              minus(slot("weft-deferred"), slot("weft-deferred-no-stream")), " ns")
    t.at_most("the same for a task that runs inside fork", 40, minus(slot("weft"), slot("weft-no-stream")), " ns")
    t.at_most("appends of 10 KB to a plain file, 1 worker / buffered writes of the serial program", 1.03,
              divide(get("fib-plain", one=True), get("fib-plain", "serial", True)))
    t.at_least("segmented, all workers, bare threads with the same buffers / weft", 0.9,
               divide(get("fib-parts", "threads"), get("fib-parts")))
    t.at_least("the same, the paper's one write per append / weft", 1.8,
               divide(get("fib-parts", "paper"), get("fib-parts")))
    t.at_least("plain file, all workers, serial program with a buffer of 1 MiB / weft", 1,
               divide(get("fib-plain", "serial", True), get("fib-plain")))
    t.at_least("the same, serial program with one write per append / weft", 1,
               divide(get("fib-plain", "serial-unbuffered", True), get("fib-plain")))
    t.at_least("the same, the paper's layout and its export / weft", 2,
               divide(get("fib-plain", "paper"), get("fib-plain")))
    for one, words in ((True, "1 worker"), (False, "all workers")):
        t.at_least(f"a durable commit each 1 MiB, {words}, loop without weft / weft", 0.95,
                   divide(get("durable-1MiB", "serial", True), get("durable-1MiB", one=one)))
    t.at_most("commits each 1 MiB that need not be durable / none, 1 worker", 1.02,
              divide(get("durable-1MiB", "weft-log-only", True), get("durable-1MiB", "weft-no-commits", True)))
    t.at_most("10^6 segments: opened, all checksums of the index compared", 20,
              minus(get("open-10^6", one=True), 0, 1e3), " ms")
    t.at_most("10^6 segments: reading 8 bytes anywhere, beyond the same read of a plain file", 200,
              minus(get("seek-10^6", one=True, what="ns_per_task"), get("seek-10^6", "serial", True, "ns_per_task")),
              " ns")
    t.at_most("the same, finding the place alone", 200, get("seek-10^6", "weft-search-only", True, "ns_per_task"), " ns")
    t.at_least("pbz, all workers, bzip2 / pbz", 1.9, divide(get("pbz", "serial", True), get("pbz", "weft-pbz")))
    t.at_most("pbz / pbzip2, all workers", 1.03, divide(get("pbz", "weft-pbz"), get("pbz", "pbzip2")))
    t.at_most("pbz, 1 worker / bzip2", 1.03, divide(get("pbz", "weft-pbz", True), get("pbz", "serial", True)))
    t.at_least("skewed nested CSV, all workers, oneTBB's ordered pipeline / weft", 1.2,
               divide(get("csv-skewed", "tbb-pipeline"), get("csv-skewed")))
    t.at_least("uniform CSV, the same", 0.95, divide(get("csv-uniform", "tbb-pipeline"), get("csv-uniform")))
    t.add("peak resident memory while the first task is blocked and the others append", "under 96 MiB",
          minus(get("blocked", what="peak_MB"), 0, 1e6 / 2**20), lambda v: v < 96, "{:.1f} MiB")


def targets(r, memory, compile_seconds, site_bytes):
    t = Table()
    flow = lambda n, one=True, what="seconds": r.get("fib", f"data-flow-{n}", "weft", one, what)
    t.at_most("data-flow fib(38), 1 worker / serial `noinline` function of the same file", 4.5,
              divide(flow(38), r.get("fib", "data-flow-38", "serial-noinline")))
    t.at_least("data-flow fib(38), 1 worker / all workers", 1.9, divide(flow(38), flow(38, False)))
    t.at_most("data-flow fib(42), per task, 1 worker (limit of the planning machine)", 2.0,
              flow(42, True, "ns_per_task"), " ns")
    t.at_most("data-flow fib(42), per task, 2 workers (limit of the planning machine)", 1.05,
              flow(42, False, "ns_per_task"), " ns")
    for one, words in ((True, "1 worker"), (False, "2 workers")):
        t.at_least(f"data-flow fib(42), XKaapi / weft, {words}", 3,
                   divide(r.get("fib", "data-flow-42", "xkaapi", one), flow(42, one)))
        t.at_least(f"fib(42), oneTBB fork-join / weft data-flow, {words}", 10,
                   divide(r.get("fib", "data-flow-42", "tbb-fork-join", one), flow(42, one)))
    fib = lambda problem, rival="weft", one=True: r.each("fib", problem, rival, one)
    for one, words in ((True, "1 worker"), (False, "all workers")):
        t.at_least(f"data-flow fib(38), XKaapi / weft, {words}", 3.5,
                   divide_each(fib("data-flow-38", "xkaapi", one), fib("data-flow-38", one=one)))
    t.at_most("data-flow fib(38), inlining off, 1 worker / XKaapi", 0.8,
              divide_each(fib("data-flow-38", "weft-deferred"), fib("data-flow-38", "xkaapi")))
    t.at_most("the same, all workers / 1 worker", 1.1,
              divide_each(fib("data-flow-38", "weft-deferred", False), fib("data-flow-38", "weft-deferred")))
    for problem, words, limit in (("fork-join-ref-38", "result by reference", 1.15),
                                  ("fork-join-38", "result as `shared<R>`", 1.6)):
        for one, workers in ((True, "1 worker"), (False, "all workers")):
            t.at_most(f"fork-join fib(38), {words}, {workers}, weft / Lace", limit,
                      divide_each(fib(problem, one=one), fib(problem, "lace", one)))
    t.at_most("fork-join fib(38), per call, 1 worker", 2,
              r.get("fib", "fork-join-38", "weft", True, "ns_per_task"), " ns")

    queens = lambda problem, rival="weft", one=True: r.get("nqueens", problem, rival, one)
    t.at_least("N-queens 14 without cut-off, 1 worker / all workers", 1.9,
               divide_each(r.each("nqueens", "14-no-cut-off", "weft"), r.each("nqueens", "14-no-cut-off", "weft", False)))
    t.at_most("N-queens 14 without cut-off, 1 worker / serial", 2.5,
              divide(queens("14-no-cut-off"), queens("14-no-cut-off", "serial")))
    t.at_most("N-queens 14, cut-off at depth 5, 1 worker / serial", 1.05,
              divide(queens("14-cut-off-5"), queens("14-cut-off-5", "serial")))
    for tree, limit in (("T1", 1.9), ("T3", 1.85)):
        t.at_least(f"UTS {tree}, 1 worker / all workers", limit,
                   divide_each(r.each("uts", tree, "weft"), r.each("uts", tree, "weft", False)))
    t.at_least("64 tasks of 10 ms forked by one body, 1 worker / all workers", 1.95,
               divide(r.get("coarse", "64x10ms", "weft"), r.get("coarse", "64x10ms", "weft", False)))
    for shape, words in (("uniform-10^7", "of short iterations"), ("skewed-10^6", "whose iterations grow"),
                         ("sum-10^8", "that sums")):
        loop = lambda rival="weft", one=True: r.get("loop", shape, rival, one)
        t.at_most(f"loop {words}, 1 worker / the plain loop", 1.05, divide(loop(), loop("serial")))
        t.at_least(f"the same, all workers, oneTBB / weft", 0.95, divide(loop("tbb", False), loop(one=False)))
    t.at_least("a body of 100 ms with a steal function, 1 worker / all workers", 1.95,
               divide(r.get("loop", "body-100ms", "weft"), r.get("loop", "body-100ms", "weft", False)))
    t.add("peak resident memory of fib(42), 2 workers", "under 16 MB", memory, lambda v: v < 16, "{:.1f} MB")

    thread_targets(t, r)
    algorithm_targets(t, r)
    graph_targets(t, r)
    ordered_targets(t, r)
    append_targets(t, r)

    milliseconds = lambda v: None if v is None else v * 1e3
    t.add("processor time of an idle runtime in one second", "not measurable (below 1 ms)",
          milliseconds(r.get("wake", "idle", "weft", False)), lambda v: v < 1, "{:.3f} ms")
    for problem, words in (("from-fork", "fork in a task"), ("from-run", "run from outside")):
        woken = r.get("wake", problem, "weft", False)
        kernel = r.get("wake", problem, "condition-variable")
        beyond = None if woken is None or kernel is None else (woken - kernel) * 1e6
        t.at_most(f"{words} to a sleeping worker's start, beyond a condition variable's wake-up", 100, beyond,
                  " us", "{:.1f}")
    t.add("including `<weft/weft.hpp>`, -O0 (limit of the planning machine)", "under 1.0 s", compile_seconds,
          lambda v: v < 1, "{:.2f} s")
    t.add("code of a fork site with its task, -O2", "under 1024 bytes", site_bytes, lambda v: v < 1024,
          "{:.0f} bytes")
    return t
