#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Looks at the probes of probes_program. Ends with status 77 if a tool is missing.

usage: probes_test.py notes <program> <program without probes>    the notes, read by readelf
       probes_test.py gdb <program>                               stops at each probe, and looks at its arguments
       probes_test.py bpftrace|perf <program>                     lists the probes; counts forks where the kernel lets it
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

probes = {  # how many arguments each has, and what the first one is where it is a text
    "run_begin": (2, None),
    "run_end": (3, None),
    "fork": (3, "stolen|"),
    "steal": (3, "stolen"),
    "promotion": (2, None),
    "demotion": (2, None),
    "sleep": (2, None),
    "wake": (2, None),
    "wait_begin": (3, "a mutex|a task elsewhere|an event|a ready task|a latch"),
    "wait_end": (2, None),
    "exception": (2, "throws"),
}


def check(condition, sentence):
    if not condition:
        sys.exit(sentence)


def need(tool):
    if shutil.which(tool) is None:
        print(f"skipped: there is no {tool}")
        sys.exit(77)


def notes(program):
    """Provider, name, arguments and place of each note."""
    text = subprocess.run(["readelf", "--notes", "--wide", program], check=True, capture_output=True, text=True).stdout
    return re.findall(r"NT_STAPSDT[^:]*Provider: (\S+)\s+Name: (\S+)\s+Location: (\w+), Base: (\w+), Semaphore: (\w+)\s+Arguments: (.*)",
                      text)


def look_at_notes(program, without):
    need("readelf")
    found = notes(program)
    check({name for _, name, *_ in found} == set(probes), f"readelf shows the probes {found}")
    operands = r"(%r\w+|x\d+|\$?0)"
    for provider, name, place, base, semaphore, arguments in found:
        check(provider == "weft", f"{name} is of {provider}")
        check(int(place, 16) != 0 and int(base, 16) != 0 and int(semaphore, 16) == 0, f"{name} is at {place}, {base}, {semaphore}")
        count = probes[name][0]
        check(re.fullmatch(" ".join([f"8@{operands}"] * count), arguments), f"{name} has the arguments {arguments}")
    section = subprocess.run(["readelf", "--sections", "--wide", program], check=True, capture_output=True, text=True).stdout
    check(re.search(r"\.note\.stapsdt +NOTE +0+ ", section), f"the notes are loaded into memory:\n{section}")
    check(notes(without) == [], "a program without probes has some")


def stop_at_probes(program):
    need("gdb")
    script = f"""
set pagination off
set width 0
set debuginfod enabled off
break -qualified main
run
python
import re
{probes=}
for name in probes:
    gdb.execute(f"tbreak -probe-stap weft:{{name}}")
left = set(probes)
while left:
    gdb.execute("continue")
    if not gdb.selected_inferior().threads():
        break
    here = gdb.selected_frame().pc()
    listed = re.findall(r"^stap +weft +(\\w+) +(0x\\w+)", gdb.execute("info probes stap weft", to_string=True), re.MULTILINE)
    name = next((name for name, place in listed if int(place, 16) == here), "none")
    count = int(gdb.parse_and_eval("$_probe_argc"))
    first = gdb.parse_and_eval("$_probe_arg0")
    text = ""
    if probes.get(name, (0, None))[1] and int(first) != 0:
        text = first.cast(gdb.lookup_type("char").pointer()).string(errors="replace")
    print(f"\\n@ {{name}} {{count}} {{text}}")
    left.discard(name)
end
kill
"""
    with tempfile.TemporaryDirectory() as folder:
        pathlib.Path(folder, "commands").write_text(script)
        run = subprocess.run(["gdb", "-q", "-nx", "-batch", "-x", "commands", str(pathlib.Path(program).resolve())], cwd=folder,
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=100)
    if re.search(r"ptrace: Operation not permitted|Could not trace the inferior|Python scripting is not supported", run.stdout):
        print("skipped: GDB cannot trace programs here, or knows no Python")
        sys.exit(77)
    stops = {name: (int(count), text) for name, count, text in re.findall(r"^@ (\w+) (\d+) ?(.*)$", run.stdout, re.MULTILINE)}
    for name, (count, pattern) in probes.items():
        check(name in stops, f"GDB did not stop at weft:{name}\n{run.stdout}")
        check(stops[name][0] == count, f"{name} has {stops[name][0]} arguments")
        check(re.fullmatch(pattern or "", stops[name][1]), f"the first argument of {name} is '{stops[name][1]}'")
    print(stops)


def ask(*command, timeout=60):
    """What a tool prints, whatever it ends with."""
    done = subprocess.run(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    return done.returncode, done.stdout


def list_probes(tool, pattern, *command):
    status, text = ask(*command)
    found = set(re.findall(pattern, text))
    if not found and status != 0:
        print(f"skipped: {tool} cannot list probes here:\n{text}")
        sys.exit(77)
    check(found == set(probes), f"{tool} lists {sorted(found)}:\n{text}")


def ask_bpftrace(program):
    need("bpftrace")
    program = pathlib.Path(program).resolve()
    list_probes("bpftrace", r"(?m):weft:(\w+)$", "bpftrace", "-l", f"usdt:{program}:*")
    _, text = ask("bpftrace", "-e", f"usdt:{program}:weft:fork {{ @forks[str(arg0)] = count(); }}", "-c", str(program))
    counted = dict(re.findall(r"^@forks\[(\w*)\]: (\d+)$", text, re.MULTILINE))
    if not counted:
        print(f"listed; this kernel has no probes in programs, or not for us:\n{text}")
        return
    check(int(counted.get("stolen", 0)) == 1, f"bpftrace has counted {counted}:\n{text}")


def ask_perf(program):
    need("perf")
    with tempfile.TemporaryDirectory() as folder:
        status, text = ask("perf", "--buildid-dir", folder, "buildid-cache", "--add", program)
        if status != 0:
            print(f"skipped: perf cannot be told of a file:\n{text}")
            sys.exit(77)
        list_probes("perf", r"sdt_weft:(\w+)", "perf", "--buildid-dir", folder, "list", "sdt")


{"notes": look_at_notes, "gdb": stop_at_probes, "bpftrace": ask_bpftrace, "perf": ask_perf}[sys.argv[1]](*sys.argv[2:])
