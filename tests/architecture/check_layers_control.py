#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Negative control of check_layers.py: plants one violation of each kind and demands exactly these reports.

usage: check_layers_control.py <check_layers.py> <foreign_names.txt>
"""
import pathlib
import re
import subprocess
import sys
import tempfile

layers = "version.hpp -1\nbase 0\ncontext 1\nobserve 1\nflow 3\n"
opening = "// SPDX-License-Identifier: BSL-1.0\n// States a duty.\n#pragma once\n"


def header(body):
    return opening + body + "\n"


# path, text, kinds that must be reported for it
planted = [
    ("version.hpp", header(""), []),
    ("base/config.hpp", header("#define WEFT_GOOD 1\n#define BAD 1"), ["macro"]),
    ("base/good.hpp", header("#include <weft/version.hpp>\n#include <weft/base/config.hpp>\n#include <vector>"), []),
    ("base/words.hpp", header("// _Reserved __here #define\nconst char* s = \"a__b\"; /* __c\n_D */ int e = '\"';"), []),
    ("base/upward.hpp", header("#include <weft/flow/good.hpp>"), ["layer"]),
    ("base/top.hpp", header("#include <weft/weft.hpp>"), ["layer"]),
    ("base/long.hpp", header("// line\n" * 398), ["length"]),
    ("base/just_fits.hpp", header("// line\n" * 396), []),
    ("base/no_licence.hpp", "#pragma once\n", ["opening"]),
    ("base/no_duty.hpp", "// SPDX-License-Identifier: BSL-1.0\n#pragma once\n", ["opening"]),
    ("base/no_sentence.hpp", opening.replace("duty.", "duty"), ["opening"]),
    ("base/two_duties.hpp", opening.replace("duty.", "duty. And another."), ["opening"]),
    ("base/no_pragma.hpp", opening.replace("#pragma once\n", ""), ["opening"]),
    ("base/macro.hpp", header("#define WEFT_ELSEWHERE 1"), ["macro"]),
    ("base/undef.hpp", header("#undef linux"), ["macro"]),
    ("base/underscores.hpp", header("inline int a__b = __builtin_popcount(3u);"), ["name"]),
    ("base/capital.hpp", header("struct _Capital {};"), ["name"]),
    ("base/in_abi.hpp", header("#include <weft/base/good.hpp>\nnamespace weft::inline WEFT_ABI::base {\n}"), []),
    ("base/error.hpp", header("namespace weft {\n}"), []),
    ("base/out_of_abi.hpp", header("#include <weft/base/config.hpp>\nnamespace weft::base {\n}"), ["abi"]),
    ("base/unknown_abi.hpp", header("namespace weft::inline WEFT_ABI {\n}"), ["abi"]),
    ("base/quoted.hpp", header('#include "good.hpp"'), ["include"]),
    ("base/missing.hpp", header("#include <weft/base/nowhere.hpp>"), ["include"]),
    ("base/chicken.hpp", header("#include <weft/base/egg.hpp>"), []),
    ("base/egg.hpp", header("#include <weft/base/chicken.hpp>"), ["cycle"]),
    ("base/detail/own.hpp", header("#include <weft/base/good.hpp>"), []),
    ("base/own_detail.hpp", header("#include <weft/base/detail/own.hpp>"), []),
    ("context/sideways.hpp", header("#include <weft/observe/good.hpp>"), ["layer"]),
    ("observe/good.hpp", header(""), []),
    ("flow/foreign_detail.hpp", header("#include <weft/base/detail/own.hpp>"), ["detail"]),
    ("flow/good.hpp", header("#include <weft/base/good.hpp>\n#include <weft/observe/definitions.hpp>"), []),
    ("cellar/unknown.hpp", header(""), ["layer"]),
    ("observe/definitions.hpp", header("#include <weft/observe/good.hpp>"), []),
    ("flow/half.hpp", header("#include <weft/observe/good.hpp>"), ["whole"]),
    ("flow/whole.hpp", header("#include <weft/observe/definitions.hpp>\n#include <weft/flow/detail/half.hpp>"), []),
    ("flow/detail/half.hpp", header("#include <weft/observe/good.hpp>"), []),
    ("weft.hpp", header("#include <weft/flow/good.hpp>\n#include <weft/version.hpp>"), []),
]


def main(check, foreign):
    with tempfile.TemporaryDirectory() as folder:
        root = pathlib.Path(folder, "weft")
        for path, text, _ in planted:
            file = root / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        (pathlib.Path(folder) / "layers.txt").write_text(layers)
        run = subprocess.run(
            [sys.executable, check, root, pathlib.Path(folder, "layers.txt"), foreign], capture_output=True, text=True
        )
    print(run.stdout, run.stderr, sep="")
    reported = sorted(re.findall(r"^(\S+?):\d+: (\w+):", run.stdout, re.MULTILINE))
    expected = sorted((path, kind) for path, _, kinds in planted for kind in kinds)
    for line in sorted(set(expected) - set(reported)):
        print("not reported:", *line)
    for line in sorted(set(reported) - set(expected)):
        print("reported without cause:", *line)
    kinds = {kind for _, kind in expected}
    if reported != expected or run.returncode != 1:
        sys.exit("the layer test does not see what it should")
    print(f"{len(expected)} planted violations of {len(kinds)} kinds were reported")


if __name__ == "__main__":
    main(*sys.argv[1:])
