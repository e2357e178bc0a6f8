#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""What Doxygen reads in place of a source file. usage: filter.py <file>

Headers lose the inline namespace, which nobody writes, and each part of a docstring becomes a paragraph. Pages lose
links to what is not part of the site, but keep their text; their anchors get Doxygen's spelling.
"""
import pathlib
import re
import sys


parts = "Requires|Effects|Returns|Throws|Suspends|Cost|Thread safety|Example|Source"
part = re.compile(rf"^( *)/// (\*(?:{parts})\*:)", re.MULTILINE)
pages = pathlib.Path(__file__).resolve().parents[1]


def page(path, text):
    def link(match):
        words, target = match[1], match[2]
        if re.match(r"[a-z]+:", target):
            return match[0]
        file, _, anchor = target.partition("#")
        to = (path.parent / file).resolve()
        if file and (to.suffix != ".md" or not (to.is_relative_to(pages) or to == pages.parent / "README.md")):
            return words
        return f"[{words}]({file})" if file else words

    return re.sub(r"(?<!!)\[([^\]\n]*)\]\(([^)\s]+)\)", link, text)


def main(name):
    path = pathlib.Path(name)
    text = path.read_text()
    if path.suffix == ".md":
        text = page(path, text)
    else:
        text = text.replace("weft::inline WEFT_ABI", "weft")
        text = part.sub(r"\1///\n\1/// \2", text)  # each part of a docstring is a paragraph
    sys.stdout.write(text)


if __name__ == "__main__":
    main(sys.argv[1])
