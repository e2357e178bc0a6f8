#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compares the page "Life of a task" with the headers that the code includes.

usage: check_road.py <source tree> [--control]

Every header that flow/fork.hpp reaches in the rooms below must be named on the page: on the road, as a link in a heading or
the text, or in the closing table of those that the road does not pass; and every header named must be reached. Prints the
road's headers and lines. With --control a header is hidden from the page, and must be missed.
"""
import pathlib
import re
import sys

rooms = ("flow", "task", "graph", "sched")
include_line = re.compile(r"^#\s*include <weft/([^>]+)>", re.MULTILINE)


def reached(root, name, seen):
    if name not in seen:
        seen.add(name)
        for part in include_line.findall((root / name).read_text()):
            reached(root, part, seen)
    return seen


def main(arguments):
    tree = pathlib.Path(arguments[1])
    root = tree / "include/weft"
    page = (tree / "docs/explanation/life-of-a-task.md").read_text()
    if "--control" in arguments:
        page = page.replace("sched/detail/drain.hpp", "sched/detail/nothing.hpp")
    text, closing = page.split("\n## What else", 1)
    inside = lambda names: {n for n in names if n.split("/")[0] in rooms}
    road = inside(re.findall(r"include/weft/([\w/]+\.hpp)", text))
    beside = inside(re.findall(r"`([\w/]+\.hpp)`", closing)) - {"flow/fork.hpp"}
    code = inside(reached(root, "flow/fork.hpp", set()))
    wrong = [f"{n}: included, but not on the page" for n in sorted(code - road - beside)]
    wrong += [f"{n}: on the page, but not included" for n in sorted((road | beside) - code)]
    wrong += [f"{n}: on the road and beside it" for n in sorted(road & beside)]
    for line in wrong:
        print(line)
    lines = sum(len((root / n).read_text().splitlines()) for n in road & code)
    print(f"{len(road)} headers on the road, {lines} lines; {len(beside)} beside it")
    sys.exit(bool(wrong) != ("--control" in arguments))


if __name__ == "__main__":
    main(sys.argv)
