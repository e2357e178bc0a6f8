#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compares the page "Errors" with the sentences in the code: what aborts a program or a job of several processes, and
what a static_assert says.

usage: check_messages.py <source tree> [--control]

Every such sentence of include/weft must be on the page, and every sentence on the page, in the sections "Violated
preconditions", "Ended jobs" and "Wrong calls", must be in the code. Names, numbers and places stand for the conversions (%s, %u) of the
code; "..." stands for any rest. Sentences that mean a fault of weft itself are not on the page.
With --control one sentence of the page is changed, and must be missed.
"""
import pathlib
import re
import sys

literals = r'((?:"(?:[^"\\]|\\.)*"\s*)+)'
aborting = re.compile(r"(?<!io::)\b(?:fail|fail_outside)\(\s*" + literals + r"|"
                      r"\bfail_after\(\s*\"[^\"]*\", [^\"]*" + literals)
asserting = re.compile(r"\bstatic_assert\([^;\"]*(?:\"[^\"]*\"_[^;\"]*)?" + literals + r"\s*\)\s*;")
ending = re.compile(r"\bend_job(?:_soon)?\(\s*(?:std::string\()?" + literals)
of_weft_itself = ("context", "io", "system")
internal = ("objects() finds it there", "an ORWL overlay has come to a standstill",
            "two neighbours of an ORWL overlay, '%s' and '%s', are more than one iteration apart")


def text(pieces):
    return "".join(re.findall(r'"((?:[^"\\]|\\.)*)"', pieces))


def sentences(root):
    """Yields kind, file and sentence of each message in the code."""
    for path in sorted(root.rglob("*.hpp")):
        code = re.sub(r"^\s*//.*$", "", path.read_text(), flags=re.MULTILINE)
        if path.relative_to(root).parts[0] not in of_weft_itself:
            for found in aborting.finditer(code):
                sentence = text(found[1] or found[2])
                if not sentence.startswith("%"):
                    yield "aborts", path.relative_to(root), sentence
        for found in ending.finditer(code):
            yield "ends", path.relative_to(root), "process %d " + text(found[1])
        for found in asserting.finditer(code):
            yield "static_assert", path.relative_to(root), text(found[1]).removeprefix("weft: ")


def pattern(sentence, whole):
    """What a sentence of the page has to look like."""
    parts = re.split(r"%[a-z]+", sentence)
    return re.compile(".*?".join(re.escape(p) for p in parts) + ("$" if whole else ""))


def documented(section):
    """The sentences in the first column of a table: text, and whether it is a beginning only."""
    for row in section.splitlines():
        if row.startswith("| `"):
            for quoted in re.findall(r"`([^`]+)`", row.split(" | ")[0]):
                said = quoted.removeprefix("weft: ")
                yield said.removesuffix("..."), said.endswith("...")


def main(arguments):
    tree = pathlib.Path(arguments[1])
    page = (tree / "docs/reference/errors.md").read_text()
    if "--control" in arguments:
        page = page.replace("was called outside a task", "was called in no task")
    contracts, ended, wrong_calls = (re.search(rf"\n## {name}\n(.*?)(?=\n## |\Z)", page, re.DOTALL)[1]
                              for name in ("Violated preconditions", "Ended jobs", "Wrong calls"))
    code = [found for found in sentences(tree / "include/weft") if found[2] not in internal]
    wrong = []
    for kind, section, whole in (("aborts", contracts, True), ("ends", ended, False), ("static_assert", wrong_calls, False)):
        on_page = list(documented(section))
        in_code = [(file, s) for k, file, s in code if k == kind]
        # A beginning of the page agrees with a beginning of the code; otherwise the sentence is there whole.
        agree = lambda s, said, cut: (beginning(s, said) if cut or not whole else bool(pattern(s, True).match(said)))
        for file, s in in_code:
            if not any(agree(s, said, cut) for said, cut in on_page):
                wrong.append(f"{file}: not on the page: {s}")
        for said, cut in on_page:
            if not any(agree(s, said, cut) for _, s in in_code):
                wrong.append(f"on the page, not in the code: {said}")
    for line in wrong:
        print(line)
    print(f"{len(code)} sentences in the code, {len(wrong)} not as on the page")
    sys.exit(bool(wrong) != ("--control" in arguments) or not code)


def beginning(sentence, said):
    """Whether the page's beginning is one of the code's sentence."""
    return len(said) > 20 and any(pattern(sentence[:n], True).match(said) for n in range(len(sentence) + 1))


if __name__ == "__main__":
    main(sys.argv)
