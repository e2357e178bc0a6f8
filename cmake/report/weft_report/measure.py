# SPDX-License-Identifier: BSL-1.0
"""Computes from a trace what the page shows. Times are in microseconds.

The *own* time of a slice is its length without the slices inside it: without tasks that ran inside `fork`, and, for a
search, without the steal that ended it. A *body* is a task from its beginning to its end; the trace has a slice of it before
and behind each of its waits, and those are put together again. A run goes on (is *active*) while a body runs or waits.

A record is made when its slice ends. So where records of a worker were dropped, a slice that is left may lack those that ended
inside it: the worker is known from the end of its first slice on. Bodies that began before all workers are known are left out.
"""
import bisect
import heapq
import re

import numpy

from .trace import SEARCH, SLEEP, STEAL, TASK, shown

EXACT = 0.002  # the trace has nanoseconds
SHORT = 0.3  # of a body: what a task costs is not small beside it
GENERAL = ("a task elsewhere", "a ready task", "an event", "the end of a run")  # what data flow itself waits for
LOCKS = ("a mutex", "a shared mutex", "a semaphore", "the lock of an ORWL location")  # what somebody holds
MEETINGS = ("a condition", "a condition variable", "a latch", "a barrier", "a channel", "one of several channels")  # with other bodies


def union(begin, end):
    """The intervals, put together where they overlap or touch, as two arrays."""
    begin, end = numpy.asarray(begin, float), numpy.asarray(end, float)
    if not len(begin):
        return begin, end
    order = numpy.argsort(begin, kind="stable")
    begin, reach = begin[order], numpy.maximum.accumulate(end[order])
    first = numpy.flatnonzero(numpy.r_[True, begin[1:] > reach[:-1]])
    return begin[first], reach[numpy.r_[first[1:] - 1, len(reach) - 1]]


def common(first, second):
    """What lies in both of two lists of disjoint intervals."""
    if not len(first[0]) or not len(second[0]):
        return numpy.empty(0), numpy.empty(0)
    at = numpy.r_[first[0], first[1], second[0], second[1]]
    step = numpy.repeat([1, -1, 1, -1], [len(first[0])] * 2 + [len(second[0])] * 2)
    order = numpy.lexsort((step, at))
    at, depth = at[order], numpy.cumsum(step[order])
    both = numpy.flatnonzero(depth[:-1] == 2)
    return at[both], at[both + 1]


class Passed:
    """How much of some disjoint intervals, in order, lies before a moment."""

    def __init__(self, begin, end):
        self.total = float(numpy.sum(numpy.asarray(end) - begin))
        self.at = numpy.ravel(numpy.column_stack([begin, end]))
        self.sum = numpy.repeat(numpy.r_[0.0, numpy.cumsum(numpy.asarray(end) - begin)], 2)[1:-1]

    def __call__(self, moment):
        return numpy.interp(moment, self.at, self.sum) if len(self.at) else numpy.zeros_like(moment, dtype=float)


class Row:
    """The slices of one worker, in order, the outer before the inner ones."""

    def __init__(self, trace, row):
        chosen = numpy.flatnonzero(trace.row == row)
        # Of slices that look equal, the inner one ended first, and so stands first in the file.
        order = chosen[numpy.lexsort((-chosen, -trace.end[chosen], trace.begin[chosen]))]
        self.begin, self.end = trace.begin[order], trace.end[order]
        self.kind, self.name, self.row = trace.kind[order], trace.name[order], row
        self.parent = self.find_parents_()
        self.own = self.of(lambda t: t)
        outer = (self.kind == TASK) & (self.parent < 0)
        self.busy = union(self.begin[outer], self.end[outer])

    def find_parents_(self):
        parent, around = [], []
        ends = self.end.tolist()
        for i, (b, e) in enumerate(zip(self.begin.tolist(), ends)):
            while around and ends[around[-1]] <= b + EXACT:
                around.pop()
            parent.append(around[-1] if around else -1)
            around.append(i)
        return numpy.array(parent, int)

    def of(self, passed):
        """The part of each slice's own time that a clock counts which does not always go on."""
        length = passed(self.end) - passed(self.begin)
        inner = self.parent >= 0
        return length - numpy.bincount(self.parent[inner], weights=length[inner], minlength=len(length))


class Wait:
    def __init__(self, begin, end, row, to, cause, which=None):
        """`which`: the object that is waited for, as its name or address, if that is known."""
        self.begin, self.end, self.length, self.row, self.to, self.cause = begin, end, end - begin, row, to, cause
        self.which = cause if which is None else f"{cause} ({which})"
        self.before = self.after = None  # the slices of the body that waited: (row, place)


class Run:
    """All that is shown of a trace."""

    def __init__(self, trace):
        self.trace = trace
        self.rows = {r: Row(trace, r) for r in trace.workers}
        self.waits = [Wait(b, e, r, trace.goes_on.get(key, r), trace.names.all[cause], which)
                      for b, e, r, cause, key, _, which in trace.waits if r in self.rows]
        self.set_window_()
        self.join_bodies_()
        self.move_levels_()
        self.share_time_()
        self.find_alone_()

    # Bodies

    def join_bodies_(self):
        """Finds which slices are parts of one body: at a wait all bodies of a strand end, the innermost first, and
        behind it they begin at one time."""
        place = {}
        for r, row in self.rows.items():
            tasks = numpy.flatnonzero(row.kind == TASK)
            by_end = tasks[numpy.lexsort((-tasks, row.end[tasks]))]
            place[r] = (tasks.tolist(), row.begin[tasks].tolist(), by_end.tolist(), row.end[by_end].tolist())
        following, self.wait_behind = {}, {}
        led = set()
        for w in self.waits:
            if w.to not in self.rows:
                continue
            before, after = self.rows[w.row], self.rows[w.to]
            tasks, begins, _, _ = place[w.to]
            _, _, by_end, ends = place[w.row]
            k = bisect.bisect_right(ends, w.begin + EXACT) - 1
            i = bisect.bisect_left(begins, w.end - EXACT)
            pairs, first = [], begins[i] if i < len(begins) else None
            while i < len(begins) and begins[i] == first and k >= 0 and before.name[by_end[k]] == after.name[tasks[i]]:
                pairs.append(((w.row, by_end[k]), (w.to, tasks[i])))
                i, k = i + 1, k - 1
            for one, other in pairs:
                if one not in following and other not in led:
                    following[one] = other
                    self.wait_behind[one] = w
                    led.add(other)
                    w.before, w.after = one, other  # in the end the innermost, which has called what waits
        self.following = following
        names, own, parts, begun = [], [], [], []
        for r, row in self.rows.items():
            tasks = numpy.flatnonzero(row.kind == TASK)
            one = row.own[tasks]
            involved = [k for k, i in enumerate(tasks.tolist()) if (r, i) in following or (r, i) in led] if led else []
            keep = numpy.ones(len(tasks), bool)
            keep[involved] = False
            names.append(row.name[tasks[keep]]), own.append(one[keep]), parts.append(numpy.ones(keep.sum(), int))
            begun.append(row.begin[tasks[keep]])
        joined = []
        for r, row in self.rows.items():
            for head in [p for p in following if p[0] == r and p not in led]:
                total, count, at = 0.0, 0, head
                while at is not None:
                    total, count = total + self.rows[at[0]].own[at[1]], count + 1
                    at = following.get(at)
                joined.append((row.name[head[1]], total, count, row.begin[head[1]]))
        names.append(numpy.array([j[0] for j in joined], int))
        own.append(numpy.array([j[1] for j in joined], float))
        parts.append(numpy.array([j[2] for j in joined], int))
        begun.append(numpy.array([j[3] for j in joined], float))
        known = numpy.concatenate(begun) >= self.start
        self.left_out = int((~known).sum())
        names = numpy.concatenate(names)
        self.names_left_out = {self.trace.names.all[n] for n in names[~known].tolist()}
        self.body_name = names[known]
        self.body_own = numpy.maximum(numpy.concatenate(own), 0.0)[known]
        self.body_parts = numpy.concatenate(parts)[known]

    def name_of(self, place):
        return None if place is None else self.trace.names.all[self.rows[place[0]].name[place[1]]]

    # Time

    def set_window_(self):
        """From when to when all workers are known: everything, or what is left where records were dropped."""
        firsts = [row.begin[0] for row in self.rows.values() if len(row.begin)]
        lasts = [row.end.max() for row in self.rows.values() if len(row.end)] + [w.end for w in self.waits]
        lasts += [t[1] for t in self.trace.transfers] + [c[0].max() for c in self.trace.counters.values() if len(c[0])]
        known = [row.end.min() for r, row in self.rows.items() if len(row.end) and r in self.trace.lossy]
        self.start = max([min(firsts, default=0.0), *known])
        self.stop = max(lasts, default=self.start)
        self.length = max(self.stop - self.start, 0.0)
        window = (numpy.array([self.start]), numpy.array([self.stop]))
        clipped = lambda intervals: common(intervals, window) if self.length else (numpy.empty(0), numpy.empty(0))
        active = union(numpy.concatenate([row.busy[0] for row in self.rows.values()] + [[w.begin for w in self.waits]]),
                       numpy.concatenate([row.busy[1] for row in self.rows.values()] + [[w.end for w in self.waits]]))
        self.in_window = Passed(*(window if self.length else clipped(window)))
        self.active = Passed(*clipped(active))
        self.active_intervals = clipped(active)
        transfers = union([t[0] for t in self.trace.transfers], [t[1] for t in self.trace.transfers])
        self.transferring = Passed(*common(clipped(transfers), self.active_intervals))

    def move_levels_(self):
        """A strand that waits and goes on on another worker takes what was counted of its tasks along."""
        self.counters = dict(self.trace.counters)
        number = self.trace.rows.all
        moves = sorted((w.end, w.begin, number[w.row], number[w.to]) for w in self.waits if w.to != w.row)
        for name, (at, value, source) in self.trace.counters.items():
            if name[0] != "tasks" or not moves:
                continue
            all_ = sorted(zip(at.tolist(), value.tolist(), source), key=lambda l: l[0])
            counted, latest_of, k = len(all_), {}, 0
            for end, begin, here, there in moves:
                while k < counted and all_[k][0] <= end:
                    latest_of[all_[k][2]] = all_[k]
                    k += 1
                at_last, level, _ = latest_of.get(here, (numpy.inf, 0.0, here))
                if at_last <= begin + EXACT:  # nothing else was counted there meanwhile
                    for moved in ((end, level, there), (end, 0.0, here)):
                        latest_of[moved[2]] = moved
                        all_.append(moved)
            all_.sort(key=lambda l: (l[0], l[1]))  # where one begins, the other has ended
            self.counters[name] = tuple(numpy.array(column, float) for column in list(zip(*all_))[:2]) + ([s for _, _, s in all_],)

    def share_time_(self):
        """Where each worker's time went: {row: {what: time}}, which sum up to the window. `what` is "bodies", "steal",
        "search", "sleep", ("wait", cause), "outside" or "unseen"."""
        self.shares, self.idle_in_transfer = {}, 0.0
        self.causes = {}
        for w in self.waits:
            self.causes.setdefault(w.cause, []).append(w.length)
        of_row = {}
        for w in self.waits:
            of_row.setdefault(w.row, []).append(w)
        for r, row in self.rows.items():
            active = row.of(self.active)
            idle = (row.kind == SEARCH) | (row.kind == SLEEP)
            share = {"bodies": active[row.kind == TASK].sum(), "steal": active[row.kind == STEAL].sum(),
                     "search": active[row.kind == SEARCH].sum(), "sleep": active[row.kind == SLEEP].sum()}
            pieces = {}
            for b, e, cause in latest(of_row.get(r, ())):
                pieces.setdefault(cause, ([], []))
                pieces[cause][0].append(b), pieces[cause][1].append(e)
            for cause, (b, e) in pieces.items():
                waiting = row.of(Passed(*common((numpy.array(b), numpy.array(e)), self.active_intervals)))
                for kind, name in ((SEARCH, "search"), (SLEEP, "sleep")):
                    part = waiting[row.kind == kind].sum()
                    share[name] -= part
                    share["wait", cause] = share.get(("wait", cause), 0.0) + part
            share["outside"] = self.length - self.active.total
            share["unseen"] = self.length - sum(share.values())
            self.shares[r] = {k: max(float(v), 0.0) for k, v in share.items()}
            self.idle_in_transfer += float(row.of(self.transferring)[idle].sum())
        self.total = {}
        for share in self.shares.values():
            for k, v in share.items():
                self.total[k] = self.total.get(k, 0.0) + v
        self.available = self.active.total * len(self.rows)

    def busy_over_time(self, edges):
        """Between each two moments, how many workers were, on average, in bodies, in searches and steals, asleep."""
        sums = {"bodies": 0.0, "searches and steals": 0.0, "sleep": 0.0}
        moments = numpy.asarray(edges, float)
        for row in self.rows.values():
            for name, kinds in (("bodies", (TASK,)), ("searches and steals", (SEARCH, STEAL)), ("sleep", (SLEEP,))):
                mine = numpy.isin(row.kind, kinds)
                inside = (row.parent >= 0) & numpy.isin(row.kind[row.parent], kinds)
                sums[name] = sums[name] + (overlap(row.begin[mine], row.end[mine], moments)
                                           - overlap(row.begin[inside], row.end[inside], moments))
        return {name: numpy.clip(numpy.diff(s) / numpy.diff(moments), 0, None) for name, s in sums.items()}

    def find_alone_(self):
        """The time in which just one worker was in bodies, and in which tasks that was: {name: time}."""
        begin = numpy.concatenate([row.busy[0] for row in self.rows.values()] or [[]])
        end = numpy.concatenate([row.busy[1] for row in self.rows.values()] or [[]])
        at, step = numpy.r_[begin, end], numpy.r_[numpy.ones(len(begin), int), -numpy.ones(len(end), int)]
        order = numpy.lexsort((step, at))
        at, depth = at[order], numpy.cumsum(step[order])
        one = numpy.flatnonzero(depth[:-1] == 1)
        alone = union(at[one], at[one + 1])
        self.alone = Passed(*common(alone, self.active_intervals))
        self.alone_in = {}
        for row in self.rows.values():
            part = row.of(self.alone)
            mine = row.kind == TASK
            sums = numpy.bincount(row.name[mine], weights=part[mine], minlength=len(self.trace.names.all))
            for n in numpy.flatnonzero(sums > 0):
                self.alone_in[self.trace.names.all[n]] = self.alone_in.get(self.trace.names.all[n], 0.0) + float(sums[n])

    # Tasks

    def types(self):
        """(name, own times of its bodies in order), those with most time first."""
        order = numpy.lexsort((self.body_own, self.body_name))
        names, own = self.body_name[order], self.body_own[order]
        first = numpy.flatnonzero(numpy.r_[True, names[1:] != names[:-1]]) if len(names) else []
        found = [(self.trace.names.all[names[i]], own[i:j]) for i, j in zip(first, [*first[1:], len(names)])]
        return sorted(found, key=lambda t: (-t[1].sum(), t[0]))

    def stolen(self):
        """The lengths of stolen tasks with all that ran inside them, and those of the steals."""
        steals = numpy.concatenate([row.end[row.kind == STEAL] - row.begin[row.kind == STEAL] for row in self.rows.values()] or [[]])
        lengths, by_end = [], {}
        for r, row in self.rows.items():
            tasks = numpy.flatnonzero(row.kind == TASK)
            tasks = tasks[numpy.lexsort((-tasks, row.end[tasks]))]
            by_end[r] = row.end[tasks], row.begin[tasks]
        for r, at, _ in self.trace.stolen_ends:
            if r in by_end:
                ends, begins = by_end[r]
                k = int(numpy.searchsorted(ends, at + EXACT, "right")) - 1
                if k >= 0 and ends[k] >= at - EXACT:
                    lengths.append(at - begins[k])
        return numpy.array(lengths), steals

    def moved(self):
        """The bodies that were stolen, or went on on another worker than before, in the order of their ends: (name, (worker that forked it,
        when) or None, parts as [(worker, begin, end)], the waits between them)."""
        heads = {}  # of bodies that were stolen, and who forked them
        for r, row in self.rows.items():
            ends = {}
            for i in numpy.flatnonzero(row.kind == TASK).tolist():  # the outer before the inner ones: an arrow ends at the outermost
                ends.setdefault(round(1000 * float(row.end[i])), i)
            for _, at, key in (s for s in self.trace.stolen_ends if s[0] == r):
                i = next((ends[n] for n in (round(1000 * at) + d for d in (0, -1, 1, -2, 2)) if n in ends), None)
                if i is not None:
                    heads[r, i] = self.trace.forks.get(key)
        led = set(self.following.values())
        found = []
        for head in {*heads, *(p for p in self.following if p not in led)}:
            parts, waits, at = [], [], head
            while at is not None:
                row = self.rows[at[0]]
                parts.append((at[0], float(row.begin[at[1]]), float(row.end[at[1]])))
                if at in self.following:
                    waits.append(self.wait_behind[at])
                at = self.following.get(at)
            if head in heads or len({r for r, _, _ in parts}) > 1:
                found.append((self.name_of(head), heads.get(head), parts, waits))
        return sorted(found, key=lambda m: (m[2][-1][2], m[2][0]))

    # Iterations

    def turns(self):
        """The waiting and the computing time of tasks in their iterations, as {(number, name): [(waiting, computing)]},
        and what a task and an iteration are here, in words; (None, None) where the trace shows no iterations."""
        return self.turns_by_waits_() or self.turns_by_name_() or (None, None)

    def turns_by_waits_(self):
        """Bodies that wait for locks or meet others again and again: a turn is the part behind such a wait. Other waits (for a
        time, for a call that may block) lie within a turn."""
        wait_before = {w.after: w for w in self.waits if w.after is not None and w.cause in LOCKS + MEETINGS}
        led = set(self.following.values())
        found = []
        for head in sorted(p for p in self.following if p not in led):
            turns, at = [], head
            while at is not None:
                computing = float(self.rows[at[0]].own[at[1]])
                if self.rows[at[0]].begin[at[1]] < self.start:
                    pass
                elif at in wait_before:
                    turns.append((wait_before[at].length, computing))
                elif turns:
                    turns[-1] = (turns[-1][0], turns[-1][1] + computing)
                at = self.following.get(at)
            if len(turns) >= 3:
                found.append((float(self.rows[head[0]].begin[head[1]]), self.name_of(head), turns))
        found.sort(key=lambda f: f[0])
        if len(found) < 2:
            return None
        return ({(i, name): turns for i, (_, name, turns) in enumerate(found)},
                "A row is a body that waits for locks, or for others at barriers, channels and the like, again and again, in the "
                "order in which they began; iteration k is its part behind its k-th wait. What need not be waited for (a lock that "
                "is free) leaves no wait, so that two turns then count as one.")

    def turns_by_name_(self):
        """Numbered tasks that were forked again and again: names that differ only in digits, all with equally many bodies."""
        begin, length, name = [], [], []
        joined = set(self.following) | set(self.following.values())
        for r, row in self.rows.items():
            tasks = numpy.flatnonzero((row.kind == TASK) & (row.begin >= self.start))
            if joined:
                tasks = numpy.array([i for i in tasks.tolist() if (r, i) not in joined], int)
            begin.append(row.begin[tasks]), length.append((row.end - row.begin)[tasks]), name.append(row.name[tasks])
        begin, length, name = map(numpy.concatenate, (begin, length, name))
        groups = {}
        for n, count in enumerate(numpy.bincount(name, minlength=1).tolist()):
            stem, digits = re.subn(r"\d+", "#", self.trace.names.all[n]) if count >= 3 else ("", 0)
            if digits:
                groups.setdefault((stem, count), []).append(n)
        groups = [(len(of) * key[1], key, of) for key, of in groups.items() if len(of) >= 2]
        if not groups:
            return None
        _, (stem, count), chosen = max(groups)
        chosen.sort(key=lambda n: [int(d) for d in re.findall(r"\d+", self.trace.names.all[n])])
        order = numpy.lexsort((begin, name))
        first = numpy.searchsorted(name[order], chosen)
        found = {}
        for k, (n, i) in enumerate(zip(chosen, first)):
            of_name = order[i:i + count]
            b, c = begin[of_name], length[of_name]
            waiting = numpy.r_[0.0, numpy.maximum(b[1:] - (b + c)[:-1], 0.0)]
            found[k, self.trace.names.all[n]] = list(zip(waiting.tolist(), c.tolist()))
        return found, (f"A row is one of the {len(chosen)} names '{shown(stem)}'; iteration k is the k-th body of that name. "
                       "Waiting is the time since the end of the body before.")


def overlap(begin, end, moments, weight=1.0):
    """The sum of what each of some intervals has before each moment, times its weight."""
    weight = numpy.broadcast_to(weight, numpy.shape(begin))

    def passed(at):
        order = numpy.argsort(at)
        before = numpy.searchsorted(at[order], moments, "right")
        sums = [numpy.r_[0.0, numpy.cumsum(x)] for x in (weight[order], weight[order] * at[order])]
        return sums[0][before] * moments - sums[1][before]

    return passed(begin) - passed(end)


def latest(waits):
    """The times in which a worker has waits, with the cause of the one that began last: (begin, end, cause)."""
    begun, found, at = [], [], 0.0
    edges = sorted([(w.begin, 1, i) for i, w in enumerate(waits)] + [(w.end, 0, i) for i, w in enumerate(waits)])
    over = set()
    for moment, begins, i in edges:
        while begun and begun[0][1] in over:
            heapq.heappop(begun)
        if begun and moment > at:
            found.append((at, moment, waits[begun[0][1]].cause))
        at = moment
        if begins:
            heapq.heappush(begun, (-moment, i))
        else:
            over.add(i)
    return found
