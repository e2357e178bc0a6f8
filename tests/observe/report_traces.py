# SPDX-License-Identifier: BSL-1.0
"""Makes traces in the form that weft writes (include/weft/observe/trace.hpp), event by event. Times are in microseconds."""
import json
import random

LAST = (1 << 12) - 1


class Maker:
    """Collects the events of a process."""

    def __init__(self, workers, process=7, dropped=0, origin=None, rank=None):
        """`origin`: when its times begin, in nanoseconds since 1970. `rank`: its number among 4."""
        self.process, self.dropped, self.events, self.waits = process, dropped, [], 0
        self.add(0, "M", "process_name", args={"name": "weft runtime" if rank is None else f"weft runtime, process {rank} of 4"})
        if rank is not None:
            self.add(0, "M", "process_sort_index", args={"sort_index": rank})
        if origin is not None:
            self.add(0, "M", "clock_origin", args={"unix_ns": origin})
        for w in range(workers + 1):
            name = f"worker {w}" if w < workers else "transfers"
            self.add(w, "M", "thread_name", args={"name": name})

    def add(self, worker, phase, name, **more):
        self.events.append({"ph": phase, "pid": self.process, "tid": worker, "name": name, **more})

    def slice(self, worker, name, begin, end, category="task"):
        self.add(worker, "X", name, cat=category, ts=begin, dur=round(end - begin, 3))

    def stolen(self, worker, name, begin, end, number):
        self.slice(worker, name, begin, end)
        self.add(worker, "f", "stolen", cat="arrow", bp="e", id=number << 12 | worker, ts=end)

    def forked(self, worker, at, number, thief):
        """Where the arrow to a stolen task begins."""
        self.add(worker, "s", "stolen", cat="arrow", bp="e", id=number << 12 | thief, ts=at)

    def wait(self, worker, to, cause, begin, end, category="wait", **more):
        self.waits += 1
        self.add(worker, "b", cause, cat=category, id=self.waits, ts=begin, **more)
        self.add(worker, "e", cause, cat=category, id=self.waits, ts=end)
        if category == "wait":
            self.add(worker, "s", "goes on", cat="arrow", bp="e", id=self.waits << 12 | LAST, ts=begin)
            self.add(to, "f", "goes on", cat="arrow", bp="e", id=self.waits << 12 | LAST, ts=end)

    def level(self, worker, at, ready, pending):
        self.add(worker, "C", "tasks", id=worker, ts=at, args={"ready": ready, "pending": pending})

    def text(self):
        lines = ",\n".join(json.dumps(e, separators=(",", ":")) for e in self.events)
        return f'{{"displayTimeUnit":"ns","traceEvents":[\n{lines}\n],"otherData":{{"dropped_records":{self.dropped}}}}}\n'

    def write(self, path):
        path.write_text(self.text())
        return path


def large(events, workers=8, seed=1):
    """A long run: nested tasks of many names, steals with arrows, waits, sleep, counters; about so many events."""
    chance = random.Random(seed)
    maker = Maker(workers)
    now, number = [0.0] * workers, 0
    while len(maker.events) < events:
        w = min(range(workers), key=now.__getitem__)
        at = now[w]
        if chance.random() < 0.3:
            end = at + chance.uniform(0.5, 9)
            maker.slice(w, "search", round(at, 3), round(end, 3), "idle")
            if chance.random() < 0.5:
                number += 1
                maker.slice(w, "steal", round(end - 0.4, 3), round(end, 3), "idle")
                maker.add(chance.randrange(workers), "s", "stolen", cat="arrow", bp="e", id=number << 12 | w, ts=round(at, 3))
                maker.add(w, "t", "stolen", cat="arrow", bp="e", id=number << 12 | w, ts=round(end, 3))
                last = end + chance.uniform(1, 20)
                maker.stolen(w, f"kind {chance.randrange(40)}", round(end + 0.1, 3), round(last, 3), number)
                end = last
            elif chance.random() < 0.3:
                maker.slice(w, "sleep", round(end, 3), round(end + 40, 3), "idle")
                end += 40
        else:
            begin, parts = at + 0.1, chance.randrange(12)
            inner = begin + 0.05
            for _ in range(parts):
                length = chance.expovariate(2)
                maker.slice(w, f"part {chance.randrange(40)}", round(inner, 3), round(inner + length, 3))
                inner += length + 0.02
            maker.slice(w, "outer", round(begin, 3), round(inner, 3))
            end = inner + 0.05
            if chance.random() < 0.1:
                rest = end + chance.uniform(1, 30)
                maker.level(w, round(inner, 3), 1, chance.randrange(60))
                to = chance.choice([w, chance.randrange(workers)])  # what was counted moves along
                rest = max(rest, now[to])
                maker.wait(w, to, chance.choice(["a task elsewhere", "a mutex"]), round(inner, 3), round(rest, 3))
                maker.slice(w, "search", round(inner + 0.01, 3), round(rest - 0.01, 3), "idle")
                maker.slice(to, "outer", round(rest + 0.01, 3), round(rest + 2, 3))
                end = rest + 2.01
                now[to] = end
            maker.level(w, round(end, 3), chance.randrange(5), chance.randrange(60))
        now[w] = end
    return maker
