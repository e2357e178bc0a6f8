#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Lists the headers that need a translation unit of their own to show that they compile alone.

usage: first_includes.py <include> <layers.txt>
       first_includes.py --control

Where a header that compiles alone has nothing but comments and #pragma once before its first #include, the header included
there has been compiled with nothing before it: it compiles alone, too. What check_links.py compiles is not listed, nor are
headers that need <mpi.h>.
"""
import pathlib
import re
import sys
import tempfile

from check_links import linked, needs_mpi


def first_include(text):
    """*Returns*: the header of the library that is included before anything else; None if there is none."""
    text = re.sub(r"/\*.*?\*/|//[^\n]*", "", text, flags=re.S)
    found = re.match(r"\s*#\s*pragma\s+once\s*#\s*include\s*<(weft/[^>]+)>", text)
    return found and found[1]


def rest(include, compiled, headers):
    """*Returns*: the headers that nothing proves to compile alone but their own translation units."""
    first = {name: first_include((include / name).read_text()) for name in {*compiled, *headers}}
    shown = set()
    for name in compiled:
        while (name := first.get(name)) and name not in shown:
            shown.add(name)
    left = [name for name in headers if name not in shown]
    # What is included first by one of them is shown by it. Includes make no circles (architecture.layers).
    return sorted(set(left) - {first[name] for name in left})


def control():
    with tempfile.TemporaryDirectory() as folder:
        include = pathlib.Path(folder)
        (include / "weft").mkdir()
        for name, text in {
            "compiled": "// Its duty.\n#pragma once\n\n#include <weft/shown.hpp>\n#include <weft/second.hpp>\n",
            "shown": "#pragma once\n#include <weft/deeper.hpp>\n",
            "deeper": "#pragma once\n#include <vector>\n",
            "second": "#pragma once\n#if 1\n#include <weft/conditional.hpp>\n#endif\n",
            "conditional": "#pragma once\n#include <weft/below.hpp>\n",
            "below": "#pragma once\nint before;\n#include <weft/late.hpp>\n",
            "late": "#pragma once\n",
        }.items():
            (include / f"weft/{name}.hpp").write_text(text)
        names = [f"weft/{n}.hpp" for n in ("shown", "deeper", "second", "conditional", "below", "late")]
        got = rest(include, ["weft/compiled.hpp"], names)
        expected = [f"weft/{n}.hpp" for n in ("conditional", "late", "second")]
        print(f"listed: {' '.join(got)}")
        return got != expected


def main(arguments):
    if arguments[1:] == ["--control"]:
        sys.exit(control())
    if len(arguments) != 3:
        sys.exit(__doc__)
    include = pathlib.Path(arguments[1])
    compiled, _ = linked(include, arguments[2])
    every = (path.relative_to(include).as_posix() for path in (include / "weft").rglob("*.hpp"))
    headers = [name for name in every if name not in compiled and not needs_mpi(include, name)]
    print("\n".join(rest(include, compiled, headers)))


if __name__ == "__main__":
    main(sys.argv)
