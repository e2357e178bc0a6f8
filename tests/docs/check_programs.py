#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Builds and runs the programs of the documentation and compares what they print with what the pages say.

usage: check_programs.py <source> <build> <cmake> <generator> <compiler> <room> [--control]

A program is a fenced block `cpp` of README.md or docs/**/*.md that defines main; what it prints must be the next
fenced block, exactly. README.md must begin with one. They are built in <room> against the package that <build>
installs, as a stranger would who wants to compile fast (weft::compiled); WEFT_TEST_CXX_FLAGS holds the compiler's flags.
Programs that include weft/rma.hpp or weft/cluster.hpp are skipped where the package has no weft::mpi. --control demands that a program that prints something else, and one without an output, are reported.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys

block = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
project = """cmake_minimum_required(VERSION 3.24)
project(docs LANGUAGES CXX)
find_package(weft REQUIRED OPTIONAL_COMPONENTS mpi)
add_compile_options(-Wall -Wextra -Werror)
"""
planted = """```cpp
#include <weft/weft.hpp>

#include <cstdio>

int main() { std::printf("%d\\n", weft::runtime().run([] { return 1; })); }
```

```text
2
```
"""


class fault(Exception):
    pass


def programs(text, page):
    """(line, source, what it prints) of each program of a page."""
    blocks = list(block.finditer(text))
    found = []
    for i, b in enumerate(blocks):
        if b[1] != "cpp" or not re.search(r"^int main\(", b[2], re.MULTILINE):
            continue
        line = text.count("\n", 0, b.start()) + 1
        if i + 1 == len(blocks) or blocks[i + 1][1] not in ("", "text"):
            raise fault(f"{page}:{line}: no block behind the program says what it prints")
        found.append((line, b[2], blocks[i + 1][2]))
    return found


def run(*command):
    done = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    if done.returncode != 0:
        raise fault(f"{' '.join(map(str, command))}\nended with {done.returncode}:\n{done.stdout}")
    return done.stdout


def check(pages, build, cmake, generator, compiler, room):
    """Raises a fault, or returns how many programs print what their page says."""
    shutil.rmtree(room, ignore_errors=True)
    (room / "source").mkdir(parents=True)
    lists, expected = project, []
    for page, text in pages:
        for line, source, output in programs(text, page):
            name = f"program_{len(expected)}"
            (room / "source" / f"{name}.cpp").write_text(f'#line {line + 1} "{page}"\n{source}')
            on_mpi = "weft/rma.hpp" in source or "weft/cluster.hpp" in source
            build_it = f"add_executable({name} {name}.cpp)\ntarget_link_libraries({name} PRIVATE weft::compiled{' weft::mpi' * on_mpi})\n"
            lists += f"if(TARGET weft::mpi)\n{build_it}endif()\n" if on_mpi else build_it
            expected.append((f"{page}:{line}", name, output, on_mpi))
    (room / "source" / "CMakeLists.txt").write_text(lists)
    flags = os.environ.get("WEFT_TEST_CXX_FLAGS", "")
    run(cmake, "--install", build, "--prefix", room / "prefix")
    run(cmake, "-G", generator, "-S", room / "source", "-B", room / "build", f"-DCMAKE_CXX_COMPILER={compiler}",
        f"-DCMAKE_CXX_FLAGS={flags}", f"-DCMAKE_PREFIX_PATH={room / 'prefix'}", "-DCMAKE_FIND_USE_PACKAGE_REGISTRY=OFF")
    run(cmake, "--build", room / "build")
    built = 0
    for place, name, output, on_mpi in expected:
        if on_mpi and not (room / "build" / name).exists():
            print(f"{place}: there is no weft::mpi here, the program is skipped")
            continue
        built += 1
        printed = run(room / "build" / name)
        if printed != output:
            raise fault(f"{place}: the program prints\n{printed}and the page says\n{output}")
    return built


def reported(sentence, *arguments):
    try:
        check(*arguments)
    except fault as f:
        return sentence in str(f)
    return False


def main(source, build, cmake, generator, compiler, room, switch=None):
    source, room = pathlib.Path(source), pathlib.Path(room)
    tools = (build, cmake, generator, compiler, room)
    if switch == "--control":
        silent = planted.split("```text")[0]
        if not reported("the program prints\n1\n", [("planted.md", planted)], *tools):
            sys.exit("a program that prints something else is not reported")
        if not reported("says what it prints", [("planted.md", silent)], *tools):
            sys.exit("a program without an output is not reported")
        print("planted faults are reported")
        return
    readme = source / "README.md"
    pages = [(str(p.relative_to(source)), p.read_text()) for p in [readme, *sorted((source / "docs").rglob("*.md"))]]
    first = block.search(pages[0][1])
    if first is None or first[1] != "cpp" or "int main(" not in first[2]:
        raise fault("README.md: its first block is no program")
    print(f"{check(pages, *tools)} programs print what their pages say")


if __name__ == "__main__":
    if len(sys.argv) not in (7, 8):
        sys.exit(__doc__)
    try:
        main(*sys.argv[1:])
    except fault as f:
        sys.exit(str(f))
