#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Negative control of check_readmes.py: READMEs with one fault each, which must be reported, and one without.

usage: check_readmes_control.py <check_readmes.py>
"""
import pathlib
import subprocess
import sys
import tempfile

good = "# Room `hall` (layer 2): a room\n\n| header | duty |\n| --- | --- |\n| `a.hpp`, `detail/b.hpp` | both |\n"
cases = [
    (good, ""),
    (None, "there is no README.md"),
    (good.replace("layer 2", "layer 3"), "the title is not"),
    (good.replace("`hall`", "`cellar`"), "the title is not"),
    (good.replace("`a.hpp`, ", ""), "a.hpp is not in the table"),
    (good.replace("detail/b.hpp", "b.hpp"), "there is no b.hpp"),
    (good.replace("`a.hpp`", "`a.hpp`, `a.hpp`"), "a.hpp is there twice"),
    ("# Room `hall` (layer 2): a room\n", "is not in the table"),
]


def main(check):
    wrong = 0
    for text, expected in cases:
        with tempfile.TemporaryDirectory() as folder:
            hall = pathlib.Path(folder) / "hall"
            (hall / "detail").mkdir(parents=True)
            (hall / "a.hpp").touch()
            (hall / "detail/b.hpp").touch()
            if text is not None:
                (hall / "README.md").write_text(text)
            layers = pathlib.Path(folder) / "layers.txt"
            layers.write_text("hall 2\n")
            result = subprocess.run([sys.executable, check, folder, layers], text=True, capture_output=True)
            if expected not in result.stdout or result.returncode != bool(expected):
                wrong += 1
                print(f"expected {expected!r}:\n{result.stdout}{result.stderr}")
    print(f"{len(cases)} READMEs, {wrong} judged wrongly")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
