#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Draws the rooms of the library: their headers, and who includes whom.

usage: draw_rooms.py <include/weft> <layers.txt> <out.svg> [--check]

Rooms stand on their layers, the lowest at the bottom. Within a room a header stands above all headers of the room that it
includes; those in detail/ are grey. A thin line leads from a header to one of its room below it, an arrow from a room to a
room below it. Fails if an arrow would lead up. With --check the file must be what would be drawn.
"""
import pathlib
import re
import sys

include_line = re.compile(r"^#\s*include <weft/([^>]+)>", re.MULTILINE)
width, line, letter = 1180, 13, 5.6


def read(root, layers):
    """*Returns*: the layer of each room, and the headers that each header includes."""
    numbers = {}
    for text in pathlib.Path(layers).read_text().splitlines():
        if text.strip() and not text.startswith("#"):
            name, number = text.split()
            numbers[name] = int(number)
    includes = {}
    for path in sorted(root.rglob("*.hpp")):
        name = path.relative_to(root).as_posix()
        includes[name] = sorted(set(include_line.findall(path.read_text())) - {name})
    return numbers, includes


def room_of(name):
    return name.split("/")[0] if "/" in name else "weft"


def levels(names, includes):
    """The level of each header within its room; definitions.hpp stands above all."""
    inside = {n: [i for i in includes[n] if i in names and not i.endswith("definitions.hpp")] for n in names}
    level = {}

    def of(name, path=()):
        if name in path:
            sys.exit("headers include each other: " + " ".join(path + (name,)))
        if name not in level:
            level[name] = max((of(i, path + (name,)) + 1 for i in inside[name]), default=0)
        return level[name]

    for name in names:
        of(name)
    return level, inside


class room:
    def __init__(self, name, headers, includes):
        self.name = name
        level, self.inside = levels(sorted(headers), includes)
        self.rows = [sorted(h for h in headers if level[h] == k) for k in range(max(level.values()) + 1)]
        self.width = max(max(sum(self.text(h) for h in row) for row in self.rows), letter * (len(name) + 14)) + 16
        self.height = 24 + 26 * len(self.rows)

    @staticmethod
    def text(header):
        return letter * len(pathlib.PurePosixPath(header).stem) + 14

    def draw(self, x, y, out):
        self.x, self.y = x, y
        count = sum(map(len, self.rows))
        out.append(f'<rect x="{x}" y="{y}" width="{self.width:.0f}" height="{self.height}" rx="4" class="room"/>')
        out.append(f'<text x="{x + 8}" y="{y + 15}" class="name">{self.name} <tspan class="count">{count}</tspan></text>')
        place = {}
        for k, row in enumerate(self.rows):
            at, below = x + 8.0, y + self.height - 10 - 26 * k
            for header in row:
                place[header] = (at + self.text(header) / 2 - 7, below)
                at += self.text(header)
        for header, parts in self.inside.items():
            for part in parts:
                (a, b), (c, d) = place[header], place[part]
                out.append(f'<path d="M{a:.0f} {b + 3:.0f}L{c:.0f} {d - line + 3:.0f}" class="inside"/>')
        for header, (a, b) in place.items():
            kind = "private" if "/detail/" in header else "header"
            out.append(f'<text x="{a:.0f}" y="{b:.0f}" class="{kind}">{pathlib.PurePosixPath(header).stem}</text>')


def draw(root, layers):
    numbers, includes = read(root, layers)
    rooms = {}
    for name in includes:
        rooms.setdefault(room_of(name), []).append(name)
    layer = {name: numbers.get(name, 1 + max(numbers.values())) for name in rooms}
    rooms = {name: room(name, headers, includes) for name, headers in rooms.items()}
    shelves = []
    for number in sorted(set(layer.values()), reverse=True):
        shelf, used = [], 0
        for name in sorted(n for n in rooms if layer[n] == number):
            if shelf and used + rooms[name].width > width - 60:
                shelves.append((number, shelf))
                shelf, used = [], 0
            shelf.append(rooms[name])
            used += rooms[name].width + 24
        shelves.append((number, shelf))
    out, y = [], 20
    for number, shelf in shelves:
        x = int(width - sum(r.width + 24 for r in shelf)) // 2
        out.append(f'<text x="12" y="{y + 18}" class="layer">{number}</text>')
        for r in shelf:
            r.draw(x, y, out)
            x += int(r.width) + 24
        y += max(r.height for r in shelf) + 44
    arrows = sorted({(room_of(a), room_of(b)) for a, parts in includes.items() for b in parts if room_of(a) != room_of(b)
                     and "/" in b})
    for upper, lower in arrows:
        if layer[upper] <= layer[lower]:
            sys.exit(f"{upper} includes {lower}, which is not below it")
    # An arrow that others imply is left out.
    direct = [(a, b) for a, b in arrows if not any((a, m) in arrows and (m, b) in arrows for m in rooms)]
    for upper, lower in direct:
        u, v = rooms[upper], rooms[lower]
        out.append(f'<path d="M{u.x + u.width / 2:.0f} {u.y + u.height}L{v.x + v.width / 2:.0f} {v.y}" class="arrow" '
                   'marker-end="url(#head)"/>')
    style = ("text{font:10px monospace;fill:#222}.header,.private{text-anchor:middle}.private{fill:#888}"
             ".name{font-weight:bold;font-size:12px}.count,.layer{fill:#888}.room{fill:#f6f6f2;stroke:#999}"
             ".inside{stroke:#cfcfc8;fill:none}.arrow{stroke:#b4532a;fill:none;stroke-width:1.2}#head path{fill:#b4532a}"
             "@media(prefers-color-scheme:dark){text{fill:#ddd}.private,.count,.layer{fill:#999}.room{fill:#262624;"
             "stroke:#777}.inside{stroke:#454540}}")
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {y}"><title>The rooms of weft and what they '
            f'include</title><style>{style}</style><defs><marker id="head" viewBox="0 0 8 8" refX="8" refY="4" '
            'markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z"/></marker></defs>\n'
            + "\n".join(out) + "\n</svg>\n")


def main(arguments):
    check = "--check" in arguments
    paths = [a for a in arguments[1:] if a != "--check"]
    if len(paths) != 3:
        sys.exit(__doc__)
    drawing = draw(pathlib.Path(paths[0]), paths[1])
    out = pathlib.Path(paths[2])
    if not check:
        out.write_text(drawing)
    elif not out.is_file() or out.read_text() != drawing:
        sys.exit(f"{out} does not show the headers of today; run: docs/development/draw_rooms.py {' '.join(paths)}")


if __name__ == "__main__":
    main(sys.argv)
