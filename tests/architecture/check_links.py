#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Links each public header by itself into a program: twice, with all its inline functions kept.

usage: check_links.py <include> <layers.txt> <compiler>
       check_links.py <include> <layers.txt> --list-mpi

Public are the headers directly in include/weft and in the rooms from layer `flow` on, but for what lies in detail/.
Those that include <mpi.h>, or the header of METIS or Scotch, are left out, since there may be none; the tests of the rooms
rma and placement link them. So are those that include nothing of weft but public headers and declare nothing that is
defined in another file: they need what those need.
Half of them are linked, chosen by WEFT_TEST_SEED, which differs from commit to commit, and the others only compiled; with
WEFT_TEST_LONG all are linked. With --list-mpi, all that include one of these are only listed. Prints the undefined or multiply
defined symbols of each header that does not link, and ends with status 1 then.
"""
import concurrent.futures
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

from check_layers import table

libraries = ["-lboost_context", "-lpthread"]


def needs_mpi(include, name, known={}):
    """Whether a header includes <mpi.h> or the like, maybe through others."""
    if name not in known:
        known[name] = False
        text = (include / name).read_text() if (include / name).exists() else ""
        known[name] = re.search(r"#include <(mpi|metis|scotch)\.h>", text) is not None or any(
            needs_mpi(include, other) for other in included(text))
    return known[name]


def public(include, layers):
    """The public headers, as #include names them."""
    number = {name: int(layer) for name, layer in (line.split() for line in table(layers))}
    for path in sorted((include / "weft").rglob("*.hpp")):
        room = path.relative_to(include / "weft").parts[:-1]
        if "detail" not in room and (not room or number[room[0]] >= number["flow"]):
            name = path.relative_to(include).as_posix()
            if not needs_mpi(include, name):
                yield name


def included(text):
    return re.findall(r"#include <(weft/[^>]+)>", text)


def brings_what_others_bring(include, names):
    """Those of the public headers that link if the others do."""
    defined_elsewhere = set()
    for path in (include / "weft").rglob("*.hpp"):
        text = path.read_text()
        if "WEFT_FUNCTION" in text or re.search(r"^(?:inline|constexpr)\b[^;{=]*\w::~?\w+\(", text, re.M):
            defined_elsewhere.update(included(text))
    return [n for n in names if n not in defined_elsewhere
            and all(other in names for other in included((include / n).read_text()))]


def linked(include, layers):
    """*Returns*: the headers to be linked, and how many public ones need what those need."""
    names = list(public(include, layers))
    alike = set(brings_what_others_bring(include, set(names)))
    return [n for n in names if n not in alike], len(alike)


def link(include, name, compiler):
    """*Returns*: what the compiler or the linker says of a program with this header; empty if it links."""
    with tempfile.TemporaryDirectory() as folder:
        first, second, main = (os.path.join(folder, f) for f in ("first.o", "second.o", "main.cpp"))
        pathlib.Path(main).write_text("int main() {}\n")
        source = os.path.join(folder, "first.cpp")
        pathlib.Path(source).write_text(f"#include <{name}>\n")
        flags = ["-std=c++20", "-O0", "-fkeep-inline-functions", "-DNDEBUG", "-w", "-I", str(include)]
        for command in ([compiler, *flags, "-c", source, "-o", first], None, [compiler, main, first, second, *libraries]):
            if command is None:
                shutil.copy(first, second)
                continue
            result = subprocess.run([*command, *(["-o", os.path.join(folder, "a.out")] if main in command else [])],
                                    text=True, capture_output=True)
            if result.returncode != 0:
                return result.stderr
    return ""


def check(include, name, compiler):
    """*Returns*: what the compiler says of a source with this header only; empty if it compiles."""
    flags = ["-std=c++20", "-fsyntax-only", "-DNDEBUG", "-w", "-I", str(include), "-x", "c++", "-"]
    result = subprocess.run([compiler, *flags], input=f"#include <{name}>\n", text=True, capture_output=True)
    return result.stderr if result.returncode != 0 else ""


def main(arguments):
    if len(arguments) != 4:
        sys.exit(__doc__)
    include = pathlib.Path(arguments[1])
    if arguments[3] == "--list-mpi":
        every = (path.relative_to(include).as_posix() for path in (include / "weft").rglob("*.hpp"))
        print("\n".join(sorted(name for name in every if needs_mpi(include, name))))
        return
    names, alike = linked(include, arguments[2])
    chance = random.Random(int(os.environ.get("WEFT_TEST_SEED", "0"), 0))
    whole = set(names if "WEFT_TEST_LONG" in os.environ else chance.sample(names, (len(names) + 1) // 2))
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        said = list(pool.map(lambda name: (link if name in whole else check)(include, name, arguments[3]), names))
    failed = 0
    for name, text in zip(names, said):
        if not text:
            continue
        failed += 1
        symbols = sorted(set(re.findall(r"(?:undefined reference to|multiple definition of) [`'‘]([^'’]+)", text)))
        print(f"{name}: " + ("; ".join(symbols[:8]) if symbols else text[:2000]))
    print(f"{len(names)} headers, {len(whole)} of them linked, {failed} do not compile or link; {alike} need what those need")
    sys.exit(1 if failed or not names else 0)


if __name__ == "__main__":
    main(sys.argv)
