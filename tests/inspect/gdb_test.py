#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Stops gdb_program with GDB in a known state and compares what `info weft` says with what the program says of itself, then
the same with a core file. Looks at the printers, and at what is said where nothing can be found out. Ends with status 77 if
this machine cannot do that.

usage: gdb_test.py <gdb> <weft-gdb.py> <gdb_program> <objcopy>
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

gdb, script, program, objcopy = sys.argv[1:]
script, program = os.path.abspath(script), os.path.abspath(program)
environment = {name: value for name, value in os.environ.items() if not name.startswith("WEFT_")}
environment |= {"MALLOC_ARENA_MAX": "1", "LC_ALL": "C", "DEBUGINFOD_URLS": ""}  # a small core, and no look at other machines


def check(condition, sentence):
    if not condition:
        sys.exit(sentence)


def skip(sentence):
    print("skipped: " + sentence)
    sys.exit(77)


def ask(folder, files, *commands):
    """What GDB prints for each of some commands."""
    lines = ["set pagination off", "set width 0", "set print thread-events off", "set confirm off", f"source {script}"]
    for i, command in enumerate(commands):
        lines += [f"echo \\n@{i}\\n", f"python\ntry:\n  gdb.execute({command!r})\nexcept gdb.error as e:\n  print(e)\nend"]
    lines += ["echo \\n@end\\n", "kill"]
    pathlib.Path(folder, "commands").write_text("\n".join(lines) + "\n")
    run = subprocess.run([gdb, "-q", "-nx", "-batch", "-x", "commands", *map(str, files)], cwd=folder, env=environment,
                         stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    if re.search(r"Couldn't get registers|ptrace: Operation not permitted|Could not trace the inferior", run.stdout):
        skip("this machine lets no debugger trace a program")
    if re.search(r"Scripting in the \"Python\" language is not supported|Python scripting is not supported", run.stdout):
        skip("this GDB knows no Python")
    answers = re.split(r"\n@(?:\d+|end)\n", run.stdout)
    check(len(answers) == len(commands) + 2, f"GDB has failed:\n{run.stdout}")
    return [answer.strip("\n") for answer in answers[1:-1]]


def described(text):
    """What is said in the same words as by runtime::describe()."""
    same = [line for line in text.splitlines() if not line.startswith(("    ", "  counters: "))]
    return [re.sub(r", (weft \d.*|thread \d+)$", "", line) for line in same]


def look_at_description(said, told):
    check(said.count("\n") > 10 and "cycle: " in said, f"the program has not come to its known state:\n{said}")
    check(described(told) == said.splitlines(), f"the program says\n{said}\nand info weft says\n{told}")
    check(re.search(r"^runtime 2 with 3 workers, weft \d+\.\d+\.\d+(, \w+)*$", told, re.MULTILINE), f"no version in\n{told}")
    check(re.search(r"^  worker \d runs 'runs' \(strand 2\), thread \d+$", told, re.MULTILINE), f"no thread in\n{told}")
    for strand, frame in [
            ("'task' waits for 'runs'", "frame of 'task': 1 executed elsewhere, 7 spawned bodies"),
            ("'small' > 'held' waits", "frame of 'small': 3 tasks not begun\n    frame of 'held': 1 event"),
            ("'large' waits for a task", "large frame of 'large': 9 unfinished tasks in its graph, 0 of them ready"),
    ]:
        check(re.search(f"{re.escape(strand)}.*\n    {re.escape(frame)}\n", told), f"not behind {strand}: {frame}\n{told}")
    check(re.search(r"^  counters: .*\bsteals \d+, promotions 1,", told, re.MULTILINE), f"no counters in\n{told}")


def look_at_values(answers, expected):
    for (name, pattern), answer in zip(expected.items(), answers, strict=True):
        check(re.fullmatch(rf"\$\d+ = {pattern}", answer), f"{name} is printed as\n{answer}\nwhich does not match {pattern}")


in_a_task = {
    "r": r"weft::read<int> = \{value = 7\}",
    "u": r"weft::update<std::vector<int.*> = \{value = .*\}",
    "part": r"weft::write<int\[\]> of 2 elements = \{0, 6\}",
    "range": r"weft::interval<long>, \[3, 30\)",
    "local": r'weft::shared<std::.*string.*> = \{value = .*"in a task".*\}',
    "lost": r"weft::shared<int>, its task has failed or was dropped",
    "result": r"weft::shared<int>, no value yet",
}
outside = {
    "first": r"weft::runtime, number 2, with 3 workers = \{.*steals = \d+, promotions = 1, .*\}",
    "door": r"weft::mutex, locked by strand 2 of runtime 2, 1 waiting",
    "permits": r"weft::semaphore, 2 permits",
    "at.list": r"weft::shared_mutex, locked for writing by strand 2 of runtime 2, 1 waiting",
    "shelf": r"weft::shared_mutex, locked for reading by 2",
    "open": r"weft::shared_mutex, free",
    "at.stage": r"weft::condition<int>, 1 waiting = \{value = 3\}",
    "at.news": r"weft::condition_variable, 1 waiting",
    "silence": r"weft::condition_variable, nobody waiting",
    "at.orders": r"weft::channel<int> for 2 items, 1 waiting = \{items = .*\}",
    "shut": r"weft::channel<int> for 1 item, closed = \{items = .*\}",
    "y": r"weft::shared<int> = \{value = 7\}",
    "nothing": r"weft::shared<int>, no value yet",
    "words": r'weft::shared<std::.*string.*> = \{value = .*"of a string".*\}',
    "array": r"weft::shared_array<int> of 4 elements = \{0, 0, 0, 0\}",
    "events[0]": r".*weft::completion, of a task in strand \d+ of runtime 2, not completed.*",
}

if shutil.which(gdb) is None:
    skip("there is no gdb")
strand_with_lock = "door.holder_.who_._M_b._M_p"
with tempfile.TemporaryDirectory() as folder:
    no_process, _, _, no_runtime, _, _, _, *answers = ask(
        folder, [program], "info weft", "break -qualified main", "run", "info weft", "break known_state", "continue", "up",
        *(f"print {name}" for name in in_a_task), "continue", "info weft", "up", *(f"print {name}" for name in outside),
        "info weft some", "generate-core-file core", f"set var {strand_with_lock}->root.current._M_b._M_p = 8", "info weft")
    check("There is no process" in no_process, f"without a process: {no_process}")
    check("The program has no runtime of weft now" in no_runtime, f"before the first runtime: {no_runtime}")
    look_at_values(answers[:len(in_a_task)], in_a_task)
    printed, live, _, *answers = answers[len(in_a_task):]
    said = re.search(r"^(runtime 2 with .*?)^----$", printed, re.DOTALL | re.MULTILINE)
    check(said, f"the program has not come to its known state:\n{printed}")
    look_at_description(said[1], live)
    look_at_values(answers[:len(outside)], outside)
    check("usage: info weft [all]" in answers[len(outside)], f"with a wrong argument: {answers[len(outside)]}")

    check(pathlib.Path(folder, "core").exists(), f"no core file: {answers[-3]}")
    check("  strand 2 cannot be looked at: " in answers[-1],
          f"with a strand that is destroyed {answers[-2]}, info weft says\n{answers[-1]}")
    check("'locks' waits for a mutex" in answers[-1], f"with a strand that is destroyed, others are missing:\n{answers[-1]}")
    later, everything = ask(folder, [program, "core"], "info weft", "info weft all")
    numbered = re.compile(r", thread \d+$", re.MULTILINE)  # from 1 on again
    check(numbered.sub("", later) == numbered.sub("", live), f"in a core file, info weft says\n{later}\nand before\n{live}")
    check(described(everything) == described(live), f"info weft all says\n{everything}")

    for switch, start, sentence in [("--strip-debug", ["break known_state", "run"], "no debug information of it: compile with -g"),
                                    ("--strip-all", ["starti"], "it was stripped of its symbols")]:
        stripped = shutil.copy(program, pathlib.Path(folder, "stripped"))
        subprocess.run([objcopy, switch, stripped], check=True)
        *_, told = ask(folder, [stripped], *start, "info weft")
        check(sentence in told, f"after {switch}: {told}")
print(live)
