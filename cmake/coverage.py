#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Adds up what the tests of a build folder took of include/weft, and prints lines and branches, room by room.

usage: coverage.py [--missed] FOLDER LABELS

Read are FOLDER/profiles/*.profraw and the programs of the tests whose labels match the regular expression. llvm-cov has one record for each function and
instantiation; they are added up here by their place in the source, which its own sums do not do. --missed lists
the branches that were not taken, and the lines in which nothing ran.
"""
import argparse
import collections
import json
import pathlib
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent
HEADERS = str(ROOT / "include" / "weft") + "/"
FILE_OF_EXPANSION, GAP, SKIPPED = 1, 3, 2  # kinds of regions that hold no code of their own


def programs(folder, labels):
    """The programs of the tests, which carry the description of their source."""
    listed = subprocess.run(["ctest", "--test-dir", folder, "--show-only=json-v1", "-L", labels],
                            check=True, stdout=subprocess.PIPE)
    words = {word.removeprefix("-DPROGRAM=")
             for test in json.loads(listed.stdout)["tests"] for word in test.get("command", [])}
    return sorted(word for word in words if pathlib.Path(word).name.startswith("weft_test_"))


def records(folder, labels):
    """What llvm-cov knows of every function of every program. One program at a time: among several, the empty record
    of one that does not call a function hides the counts of another that does."""
    merged = folder / "profiles" / "all.profdata"
    raw = [path for path in sorted((folder / "profiles").glob("*.profraw")) if path.stat().st_size]
    subprocess.run(["llvm-profdata-19", "merge", "--failure-mode=all", "-o", merged, *raw], check=True)
    for program in programs(folder, labels):
        found = subprocess.run(
            ["llvm-cov-19", "export", f"--instr-profile={merged}", "--skip-expansions", program, HEADERS],
            check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
        yield from json.loads(found.stdout)["data"][0]["functions"]


def lines_of(regions):
    """Line -> how often it ran, in one file of one function: each line counts as its innermost region that starts
    before it, or, if more often, as one that starts in it."""
    lines = {}
    code = [r for r in regions if r[7] not in (FILE_OF_EXPANSION, SKIPPED)]
    for line_start, _, line_end, _, count, _, _, kind in code:  # outer regions come first
        for line in range(line_start, line_end + 1):
            if kind == GAP:
                continue
            starts_before = line > line_start
            lines[line] = count if starts_before and line < line_end else max(count, lines.get(line, 0))
    return lines


def taken(functions):
    """Two tables by (file, place): how often each line ran, and how often each condition was true and false."""
    lines = collections.Counter()
    branches = collections.defaultdict(lambda: [0, 0])
    for function in functions:
        for number, name in enumerate(function["filenames"]):
            if not name.startswith(HEADERS):
                continue
            name = name[len(HEADERS):]
            for line, count in lines_of([r for r in function["regions"] if r[5] == number]).items():
                lines[name, line] += count
            for *place, true, false, file, _, _ in function["branches"]:
                if file == number:
                    both = branches[(name, *place)]
                    both[0] += true
                    both[1] += false
    return lines, branches


def room(name):
    return name.split("/")[0] if "/" in name else "weft"


def percent(part, whole):
    return f"{100 * part / whole:.1f}" if whole != 0 else "-"


def table(lines, branches):
    sums = collections.defaultdict(lambda: [0, 0, 0, 0])
    for (name, *_), count in lines.items():
        for where in (room(name), "all"):
            sums[where][0] += count > 0
            sums[where][1] += 1
    for (name, *_), counts in branches.items():
        for where in (room(name), "all"):
            sums[where][2] += sum(count > 0 for count in counts)
            sums[where][3] += 2
    print(f"{'room':10} {'lines %':>8} {'branches %':>11} {'branches':>9}")
    for where in sorted(sums, key=lambda w: (w == "all", w)):
        ran, of_lines, took, of_branches = sums[where]
        print(f"{where:10} {percent(ran, of_lines):>8} {percent(took, of_branches):>11} {of_branches:9}")
    print(f"figure branch_coverage {percent(sums['all'][2], sums['all'][3])}")


def missed(lines, branches):
    for (name, line, column, end, end_column), counts in sorted(branches.items()):
        if 0 in counts:
            text = (ROOT / "include/weft" / name).read_text().splitlines()
            condition = " ".join([*text[line - 1:end - 1], text[end - 1][:end_column - 1]])[column - 1:]
            never = "neither" if counts == [0, 0] else "never true" if counts[0] == 0 else "never false"
            print(f"{name}:{line}: {never}: {condition}")
    for name, line in sorted(place for place, count in lines.items() if count == 0):
        print(f"{name}:{line}: never ran")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--missed", action="store_true")
    parser.add_argument("folder", type=pathlib.Path)
    parser.add_argument("labels")
    options = parser.parse_args()
    lines, branches = taken(records(options.folder, options.labels))
    if options.missed:
        missed(lines, branches)
    table(lines, branches)


if __name__ == "__main__":
    main()
