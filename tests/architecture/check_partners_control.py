#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Negative control of check_partners.py: plants comments that name a wrong partner and demands exactly these reports.

usage: check_partners_control.py <check_partners.py>
"""
import pathlib
import re
import subprocess
import sys
import tempfile

# The line of a comment, and the kinds that must be reported for it.
planted = [
    ("// pairs with publish", []),
    ("// Acquire pairs with the release in publish.", []),
    ("// pairs with the thief's release", []),
    ("// Relaxed: ordered by the release in publish.", []),
    ("// see header.hpp", []),
    ("// pairs with nobody_there", ["partner"]),
    ("// pairs with the release in relaxed_only", ["partner"]),
    ("// ordered by the release in relaxed_only", ["partner"]),
    ("// pairs with the\n// release in relaxed_only", ["partner"]),
    ("// see gone.hpp", ["file"]),
    ('// (room/README.md, "Protocol")', []),
    ('// (room/README.md, "Protocols")', ["heading"]),
    ('// (cellar/README.md, "Protocol")', ["heading"]),
]
code = """
void publish(atomic<int>& a) noexcept {
  a.store(1, memory_order_release);
}
int relaxed_only(const atomic<int>& a) noexcept { return a.load(memory_order_relaxed); }
"""


def main(check):
    wrong = 0
    for comment, expected in planted:
        with tempfile.TemporaryDirectory() as folder:
            text = "// pairs with publish\n" + code + comment + "\nint i;\n"
            (pathlib.Path(folder) / "header.hpp").write_text(text)
            (pathlib.Path(folder) / "room").mkdir()
            (pathlib.Path(folder) / "room/README.md").write_text("# Room\n\n## Protocol\n")
            result = subprocess.run([sys.executable, check, folder], text=True, capture_output=True)
            kinds = re.findall(r"^header\.hpp:\d+: (\w+):", result.stdout, re.MULTILINE)
            if kinds != expected or result.returncode != bool(expected):
                wrong += 1
                print(f"{comment!r}: expected {expected}, reported {kinds}\n{result.stdout}{result.stderr}")
    print(f"{len(planted)} comments, {wrong} judged wrongly")
    sys.exit(wrong != 0)


if __name__ == "__main__":
    main(*sys.argv[1:])
