# SPDX-License-Identifier: BSL-1.0
"""What GDB knows of weft: the command `info weft`, and printers for weft's types.

Load it with `source .../share/weft/gdb/weft-gdb.py`, for example in ~/.gdbinit. It reads memory and calls no function of the
program, so it works on a stopped process, and on a core file. It needs debug information (-g) of at least one source file
that includes weft (with weft::compiled: of that library, too); optimisation does no harm.

The words are those of runtime::describe(). What is read belongs to weft/sched, weft/task, weft/graph and weft/inspect; where
a member there gets another name, the tests inspect.gdb.* fail.
"""
import functools
import re
import struct

import gdb
import gdb.printing

NAMESPACE = r"weft::(?:v\d\w*::)?"
MOST_STRANDS = 100  # shown of a runtime, unless all are asked for,
MOST_FRAMES = 8  # and frames of a strand
MOST_NAMES = 4  # tasks of a strand: the outermost, and the innermost of them
MOST_CLOSURES = 100_000  # counted in a frame


# Values

def loaded(value):
    """The value in a std::atomic of any standard library: its first member with data, as deep as there are any."""
    while value.type.strip_typedefs().code == gdb.TYPE_CODE_STRUCT:
        value = value[next(f for f in value.type.strip_typedefs().fields() if hasattr(f, "bitpos"))]
    return value


def words(value, count):
    """The first words of an object."""
    return struct.unpack(f"={count}Q", gdb.selected_inferior().read_memory(int(value.address), 8 * count).tobytes())


def pointed(type, address):
    """The object of this type at an address."""
    return gdb.Value(address).cast(type.pointer()).dereference()


def elements(vector, type):
    """The objects to which a std::vector of std::unique_ptr points. Every standard library begins a vector with the pointers
    to its first element and behind the last one, and a std::unique_ptr is a pointer."""
    first, end = words(vector, 2)
    found = gdb.selected_inferior().read_memory(first, end - first).tobytes() if end > first else b""
    return [pointed(type, address) for address, in struct.iter_unpack("=Q", found)]


def enumerator(value):
    """The name of an enumerator without its scope."""
    return str(loaded(value)).split("::")[-1]


def text(pointer):
    return pointer.string(errors="replace") if int(pointer) != 0 else "task"


def short(type):
    """The name of a type as users write it: without the namespace that holds weft's version, and what `write` keeps of how
    it was named."""
    name = re.sub(NAMESPACE, "weft::", str(type.strip_typedefs().unqualified()))
    return re.sub(r"^(weft::write<.*), (false|true)>$", r"\1>", name).replace(" []", "[]")


def plural(count, word):
    plurals = {"spawned body": "spawned bodies"}
    return f"{count:,} " + (word if count == 1 else plurals.get(word, word + "s"))


# What there is

class Library:
    """One weft in the program: its modules may contain several, of different versions or compiled in different ways."""

    def __init__(self, prefix):
        self.prefix = prefix  # "weft::v0_1_0_checked::"
        self.types = {}
        self.kinds = {}  # of tasks: how to find the name of one
        closure = self.type("sched::closure")
        self.offset = {f.name: f.bitpos // 8 for f in closure.fields() if hasattr(f, "bitpos")}
        self.size = closure.sizeof
        self.outside = {}  # addresses of descriptors: what ends their closures, which nobody runs; None: a worker
        self.states = {f.enumval: f.name.split("::")[-1] for f in self.type("sched::closure_state").fields()}

    def type(self, name):
        if name not in self.types:
            self.types[name] = gdb.lookup_type(self.prefix + name)
        return self.types[name]

    def version(self):
        match = re.match(r"weft::v(\d+)_(\d+)_(\d+)(\w*)::", self.prefix)
        if match is None:
            return "weft"
        return "weft " + ".".join(match.group(1, 2, 3)) + match[4].replace("_", ", ")

    def name(self, closure):
        """The name of a task: what descriptor::options says, which cannot be called here."""
        what = int(closure["what"])
        if what not in self.kinds:
            self.kinds[what] = self.kind_(closure["what"].dereference())
        return self.kinds[what](closure)

    def ended_by(self, what):
        """What will end a closure that nobody runs: None, "event" or "spawned body". `what`: address of its descriptor."""
        if what not in self.outside:
            named = gdb.execute(f"info symbol {what}", to_string=True)
            runs = int(pointed(self.type("sched::descriptor"), what)["run"]) != 0
            self.outside[what] = None if runs else "spawned body" if "spawn_call::place" in named else "event"
        return self.outside[what]

    def kind_(self, what):
        while int(what["untraced"]) != 0:
            what = what["untraced"].dereference()
        function = gdb.execute(f"info symbol {int(what['options'])}", to_string=True)

        def seen_as(type, closure):
            return pointed(type, int(closure.address))

        if "options_of_" in function:  # of flow::task, mangled where GDB does not understand the name
            type = self.task_type_(int(what["run"]))
            if type is None:
                return lambda c: "?"
            options = [f.type.strip_typedefs().name or "" for f in type.fields() if f.name == "options_"]
            if not any(name.endswith("::task_options") for name in options):  # forked without
                return lambda c: "task"
            return lambda c: text(seen_as(type, c)["options_"]["name"])
        if "stolen_part::" in function:
            return lambda c: self.name(seen_as(self.type("sched::stolen_part"), c)["task"].referenced_value())
        if "helper_team::" in function:
            type = self.type("sched::helper_team::helper_task")
            return lambda c: text(seen_as(type, c)["of"].referenced_value()["options_"]["name"])
        if "parts_join::" in function:
            return lambda c: "parts that thieves have taken"
        if "fence::" in function:
            return lambda c: "fence"
        return lambda c: "task"

    def task_type_(self, run):
        """The class of a task by its run function, whose variable `self` has the type. A name is not enough: two lambdas may
        have the same one."""
        block, function = gdb.block_for_pc(run), None
        while block is not None and not block.is_static:
            if block.function is not None:
                function = block  # the outermost: others were inlined into it
            block = block.superblock
        if function is None:
            return None
        for symbol in function:
            if symbol.name == "self":
                return symbol.type.strip_typedefs().target()
        try:
            return gdb.lookup_type(function.function.name.rpartition("::run_")[0])
        except gdb.error:
            return None


class Runtime:
    """A runtime that lives."""

    def __init__(self, library, registered):
        self.library = library
        self.number = int(registered["number_"])
        self.engine = registered["engine_"].referenced_value()
        self.workers = elements(self.engine["workers"], library.type("sched::worker"))

    def strands(self):
        """The addresses of all strands, in the order of their numbers."""
        at_once = 16  # engine::strands_at_once, of which optimisers leave nothing
        type = self.library.type("sched::strand")
        blocks = [int(block.address) for block in elements(self.engine["registry_"], type)]
        return [blocks[i // at_once] + i % at_once * type.sizeof for i in range(int(self.engine["made_"]))]

    @functools.cached_property
    def views(self):
        ready, type = self.ready_(), self.library.type("sched::strand")
        return [View(self, i, pointed(type, address), address in ready) for i, address in enumerate(self.strands())]

    def ready_(self):
        """The addresses of strands that can begin or go on, and wait for a worker."""
        found = set()

        def add(queue):
            level = queue["first_"]
            while int(level) != 0:
                at = level
                while int(at) != 0 and int(at) not in found:
                    found.add(int(at))
                    at = at["next"]
                level = level["lower"]

        add(self.engine["submitted"])
        share = self.engine["shares_"]
        while int(share) != 0:
            add(share["waiting_"])
            share = share["next_of_engine"]
        return found

    def counters(self):
        """What has happened since the workers were started: pairs of a name and a number."""
        names = [f.name.split("::")[-1] for f in self.library.type("observe::worker_counters::event").fields()]
        sums = dict.fromkeys(names[:-1], 0)
        for worker in self.workers:
            for i, name in enumerate(sums):
                sums[name] += int(loaded(worker["counters_"]["of"][i]))
        return [(name, number) for name, number in sums.items() if number != 0]


class View:
    """What is to be seen of a strand (strand_view.hpp)."""

    def __init__(self, runtime, number, strand, ready):
        self.home, self.number, self.strand, self.address = runtime, number, strand, int(strand.address)
        self.names = []
        self.root = self.victim = self.source = self.run = self.task = self.holder = self.happens = self.large = 0
        self.ended = self.external = False
        self.waits = self.awaited = None
        try:
            self.look_(ready)
        except gdb.error as refused:  # it may have been stopped between two changes, or the program has destroyed it
            self.state, self.refused = "unseen", str(refused)

    def look_(self, ready):
        library, strand = self.home.library, self.strand
        self.state = enumerator(strand["status"])
        if self.state == "waiting_alone":  # the same, but for who may come in
            self.state = "waiting"
        if self.state == "waiting" and not strand["started"]:  # a thief outside has given it back
            self.state = "submitted"
        if self.state == "idle" and ready:
            self.state = "submitted"
        if self.state == "idle":
            return
        root = loaded(strand["root"]["current"])
        self.root, self.victim, self.source = int(root), int(strand["victim"]), int(strand["source_graph"])
        self.run = int(loaded(strand["run"]))
        if self.root != 0:
            self.names.append(library.name(root.dereference()))
        awaits = strand["awaits"]
        end = int(strand["top"]) if self.state == "waiting" and int(awaits["happens"]) == 0 else 0
        for frame in self.frames():
            current = loaded(frame["current"])
            if int(frame.address) == end:  # its place there is not its own
                break
            if int(current) != 0:
                self.names.append(library.name(current.dereference()))
        if self.state == "waiting":
            self.look_at_reason_(awaits)

    def look_at_reason_(self, awaits):
        self.task, self.happens, self.large = int(awaits["task"]), int(awaits["happens"]), int(awaits["large"])
        if self.task != 0:
            closure = awaits["task"].dereference()
            self.external = int(closure["what"]["run"]) == 0
            self.awaited = self.home.library.name(closure)
            self.ended = enumerator(closure["state"]) != "awaited"
        elif self.happens != 0:
            signal = awaits["happens"].dereference()
            self.waits = text(signal["what"]) if int(signal["what"]) != 0 else None
            self.ended = int(loaded(signal["state"])) == 1
            if int(signal["holder"]) != 0:
                self.holder = int(loaded(signal["holder"].dereference()))
            if int(self.strand["inline_name"]) != 0:
                self.names.append(text(self.strand["inline_name"]))
        else:
            graph = awaits["large"].dereference()
            self.unended = int(graph["unended_"])
            self.ended = int(graph["waiter"]) != self.address

    def frames(self):
        """The frames of the strand, the outermost first."""
        frame, seen = loaded(self.strand["root"]["child"]), set()
        while int(frame) != 0 and int(frame) not in seen:  # a process that is stopped somewhere may be between two of them
            seen.add(int(frame))
            yield frame.dereference()
            frame = loaded(frame["child"])

    def waits_for(self, other):
        if self.state != "waiting" or self.ended or self.external or other.state in ("idle", "unseen"):
            return False
        if self.holder != 0:
            return other.address == self.holder
        if self.happens != 0:
            finished = self.home.library.type("sched::run_state")["finished"].bitpos // 8
            return other.run != 0 and other.run + finished == self.happens and other.victim == 0
        if self.large != 0:
            return other.victim == self.address and other.source in (0, self.large)
        return other.victim == self.address and other.source == 0 and other.root == self.task


def libraries():
    """All of weft that is in the program, and the first of its runtimes, which is the value of registered_engine::first_."""
    found = gdb.execute("info variables -q registered_engine::first_$", to_string=True)
    heads = {}
    for prefix in sorted(set(re.findall(rf"({NAMESPACE})sched::registered_engine::first_", found))):
        name = prefix + "sched::registered_engine::first_"
        for file in gdb.objfiles():
            symbol = file.lookup_global_symbol(name) or file.lookup_static_symbol(name)
            if symbol is None:
                continue
            first = symbol.value()
            # Modules that share it have one place for it, those that do not have one each.
            kept = file.__dict__.setdefault("weft_libraries", {})  # as long as GDB knows this file
            if prefix not in kept:
                kept[prefix] = Library(prefix)
            heads[int(first.address)] = (kept[prefix], first)
    return list(heads.values())


def runtimes():
    found = []
    for library, first in libraries():
        seen = set()
        while int(first) != 0 and int(first) not in seen:
            seen.add(int(first))
            found.append(Runtime(library, first.dereference()))
            first = first["next_"]
    return sorted(found, key=lambda r: (r.library.prefix, r.number))


# The command

class Describer:
    """The runtimes in words (description.hpp), with the frames of each strand."""

    def __init__(self, all_runtimes, everything):
        self.runtimes = all_runtimes
        self.views = [v for r in all_runtimes for v in r.views if v.state != "idle"]
        self.everything = everything
        self.threads = {}
        for thread in gdb.selected_inferior().threads():
            try:
                self.threads[struct.unpack_from("=Q", thread.handle())[0]] = thread.num
            except (gdb.error, RuntimeError, struct.error):  # GDB has no library for threads here
                pass

    def describe(self, runtime):
        self.here = runtime
        yield f"runtime {runtime.number} with {plural(len(runtime.workers), 'worker')}, {runtime.library.version()}"
        for i, worker in enumerate(runtime.workers):
            yield from self.worker_(i, worker)
        others = [v for v in self.views if v.home is runtime and v.state != "running"]
        shown = others if self.everything else others[:MOST_STRANDS]
        for view in shown:
            yield from self.strand_(view)
        if len(others) > len(shown):
            yield f"  and {plural(len(others) - len(shown), 'more strand')} (info weft all)"
        yield from self.cycle_()
        if any("?" in v.names or v.awaited == "?" for v in self.views if v.home is runtime):
            yield "  ?: the file that forks the task was compiled without debug information (-g)"
        counters = runtime.counters()
        if counters:
            yield "  counters: " + ", ".join(f"{name} {number:,}" for name, number in counters)

    def worker_(self, i, worker):
        executed = int(loaded(worker["running_"]))
        thread = self.threads.get(words(worker["thread_"], 1)[0])
        on = f", thread {thread}" if thread is not None else ""
        for view in self.views:
            if view.address == executed and view.state == "running":
                yield f"  worker {i} runs {self.names_(view)} (strand {view.number + 1}){on}"
                yield from self.frames_(view)
                return
        asleep = bool(loaded(worker["asleep_"]))
        yield f"  worker {i} " + ("goes from one strand to another" if executed else "sleeps" if asleep else "searches") + on

    def strand_(self, view):
        if view.state == "unseen":
            yield f"  strand {view.number + 1} cannot be looked at: {view.refused}"
            return
        line = f"  strand {view.number + 1}" + (" is to begin " if view.state == "submitted" else " in ") + self.names_(view)
        if view.state == "waiting":
            line += " waits for " + self.reason_(view)
            if view.ended:
                line += "; that has happened, and it is about to go on"
        yield line
        yield from self.frames_(view)

    def reason_(self, view):
        if view.waits is not None:
            return view.waits + (self.executors_(view) if view.holder else "")
        if view.happens != 0:
            root = next((w for w in self.views if view.waits_for(w)), None)
            if root is None:
                return "a run of a runtime, which begins or ends just now"
            home = "this runtime" if root.home is self.here else f"runtime {root.home.number}"
            return f"a run of {home}" + self.executors_(view)
        if view.large != 0:
            return f"a task that is ready, of {view.unended} unfinished ones that it has forked" + self.executors_(view)
        if view.external:
            innermost = view.names[-1] if view.names else "task"
            return f"an event outside the runtime, by which '{innermost}' is held open"
        return f"'{view.awaited}'" + self.executors_(view)

    def executors_(self, view):
        """Who is at what the strand waits for."""
        most = 8
        found = [self.place_(w) for w in self.views if view.waits_for(w)]
        more = f", and {len(found) - most} more" if len(found) > most else ""
        return (": " if found else "") + ", ".join(found[:most]) + more

    def place_(self, view):
        name = self.strand_name_(view)
        if view.state == "waiting":
            return name + " waits"
        if view.state == "submitted":
            return name + " is to begin"
        for i, worker in enumerate(view.home.workers):
            if int(loaded(worker["running_"])) == view.address:
                return f"{name} on worker {i}"
        return name + " runs"

    def strand_name_(self, view):
        return f"strand {view.number + 1}" + ("" if view.home is self.here else f" of runtime {view.home.number}")

    @staticmethod
    def names_(view):
        if not view.names:
            return "no task"
        names = [f"'{name}'" for name in view.names]
        if len(names) > MOST_NAMES:
            names[1:1 - MOST_NAMES] = ["..."]
        return " > ".join(names)

    def frames_(self, view):
        """How many tasks of its bodies have not ended."""
        lines = []
        graphs, graph = {}, loaded(view.strand["graphs"])
        while int(graph) != 0 and int(graph) not in graphs.values():
            graphs[int(graph["home"])] = graph
            graph = loaded(graph["outer"])
        for frame in view.frames():
            graph = graphs.get(int(frame.address))
            line = self.frame_(view, frame) if graph is None else self.large_frame_(view, frame, graph.dereference())
            if line is not None:
                lines.append(line)
        hidden = 0 if self.everything else max(0, len(lines) - MOST_FRAMES)
        if hidden:
            yield f"    {plural(hidden, 'outer frame')} (info weft all)"
        yield from lines[hidden:]

    @staticmethod
    def owner_(view, frame):
        current = loaded(frame["parent"]["current"])
        return view.home.library.name(current.dereference()) if int(current) != 0 else "task"

    def frame_(self, view, frame):
        current, first = int(loaded(frame["current"])), int(loaded(frame["first"]))
        waiting = failed = 0
        taken = dict.fromkeys((None, "spawned body", "event"), 0)
        count = -1
        for count, (address, state, what) in enumerate(closures(view.home.library, current or first)):
            if state == "created":
                waiting += address != current
            elif state == "failed":
                failed += 1
            elif state != "done":
                taken[view.home.library.ended_by(what)] += 1
        parts = [f"{plural(waiting, 'task')} not begun"] if waiting else []
        parts += [f"{taken.pop(None):,} executed elsewhere"] if taken[None] else []
        parts += [plural(number, name) for name, number in taken.items() if number and name]
        parts += [plural(failed, "exception")] if failed else []
        if count + 1 == MOST_CLOSURES:
            parts.append("maybe more")
        return f"    frame of '{self.owner_(view, frame)}': " + ", ".join(parts) if parts else None

    def large_frame_(self, view, frame, graph):
        cursor = int(loaded(graph["cursor_"].dereference())) if int(graph["cursor_"]) != 0 else 0
        unvisited = sum(1 for _ in closures(view.home.library, cursor))
        ready = int(graph["ready_"]["size_"]) + int(graph["local_"]["size_"])
        more = f", {unvisited:,} not looked at yet" if unvisited else ""
        return (f"    large frame of '{self.owner_(view, frame)}': {plural(int(graph['unended_']), 'unfinished task')} in its graph, "
                f"{ready:,} of them ready{more}")

    def cycle_(self):
        """A cycle of strands that wait for each other: they will do so for ever."""
        left = set()
        for start in self.views:
            if start.home is not self.here or start.address in left:
                continue
            way, choices = [start], [iter(self.views)]
            while way:
                after = next((w for w in choices[-1] if w.address not in left and way[-1].waits_for(w)), None)
                if after is None:
                    left.add(way.pop().address)
                    choices.pop()
                elif after in way:
                    named = [self.strand_name_(v) + (f" in '{v.names[-1]}'" if v.names else "")
                             for v in way[:way.index(after) - 1 if way.index(after) else None:-1]]
                    yield "  cycle: " + ", ".join(f"{a} waits for {b}" for a, b in zip(named, named[-1:] + named[:-1]))
                    return
                else:
                    way.append(after)
                    choices.append(iter(self.views))


def closures(library, address):
    """The closures of a frame from one on: address, state, and descriptor of each."""
    memory, offset = gdb.selected_inferior(), library.offset
    for _ in range(MOST_CLOSURES):
        if address == 0:
            return
        record = memory.read_memory(address, library.size).tobytes()
        state = library.states.get(record[offset["state"]], "done")
        yield address, state, struct.unpack_from("=Q", record, offset["what"])[0]
        address, = struct.unpack_from("=Q", record, offset["next"])


class InfoWeft(gdb.Command):
    """What the runtimes of weft do: workers, strands that wait and for what, frames with tasks that have not ended.
Usage: info weft [all]
With `all`, however many strands and frames there are."""

    def __init__(self):
        super().__init__("info weft", gdb.COMMAND_STATUS)

    def invoke(self, argument, from_tty):
        if argument not in ("", "all"):
            raise gdb.GdbError("usage: info weft [all]")
        if not gdb.selected_inferior().threads():
            raise gdb.GdbError("There is no process. Start the program, attach to it, or load a core file.")
        try:
            found = runtimes()
        except gdb.MemoryError as refused:
            raise gdb.GdbError(f"The memory of weft cannot be read: {refused}")
        except (gdb.error, StopIteration) as missing:  # of an incomplete type, say
            raise gdb.GdbError("There is too little debug information of weft: compile all that includes it, also "
                               f"weft::compiled, with -g. ({missing})")
        if not found:
            print(self.why_nothing_())
        describer = Describer(found, argument == "all")
        for runtime in found:
            try:
                for line in describer.describe(runtime):
                    print(line)
            except gdb.MemoryError as refused:
                print(f"  The rest cannot be read: {refused}")

    @staticmethod
    def why_nothing_():
        if libraries():
            return "The program has no runtime of weft now."
        # The symbol has a fixed name in all programs that include weft/weft.hpp.
        if re.search(r"^0x\w+ +weft_dump_living$", gdb.execute("info variables weft_dump_living", to_string=True), re.MULTILINE):
            return "The program uses weft, but there is no debug information of it: compile with -g."
        return "There is no weft in this program, or it was stripped of its symbols."


# Printers

class SharedPrinter:
    """weft::shared, also the result of a task."""

    def __init__(self, value):
        self.value = value

    def state_(self):
        """Why there is no value; empty if there is one."""
        if enumerator(self.value["origin_"]) == "none":
            return "no value yet"
        name = str(self.value.type.strip_typedefs().unqualified())
        prefix = re.match(NAMESPACE, name)[0]
        pointer, element = int(self.value["value_"]), self.value["value_"].type.target()
        try:
            # A type with a destructor has a record in front of the value; other results have their mark behind it.
            gdb.lookup_type(prefix + "flow::tracked" + name[name.index("<"):])
            note = gdb.lookup_type(prefix + "sched::cleanup")
            offset = -(-note.sizeof // element.alignof) * element.alignof
            mark = pointed(note, pointer - offset)["state"]
        except gdb.error:
            if enumerator(self.value["home_"]) != "result":
                return ""
            mark = pointed(gdb.lookup_type(prefix + "sched::presence"), pointer + element.sizeof)
        return {"absent": "no value yet", "lost": "its task has failed or was dropped"}.get(enumerator(mark), "")

    def to_string(self):
        state = self.state_()
        return short(self.value.type) + (f", {state}" if state else "")

    def children(self):
        if not self.state_():
            yield "value", self.value["value_"].dereference()


class RightPrinter:
    """A right on an object, or borrowed memory."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        return short(self.value.type)

    def children(self):
        yield "value", self.value["value_"].dereference()


class ArrayPrinter:
    """A shared array, a part of one, or a right on a part."""

    def __init__(self, value):
        self.value = value
        self.part = value["part_"] if any(f.name == "part_" for f in all_fields(value.type)) else value

    def to_string(self):
        return f"{short(self.value.type)} of {plural(int(self.part['size_']), 'element')}"

    def children(self):
        for i in range(int(self.part["size_"])):
            yield f"[{i}]", self.part["data_"][i]

    def display_hint(self):
        return "array"


class ConditionPrinter:
    """A condition with its value."""

    def __init__(self, value):
        self.value = value

    def to_string(self):
        return short(self.value.type) + waiting_at(self.value["waiters_"])

    def children(self):
        yield "value", self.value["value_"]


class ChannelPrinter:
    """A channel with its items, as GDB's printers for the standard library show them."""

    def __init__(self, value):
        self.value, self.state = value, value["state_"]

    def to_string(self):
        closed = ", closed" if self.state["closed"] else ""
        return f"{short(self.value.type)} for {plural(int(self.state['capacity']), 'item')}{closed}" + waiting_at(self.state["waiters"])

    def children(self):
        yield "items", self.state["items"]


class SentencePrinter:
    """What fits into one line."""

    def __init__(self, value, sentence):
        self.value, self.sentence = value, sentence

    def to_string(self):
        return f"{short(self.value.type)}, {self.sentence(self.value)}"


class RuntimePrinter:
    """weft::runtime, with its counters."""

    def __init__(self, value):
        parts = value["state_"]["parts_"]
        engine = int(parts["home"].address)
        self.runtime = next((r for r in runtimes() if int(r.engine.address) == engine), None)

    def to_string(self):
        if self.runtime is None:
            return "weft::runtime, not alive"
        return f"weft::runtime, number {self.runtime.number}, with {plural(len(self.runtime.workers), 'worker')}"

    def children(self):
        return iter(self.runtime.counters() if self.runtime is not None else [])


def all_fields(type):
    for field in type.strip_typedefs().fields():
        yield field
        if field.is_base_class:
            yield from all_fields(field.type)


def strand_name(pointer):
    for runtime in runtimes():
        strands = runtime.strands()
        if int(pointer) in strands:
            return f"strand {strands.index(int(pointer)) + 1} of runtime {runtime.number}"
    return "a kernel thread outside tasks"


def waiting_at(list):
    """How many wait at a mutex or the like, as part of a sentence."""
    count, at = 0, list["first_"]
    while int(at) != 0 and count < MOST_CLOSURES:
        count, at = count + 1, at["behind"]
    return f", {count:,} waiting" if count else ""


def mutex_sentence(value):
    if int(loaded(value["word_"])) == 0:
        return "free"
    return f"locked by {strand_name(loaded(value['holder_']))}" + waiting_at(value["waiters_"])


def shared_mutex_sentence(value):
    inside = value["waiters_"]
    if inside["writer"]:
        return f"locked for writing by {strand_name(loaded(inside['who']['who_']))}" + waiting_at(inside)
    readers = int(inside["readers"])
    return f"locked for reading by {readers:,}" + waiting_at(inside) if readers else "free"


def condition_variable_sentence(value):
    return waiting_at(value["waiters_"]).removeprefix(", ") or "nobody waiting"


def completion_sentence(value):
    if int(value["closure_"]) == 0:
        return "completed"
    return f"of a task in {strand_name(value['strand_'])}, not completed"


def closure_sentence(value):
    prefix = re.match(NAMESPACE, str(value.type.strip_typedefs().unqualified()))[0]
    library = next(library for library, _ in libraries() if library.prefix == prefix)
    return f"'{library.name(value)}', {enumerator(value['state'])}"


def strand_sentence(value):
    return f"{strand_name(value.address)}, {enumerator(value['status'])}"


def sentence(of):
    return lambda value: SentencePrinter(value, of)


def printers():
    collection = gdb.printing.RegexpCollectionPrettyPrinter("weft")

    def add(name, pattern, printer):
        collection.add_printer(name, f"^{NAMESPACE}{pattern}$", printer)

    add("slice", r"(shared_array|slice)<.*>", ArrayPrinter)
    add("array_right", r"(weak_)?(read|write|update)<.*\[\](, \w+)?>", ArrayPrinter)
    add("shared", r"shared<.*>", SharedPrinter)
    add("right", r"(borrowed|(weak_)?(read|write|update|commute|reduce))<.*>", RightPrinter)
    add("runtime", "runtime", RuntimePrinter)
    add("interval", "interval<.*>", sentence(lambda v: f"[{loaded(v['front_'])}, {loaded(v['back_'])})"))
    add("completion", "completion", sentence(completion_sentence))
    add("mutex", "mutex", sentence(mutex_sentence))
    add("shared_mutex", "shared_mutex", sentence(shared_mutex_sentence))
    add("condition", "condition<.*>", ConditionPrinter)
    add("condition_variable", "condition_variable", sentence(condition_variable_sentence))
    add("channel", "channel<.*>", ChannelPrinter)
    add("semaphore", "semaphore", sentence(lambda v: plural(int(v["permits_"]), "permit") + waiting_at(v["waiters_"])))
    add("latch", "latch", sentence(lambda v: f"{v['count_']} to come" + waiting_at(v["waiters_"])))
    add("barrier", "barrier", sentence(
        lambda v: f"{v['missing_']} of {v['participants_']} to come" + waiting_at(v["waiters_"])))
    add("closure", "sched::closure", sentence(closure_sentence))
    add("strand", "sched::strand", sentence(strand_sentence))
    return collection


InfoWeft()
gdb.printing.register_pretty_printer(None, printers(), replace=True)
