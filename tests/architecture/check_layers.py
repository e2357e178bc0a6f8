#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks the headers of a tree against its layers and the rules a reader relies on.

usage: check_layers.py <include/weft> <layers.txt> <foreign_names.txt>

Prints one line per violation, `path:line: kind: sentence`, and ends with status 1 if there is any. Kinds:
  layer    an include that does not go strictly downward, or a room that has no layer
  detail   an include of another room's detail/
  include  a library header included in another spelling than <weft/...>, or one that does not exist
  cycle    headers that include each other, but for the definitions of their room
  whole    a header of a room for users reaches a room that has a definitions.hpp, but not that header
  length   more than 400 lines
  opening  not: SPDX line, one sentence of at most three lines that states the duty, #pragma once
  macro    a macro defined outside base/config.hpp, or one there that does not begin with WEFT_
  name     an identifier that C++ reserves
  abi      something outside the inline namespace WEFT_ABI, or in a header that does not know it
"""
import pathlib
import re
import sys

longest = 400
spdx = "// SPDX-License-Identifier: BSL-1.0"
macro_home = "base/config.hpp"
untagged = {"base/error.hpp"}  # exceptions are the same in all parts of a process
top_layer = 1000

include_line = re.compile(r'\s*#\s*include\s*([<"])([^>"]+)[>"]')
macro_line = re.compile(r"\s*#\s*(define|undef)\s+(\w+)")
opens_weft = re.compile(r"\s*(?:inline\s+)?namespace\s+weft\b(?!::inline WEFT_ABI\b)")
reserved = re.compile(r"\b(?:_[A-Z]\w*|\w*__\w*)\b")
not_code = re.compile(
    r'//[^\n]*|/\*.*?\*/|R"(?P<mark>[^()\\\s]*)\(.*?\)(?P=mark)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])+\'', re.DOTALL
)


def table(path):
    """The lines of a text file that are neither empty nor comments."""
    lines = (line.strip() for line in pathlib.Path(path).read_text().splitlines())
    return [line for line in lines if line and not line.startswith("#")]


def code_of(text):
    """The text without comments and literals, line for line; includes keep their names."""

    def blank(match):
        return "\n" * match.group().count("\n") if match.group()[0] == "/" else '""' + "\n" * match.group().count("\n")

    lines = text.split("\n")
    kept = ["" if include_line.match(line) else line for line in lines]
    return re.sub(not_code, blank, "\n".join(kept)).split("\n")


class checker:
    def __init__(self, root, layers, foreign):
        self.root = pathlib.Path(root)
        self.layers = {name: int(number) for name, number in (line.split() for line in layers)}
        self.foreign = re.compile("|".join(foreign))
        self.found = []
        self.includes = {}

    def report(self, path, line, kind, sentence):
        self.found.append(f"{path}:{line}: {kind}: {sentence}")

    @staticmethod
    def room(path):
        return path.split("/")[0] if "/" in path else None

    def layer(self, path):
        room = self.room(path)
        return self.layers.get(room) if room else self.layers.get(path, top_layer)

    def check(self):
        paths = sorted(p.relative_to(self.root).as_posix() for p in self.root.rglob("*.hpp"))
        for path in paths:
            text = (self.root / path).read_text()
            lines = text.splitlines()
            self.check_opening(path, lines)
            if len(lines) > longest:
                self.report(path, len(lines), "length", f"{len(lines)} lines; at most {longest} are allowed")
            if self.layer(path) is None:
                self.report(path, 1, "layer", f"room {self.room(path)} has no layer")
            self.includes[path] = list(self.check_includes(path, lines))
            self.check_names(path, code_of(text))
        self.check_cycles()
        self.check_definitions()
        for path in paths:
            if path not in untagged:
                self.check_abi(path, code_of((self.root / path).read_text()))
        return len(paths)

    def check_opening(self, path, lines):
        lines = lines + [""] * 6
        if lines[0] != spdx:
            self.report(path, 1, "opening", f"the first line must be: {spdx}")
            return
        end = next(i for i in range(1, len(lines)) if not lines[i].startswith("// "))
        duty = " ".join(line[3:] for line in lines[1:end])
        if not 1 <= end - 1 <= 3 or not duty.endswith(".") or re.search(r"\. [A-Z]", duty):
            self.report(path, 2, "opening", "one sentence of at most three lines must state the header's duty")
        elif lines[end] != "#pragma once":
            self.report(path, end + 1, "opening", "#pragma once must follow the sentence")

    def check_includes(self, path, lines):
        for number, line in enumerate(lines, 1):
            match = include_line.match(line)
            if not match:
                continue
            bracket, name = match.groups()
            if bracket == '"':
                self.report(path, number, "include", f'"{name}": write <weft/room/file.hpp>')
                continue
            if not name.startswith("weft/"):
                continue
            name = name.removeprefix("weft/")
            if not (self.root / name).is_file():
                self.report(path, number, "include", f"<weft/{name}> does not exist")
                continue
            yield number, name
            same_room = self.room(path) is not None and self.room(path) == self.room(name)
            if same_room:
                continue
            if "/detail/" in name:
                self.report(path, number, "detail", f"<weft/{name}> is private to its room")
            here, there = self.layer(path), self.layer(name)
            if here is not None and there is not None and there >= here and not (here == there == top_layer):
                self.report(path, number, "layer", f"layer {here} may not include <weft/{name}>, layer {there}")

    def check_names(self, path, code):
        for number, line in enumerate(code, 1):
            macro = macro_line.match(line)
            if macro and path != macro_home:
                self.report(path, number, "macro", f"{macro[2]}: macros live in {macro_home}")
            elif macro and not macro[2].startswith("WEFT_"):
                self.report(path, number, "macro", f"{macro[2]} must begin with WEFT_")
            for name in reserved.findall(line):
                if not self.foreign.fullmatch(name):
                    self.report(path, number, "name", f"{name} is reserved; foreign ones are listed in foreign_names.txt")

    def reached(self, path, seen):
        for _, name in self.includes[path]:
            if name not in seen:
                seen.add(name)
                self.reached(name, seen)
        return seen

    def check_abi(self, path, code):
        for number, line in enumerate(code, 1):
            if opens_weft.match(line):
                self.report(path, number, "abi", "write namespace weft::inline WEFT_ABI")
            elif "WEFT_ABI" in line and path != macro_home and macro_home not in self.reached(path, set()):
                self.report(path, number, "abi", f"WEFT_ABI means nothing without <weft/{macro_home}>")
                return

    def check_definitions(self):
        users = self.layers.get("flow", top_layer)
        for path in self.includes:
            if "/detail/" in path or self.room(path) is None or (self.layer(path) or 0) < users:
                continue
            reached = self.reached(path, set())
            for room in {self.room(name) for name in reached} - {None, self.room(path)}:
                whole = f"{room}/definitions.hpp"
                if whole in self.includes and whole not in reached:
                    self.report(path, 1, "whole", f"reaches what {room} declares, but not <weft/{whole}>")

    def check_cycles(self):
        done, open_ = set(), []

        def visit(path):
            open_.append(path)
            for number, name in self.includes[path]:
                if name == f"{self.room(path)}/definitions.hpp":
                    continue  # included behind what it defines
                if name in open_:
                    self.report(path, number, "cycle", " -> ".join(open_[open_.index(name) :] + [name]))
                elif name not in done:
                    visit(name)
            done.add(open_.pop())

        for path in self.includes:
            if path not in done:
                visit(path)


def main(arguments):
    if len(arguments) != 4:
        sys.exit(__doc__)
    check = checker(arguments[1], table(arguments[2]), table(arguments[3]))
    headers = check.check()
    for line in check.found:
        print(line)
    print(f"{headers} headers, {len(check.found)} violations")
    if headers == 0:
        sys.exit("no header found: nothing was checked")
    sys.exit(1 if check.found else 0)


if __name__ == "__main__":
    main(sys.argv)
