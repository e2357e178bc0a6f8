#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks the README of each room against the room.

usage: check_readmes.py <include/weft> <layers.txt>

Each room has one. Its title names the room and its layer; the first cells of its table `header | duty` name every header
of the room once, as `file.hpp` or `detail/file.hpp`, and no other. Prints one line per violation, and ends with status 1
if there is any.
"""
import pathlib
import re
import sys

from check_layers import table


def violations(root, layers):
    rooms = {name: layer for name, layer in (line.split() for line in table(layers)) if not name.endswith(".hpp")}
    for room, layer in rooms.items():
        page = root / room / "README.md"
        if not page.is_file():
            yield f"{room}: there is no README.md"
            continue
        text = page.read_text()
        if not text.startswith(f"# Room `{room}` (layer {layer}): "):
            yield f"{room}/README.md: the title is not '# Room `{room}` (layer {layer}): ...'"
        rows = re.search(r"^\| header \| duty \|\n\| --- \| --- \|\n((?:\|.*\n)+)", text, re.MULTILINE)
        named = re.findall(r"`([\w/]+\.hpp)`", "\n".join(row.split(" | ")[0] for row in rows[1].splitlines())) if rows else []
        headers = {p.relative_to(root / room).as_posix() for p in (root / room).rglob("*.hpp")}
        for name in sorted(headers - set(named)):
            yield f"{room}/README.md: {name} is not in the table"
        for name in sorted(set(named) - headers):
            yield f"{room}/README.md: there is no {name}"
        for name in sorted({n for n in named if named.count(n) > 1}):
            yield f"{room}/README.md: {name} is there twice"


def main(arguments):
    if len(arguments) != 3:
        sys.exit(__doc__)
    found = list(violations(pathlib.Path(arguments[1]), arguments[2]))
    for line in found:
        print(line)
    print(f"{len(found)} violations")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main(sys.argv)
