#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks the comments of headers against the code they name.

usage: check_partners.py <include/weft>

Prints one line per violation, `path:line: kind: sentence`, and ends with status 1 if there is any. Kinds:
  partner  "pairs with f", "pairs with the release in f", "ordered by the release in f": no function f, or none that orders memory
  file     "(f.hpp)": no header of that name
  heading  "(room/README.md, "Words")": no such heading
"""
import pathlib
import re
import sys

from check_layers import code_of

comment_line = re.compile(r"//[/!]?<?\s?(.*)$")
pairing = re.compile(r"\b(?:pairs? with (?:the \w+ in )?|ordered by the \w+ in )((?:\w+::)*(\w+))")
file_name = re.compile(r"([\w/]+\.hpp)\b")
heading_name = re.compile(r'(\w+/README\.md), "([^"]+)"')
definition = re.compile(r"\b(~?\w+)\s*\(")
orders = re.compile(r"memory_order_(?:acquire|release|acq_rel|seq_cst)|owner_(?:load|store)|\bfence\(|_fence\(|\block\(|lock_guard")
# Words that begin a description in prose, such as "pairs with the thief's release".
prose = {"the", "those", "what", "whoever", "its", "a"}


def balanced(text, start, opening, closing):
    """The end of the bracket that opens at `start`."""
    depth = 0
    for i in range(start, len(text)):
        depth += (text[i] == opening) - (text[i] == closing)
        if depth == 0:
            return i
    return len(text)


def bodies(code):
    """Pairs of a function's name and the text of its definition's body."""
    for match in definition.finditer(code):
        end = balanced(code, match.end() - 1, "(", ")")
        head = re.compile(r"(?:\s*(?:const|noexcept|requires[^{;]*|->[^{;]*|:[^{;]*(?:\{[^{}]*\}[^{;]*)*))*\s*\{").match(code, end + 1)
        if head:
            yield match[1], code[head.end() - 1 : balanced(code, head.end() - 1, "{", "}")]


def comments(text):
    """The comments of a text, as pairs of the line they begin in and their words, joined across lines."""
    lines, result = text.split("\n"), []
    whole = False
    for number, line in enumerate(lines, 1):
        match = comment_line.search(line)
        if not match:
            whole = False
            continue
        alone = line.lstrip().startswith("//")
        if whole and alone:
            result[-1][1] += " " + match[1]
        else:
            result.append([number, match[1]])
        whole = alone or line.rstrip().endswith(",")
    return result


def main(arguments):
    if len(arguments) != 2:
        sys.exit(__doc__)
    root = pathlib.Path(arguments[1])
    paths = sorted(root.rglob("*.hpp"))
    ordering, known = set(), set()
    for path in paths:
        for name, body in bodies("\n".join(code_of(path.read_text()))):
            known.add(name)
            if orders.search(body):
                ordering.add(name)
    headers = {p.relative_to(root).as_posix() for p in paths}
    names = {p.name for p in paths}
    found, looked_at = [], 0
    for path in paths:
        where = path.relative_to(root).as_posix()
        for number, text in comments(path.read_text()):
            for match in pairing.finditer(text):
                name = match[2]
                if name in prose or text[match.end() :].startswith("'s"):
                    continue
                looked_at += 1
                if name not in known:
                    found.append(f"{where}:{number}: partner: no function {name} is defined")
                elif name not in ordering:
                    found.append(f"{where}:{number}: partner: {name} neither releases nor acquires anything")
            for match in file_name.finditer(text):
                name = match[1].removeprefix("weft/")
                if name not in headers and name not in names and f"{where.rsplit('/', 1)[0]}/{name}" not in headers:
                    found.append(f"{where}:{number}: file: there is no {match[1]}")
            for match in heading_name.finditer(text):
                page = root / match[1]
                if not page.is_file() or not re.search(rf"^#+ {re.escape(match[2])}$", page.read_text(), re.MULTILINE):
                    found.append(f"{where}:{number}: heading: {match[1]} has no heading {match[2]}")
    for line in found:
        print(line)
    print(f"{len(paths)} headers, {looked_at} partners, {len(found)} violations")
    if looked_at == 0:
        sys.exit("no comment names a partner: nothing was checked")
    sys.exit(1 if found else 0)


if __name__ == "__main__":
    main(sys.argv)
