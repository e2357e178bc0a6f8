# SPDX-License-Identifier: BSL-1.0
"""What a run suggests to change, in words. Each advice follows from numbers of the run by a rule that it states."""
import collections

import numpy

from .measure import GENERAL, LOCKS, SHORT
from .trace import shown
from .units import number, percent, time

THIEF = 2.0  # microseconds, in which a thief finds a task
Advice = collections.namedtuple("Advice", "text rule loss")  # loss: part of the workers' time, at most


def advise(run):
    """The advice for a run, the most important first."""
    found = []
    say = lambda text, rule, loss: found.append(Advice(text, rule, loss))
    if run.trace.dropped:
        say(f"{number(run.trace.dropped)} records were dropped, so the beginning is missing: trace again with a larger WEFT_TRACE_MB.",
            "any dropped record", 2.0)
    if not len(run.body_own):
        if run.left_out:
            say("All tasks that are left began before the workers are known: nothing can be said of them.", "no body that began later", 2.0)
        else:
            say("No task ran while the trace was made.", "no slice of a body", 2.0)
        return found
    share = lambda what: run.total.get(what, 0.0) / run.available if run.available else 0.0
    waits = {k[1]: share(k) for k in run.total if isinstance(k, tuple)}
    idle = share("search") + share("sleep") + sum(waits.values())
    tasks, workers = len(run.body_own), len(run.rows)
    types = run.types()

    short = run.body_own < SHORT
    if tasks >= 100 and short.mean() >= 0.5:
        counts = {name: int((own < SHORT).sum()) for name, own in types}
        name = max(counts, key=counts.get)
        say(f"{percent(short.mean())} of the tasks are shorter than 0.3 µs, most of them '{shown(name)}': a larger grain (more work in each "
            "task, or a plain call below some size) saves what each task costs, and what its record costs.",
            "at least 100 tasks, half of which have less than 0.3 µs of their own",
            share("unseen") + (float(run.body_own[short].sum()) / run.available if run.available else 0.0))
    stolen, steals = run.stolen()
    if len(stolen) >= 20 and numpy.median(stolen) < 2 * numpy.median(steals):
        say(f"Half of the {number(len(stolen))} stolen tasks took less than {time(numpy.median(stolen))}, with all that ran inside them, and a "
            f"steal takes {time(numpy.median(steals))}: thieves should find larger tasks. Fork the large ones first, or divide the work in halves.",
            "at least 20 stolen tasks, whose median length is less than twice that of the steals", share("steal") + share("search"))
    if workers > 1 and run.active.total:
        alone = run.alone.total / run.active.total
        if alone >= 0.2 and run.alone_in:
            name, of_name = max(run.alone_in.items(), key=lambda a: a[1])
            most = 1 / (alone + (1 - alone) / workers)
            own = dict(types).get(name, [of_name])
            what = ("divide that task, or fork what comes after it earlier" if 3 * own[-1] >= of_name or name in run.names_left_out else
                    f"its {number(len(own))} bodies ran one after the other: look at what orders them (a right to update where one to read or "
                    "to contribute would do)")
            say(f"For {percent(alone)} of the run only one worker was in a body, {percent(of_name / run.alone.total)} of this time in "
                f"'{shown(name)}': {what}. With such a share, {workers} workers are at most {most:.1f} times as fast as one.",
                "one worker alone for at least 20 % of the run, in a body that is at least a third of that or in many; the limit is Amdahl's", alone * (workers - 1) / workers)
        largest, name = max((own[-1], name) for name, own in types)
        if largest > run.active.total / workers and idle >= 0.1:
            say(f"One body of '{shown(name)}' took {time(largest)} without the tasks inside it, {percent(largest / run.active.total)} of the run: no "
                "schedule can balance that. Divide it.",
                "the longest body is longer than the run divided by the workers, and workers had nothing to do for 10 % of their time", idle)
    if workers > 1 and run.active.total and idle >= 0.2:
        pending = pending_while(run)
        few = f" On average {pending:.1f} tasks were pending." if pending is not None else ""
        cause = ("there are too few tasks: fork more, or earlier" if pending is None or pending < workers
                 else "tasks were there, but too short for a thief to come in time: make them larger" if numpy.median(run.body_own) < THIEF
                 else "tasks were there, but waited for others: look at their accesses (a right to update where one to read or to contribute would do)")
        say(f"Workers had nothing to do for {percent(idle)} of their time.{few} So {cause}.",
            "searches, sleep and waits without other work take at least 20 % of the workers' time; fewer pending tasks than workers are too few; "
            "bodies with a median below 2 µs are too short for thieves", idle * 0.9)
    for cause, part in waits.items():
        if cause not in GENERAL and part >= 0.1:
            lengths = run.causes[cause]
            remedy = ("hold it for less time, divide what it protects, or let tasks declare the access instead" if cause in LOCKS else
                      "look at what ends this wait and whether that can come earlier, and fork other tasks that the workers can execute meanwhile")
            say(f"For {percent(part)} of their time workers had nothing to do while a body that had begun there waited for '{shown(cause)}' "
                f"({number(len(lengths))} waits, {time(numpy.median(lengths))} in the median): {remedy}.",
                "such a wait takes at least 10 % of the workers' time", part)
    if run.available and run.idle_in_transfer / run.available >= 0.1:
        part = run.idle_in_transfer / run.available
        say(f"For {percent(part)} of their time workers had nothing to do while data went between memory and files: keep more transfers under way, begin "
            "them earlier, or compute more for each byte.", "idle during transfers for at least 10 % of the workers' time", part)
    if share("unseen") >= 0.2 and tasks >= 100:
        say(f"{percent(share('unseen'))} of the workers' time lies between the records: the scheduler, the records themselves, or other programs on the "
            "same processors. Larger tasks shrink the first two; fewer workers than processors show the third.",
            "at least 20 % of the time of a run is neither in bodies nor in searches, steals and sleep", share("unseen") * 0.9)
    unnamed = sum(len(own) for name, own in types if name == "task")
    if tasks >= 100 and unnamed >= tasks / 2:
        say(f"{percent(unnamed / tasks)} of the tasks have no name: fork({{.name = \"...\"}}, ...) tells them apart on this page.",
            "at least 100 tasks, half of which have no name", 0.0)
    outside = run.length - run.active.total
    if run.length and outside / run.length >= 0.5:
        say(f"For {percent(outside / run.length)} of the trace no run was under way: what the program does between its runs takes longer than they do.",
            "no body ran or waited for at least half of the trace", 0.0)
    found.sort(key=lambda a: -a.loss)
    if not any(a.loss > 0 for a in found):
        found.insert(0, Advice(f"Workers were in bodies for {percent(share('bodies'))} of their time: no rule finds anything that costs time.", "none of the rules of advice finds a loss", 0.0))
    return found


def pending_while(run):
    """The average of the pending tasks of all workers, as far as they were counted; None if they were not."""
    at, value, source = run.counters.get(("tasks", "pending"), ((), (), ()))
    if not len(at):
        return None
    total = 0.0
    by_source = {}
    for t, v, s in zip(at.tolist(), value.tolist(), source):
        by_source.setdefault(s, []).append((t, v))
    for levels in by_source.values():
        levels.sort()
        ends = [t for t, _ in levels[1:]] + [run.stop]
        total += sum(v * (run.active(e) - run.active(max(t, run.start))) for (t, v), e in zip(levels, ends) if e > run.start)
    return total / run.active.total if run.active.total else None
