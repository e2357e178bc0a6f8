#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Checks that every relative link in the *.md files of a tree leads to a file or folder, and to a heading if it names one.

usage: check_links.py <root> | --control

--control demands that planted faults are reported, each of them, and nothing else. Hidden folders and folders named
build are left out. Links to other sites are not followed.
"""
import pathlib
import re
import sys
import tempfile

link = re.compile(r"!?\[[^\]]*\]\(([^()\s]+(?:\([^()\s]*\)[^()\s]*)*)\)")
fence = re.compile(r"^ {0,3}(```+|~~~+)")
elsewhere = re.compile(r"^[a-z][a-z+.-]*:", re.IGNORECASE)


def prose(text):
    """The text with empty lines in place of fenced code."""
    inside, lines = None, []
    for line in text.splitlines():
        mark = fence.match(line)
        if mark and inside is None:
            inside = mark[1]
        elif mark and mark[1].startswith(inside):
            inside = None
        elif inside is None:
            lines.append(line)
            continue
        lines.append("")
    return "\n".join(lines)


def anchors(path):
    """The names by which headings can be linked, spelt as GitHub does."""
    seen, names = {}, set()
    for line in prose(path.read_text()).splitlines():
        heading = re.match(r"#{1,6}\s+(.*?)\s*#*$", line)
        if not heading:
            continue
        words = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading[1])
        name = re.sub(r"[^\w\- ]", "", words.replace("`", "").lower()).replace(" ", "-")
        count = seen.get(name, 0)
        seen[name] = count + 1
        names.add(name if count == 0 else f"{name}-{count}")
    return names


def broken(root):
    """One line per link that leads nowhere."""
    for page in sorted(root.rglob("*.md")):
        if any(part.startswith(".") or part == "build" for part in page.relative_to(root).parts):
            continue
        text = re.sub(r"`[^`\n]*`", "", prose(page.read_text()))
        for found in link.finditer(text):
            target = found[1]
            if elsewhere.match(target):
                continue
            path, _, heading = target.partition("#")
            there = (page.parent / path).resolve() if path else page.resolve()
            where = f"{page.relative_to(root)}:{text.count(chr(10), 0, found.end()) + 1}: "
            if not there.is_relative_to(root):
                yield f"{where}{target} leads out of the tree"
            elif not there.exists():
                yield f"{where}{target} does not exist"
            elif heading and (there.suffix != ".md" or heading not in anchors(there)):
                yield f"{where}{target} names no heading"


def control():
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder).resolve()
        (root / "other.md").write_text("# A `heading`, here\n# A heading, here\n")
        (root / "page.md").write_text(
            "[a](other.md) [b](other.md#a-heading-here-1) [c](#top) [d](https://example.org/x.md)\n"
            "[e](missing.md)\n[f](other.md#nothing)\n[g](../out.md)\n`[h](missing.md)`\n"
            "```cpp\n[i](missing.md)\n```\n[j\nk](gone/)\n# Top\n"
        )
        found = [line.split(" ", 1)[0] for line in broken(root)]
    if found != ["page.md:2:", "page.md:3:", "page.md:4:", "page.md:10:"]:
        sys.exit(f"planted faults in lines 2, 3, 4 and 10; reported: {found}")
    print("planted faults are reported")


def main(argument):
    if argument == "--control":
        control()
        return
    faults = list(broken(pathlib.Path(argument).resolve()))
    if faults:
        sys.exit("\n".join(faults))


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
