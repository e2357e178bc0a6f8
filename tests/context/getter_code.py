# SPDX-License-Identifier: BSL-1.0
"""Compiles getter.cpp in every way a user may and reads the machine code of context::current() from it.

usage: getter_code.py COMPILER OBJDUMP INCLUDE_DIR TESTS_DIR WORK_DIR
Promised: at most two instructions (one in a program), no call, reads merged between calls and repeated after them,
one variable for all translation units and shared libraries.
"""
import pathlib
import platform
import re
import subprocess
import sys

compiler, objdump, include, tests, work = sys.argv[1:6]
work = pathlib.Path(work)
work.mkdir(parents=True, exist_ok=True)
if platform.machine() != "x86_64":
    print("getter_code: only x86-64 has the short form; nothing checked")
    sys.exit(0)
failures = []


def run(*words):
    result = subprocess.run([str(w) for w in words], capture_output=True, text=True)
    if result.returncode != 0:
        failures.append(f"status {result.returncode}: {' '.join(map(str, words))}\n{result.stdout}{result.stderr}")
    return result


def instructions(binary, function):
    """The function's instructions, mnemonic and operands."""
    text = run(objdump, "-d", "--no-show-raw-insn", f"--disassemble={function}", binary).stdout
    found = re.search(rf"<{function}>:\n((?: .*\n)+)", text)
    if not found:
        failures.append(f"{binary}: no function {function}")
        return []
    lines = [line.split("\t", 1)[1].strip() for line in found.group(1).splitlines() if "\t" in line]
    end = next((i for i, line in enumerate(lines) if line.startswith("ret")), len(lines) - 1)
    return [line for line in lines[: end + 1] if not line.startswith(("nop", "endbr"))]


def check(binary, most):
    once = instructions(binary, "getter_once")
    body = once[:-1]
    if not once or len(body) > most or not all("mov" in line for line in body) or "%fs:" not in body[-1]:
        failures.append(f"{binary}: current() takes {body}, expected at most {most} moves")
    for function, reads in (("getter_twice", 1), ("getter_around", 2)):
        code = instructions(binary, function)
        count = sum("%fs:" in line for line in code)
        if count != reads:
            failures.append(f"{binary}: {function} reads {count} times, expected {reads}: {code}")
    print(f"{binary.name}: {'; '.join(body)}")


flags = ["-std=c++20", "-I", include, "-I", tests, "-fno-stack-protector"]
main = pathlib.Path(tests) / "context" / "getter_main.cpp"
getter = pathlib.Path(tests) / "context" / "getter.cpp"
for level in ("-O2", "-O3"):
    for lto in ([], ["-flto"]):
        for name, code, link, most in (
            ("fixed", ["-fno-pie"], ["-no-pie"], 1),
            ("pie", ["-fPIE"], ["-pie"], 1),
            ("pic_in_program", ["-fPIC"], ["-pie"], 2),
        ):
            program = work / f"{name}{level}{''.join(lto)}"
            # One partition per file: the linker then meets the assembler's names across partitions.
            apart = ["-flto-partition=1to1"] if lto and "clang" not in run(compiler, "--version").stdout else []
            if run(compiler, *flags, level, *lto, *code, *apart, *link, getter, main, "-o", program).returncode == 0:
                check(program, most)
                run(program)
        library = work / f"libgetter{level}{''.join(lto)}.so"
        program = work / f"with_library{level}{''.join(lto)}"
        # The library calls opaque() of the program, so undefined symbols are right.
        made = run(compiler, *flags, level, *lto, "-fPIC", "-shared", getter, "-o", library)
        if made.returncode == 0:
            check(library, 2)
            if run(compiler, *flags, level, *lto, "-fPIE", "-pie", "-rdynamic", main, library,
                   f"-Wl,-rpath,{work}", "-o", program).returncode == 0:
                run(program)

for failure in failures:
    print("FAILED:", failure)
sys.exit(1 if failures else 0)
