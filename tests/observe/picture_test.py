#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compares the picture of a graph in the documentation with the graph that the example writes now.

usage: picture_test.py <example_10_critical_path> <graph.svg> [--write]

Graphviz draws what the example writes; tasks, edges and labels must be those of the committed picture, not their places,
which differ between versions. --write replaces the picture. Ends with status 77 without Graphviz.
"""
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as xml


def draw(program, folder):
    path = pathlib.Path(folder, "graph.dot")
    subprocess.run([program, str(path)], check=True, capture_output=True, timeout=60)
    return path.read_text(), subprocess.run(["dot", "-Tsvg", str(path)], check=True, capture_output=True, text=True, timeout=60).stdout


def parts(svg):
    """The nodes and edges of a picture: (kind, title, label)."""
    name = lambda tag: f"{{http://www.w3.org/2000/svg}}{tag}"
    return sorted((g.get("class"), g.findtext(name("title")), g.findtext(name("text")))
                  for g in xml.fromstring(svg).iter(name("g")) if g.get("class") in ("node", "edge"))


def main(program, picture, switch=None):
    if shutil.which("dot") is None:
        print("skipped: there is no dot")
        sys.exit(77)
    picture = pathlib.Path(picture)
    with tempfile.TemporaryDirectory() as folder:
        text, drawn = draw(program, folder)
    if switch == "--write":
        picture.write_text(re.sub(r"<!--.*?-->\n?", "", drawn, flags=re.DOTALL))
    now, kept = parts(drawn), parts(picture.read_text())
    lines = len(re.findall(r"^  t\d+ ", text, re.MULTILINE))
    if len(now) != lines or lines == 0:
        sys.exit(f"{len(now)} nodes and edges were drawn of {lines}")
    if now != kept:
        sys.exit(f"{picture} is not of this graph, to draw it anew: {' '.join(sys.argv)} --write\n"
                 f"only now  {sorted(set(now) - set(kept))}\nonly then {sorted(set(kept) - set(now))}")
    print(f"{lines} nodes and edges")


main(*sys.argv[1:])
