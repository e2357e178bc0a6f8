#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Adds up the figures that tests have printed, and compares them with the floors that they must not fall below.

usage: figures.py [--table] FOLDER ...

FOLDER holds what ctest wrote with --output-junit, and texts (*.txt). A line `figure <name> <number>` of a test's output adds to the figure of
that name, and so does `ceiling <name> <number>`, which is to stay small. tests/floors.txt has one line for
each: name, bound, and what it says. --table prints all of them as Markdown. Exit status: 1 if one is missed or missing.
"""
import argparse
import collections
import pathlib
import re
import sys
import xml.etree.ElementTree

HERE = pathlib.Path(__file__).resolve().parent


def add(sums, text):
    for name, number in re.findall(r"^(?:figure|ceiling) (\w+) ([\d.]+)", text, re.MULTILINE):
        sums[name] += float(number)


def figures(folders):
    sums = collections.Counter()
    for folder in folders:
        for path in sorted(folder.glob("*.xml")):
            root = xml.etree.ElementTree.parse(path).getroot()
            for case in root.iter("testcase"):
                sums["tests"] += case.get("status") == "run"
                text = case.findtext("system-out") or ""
                add(sums, text)
        for path in folder.glob("*.txt"):
            add(sums, path.read_text())
    return sums


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--table", action="store_true")
    parser.add_argument("folders", nargs="+", type=pathlib.Path)
    options = parser.parse_args()
    seen = figures(options.folders)
    missed = []
    rows = ["| figure | bound | seen | met? |", "| --- | --- | --- | --- |"]
    for line in (HERE / "floors.txt").read_text().splitlines():
        if not line or line.startswith("#"):
            continue
        name, sign, bound, meaning = line.split(maxsplit=3)
        if name not in seen and meaning.endswith("(report)"):
            continue  # measured for the report only
        value = seen.get(name)
        met = value is not None and (value >= float(bound) if sign == ">=" else value <= float(bound))
        if not met:
            missed.append(f"{name}: {value if value is not None else 'not printed'}, must be {sign} {bound}")
        shown = "-" if value is None else f"{value:,.4g}" if value < 100 else f"{value:,.0f}"
        rows.append(f"| {meaning.removesuffix(' (report)')} | {sign} {float(bound):,.10g} | {shown} | {'yes' if met else 'NO'} |")
    if options.table:
        print("\n".join(rows))
    for sentence in missed:
        print(sentence)
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
