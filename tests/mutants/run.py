#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Breaks a copy of the headers with each patch, one at a time, and demands that the test it names fails.

usage: run.py [--build DIR] [--jobs N] [--sample N] [name ...]

DIR is a configured build directory (default: build/release), whose compile commands are used. Each patch begins with a
line that says what it breaks and a line `# test: <name>`. The mutants are built with little optimisation; a test must
build, pass over the unbroken headers, and fail over the broken ones, by a status, a signal or its time limit of 60
seconds, with the seed that random tests have by default. All patches must apply; with --sample only N of them are tried,
at most four of a test, chosen by WEFT_TEST_SEED, which differs from commit to commit, and all with WEFT_TEST_LONG. Exit
status: 0 if every mutant that was tried was killed.
"""
import argparse
import concurrent.futures
import json
import os
import pathlib
import random
import shlex
import shutil
import subprocess
import sys
import tempfile

HERE = pathlib.Path(__file__).resolve().parent
ROOT = HERE.parents[1]
DEFINITIONS = ROOT / "cmake/compiled.cpp"
LIMIT = 60  # seconds, for one run of a test


class Test:
    """How an executable of the build is compiled and linked over other headers.

    The library's own definitions are compiled apart, as by weft::compiled, unless the test defines them itself. What a
    patch does not touch is taken from the build over the unbroken headers.
    """

    def __init__(self, name, build, commands):
        target = "weft_test_" + "".join(c if c.isalnum() else "_" for c in name)
        self.name = name
        self.objects = [c for c in commands if f"/{target}.dir/" in c["command"]]
        if not self.objects:
            sys.exit(f"no test is called '{name}'")
        main = [c for c in commands if c["file"].endswith("/tests/support/main.cpp")]
        programs = any("int main(" in pathlib.Path(c["file"]).read_text() for c in self.objects)
        self.main = [] if programs else [str(build / shlex.split(main[0]["command"])[-3])]
        self.compiled = True  # until it shows that the test defines itself what would be
        uring = any("-DWEFT_LIBURING=1" in c["command"] for c in self.objects)
        self.libraries = ["-lboost_context", "-pthread", *(["-luring"] if uring else [])]
        self.unbroken = {}  # source: its object, and the headers it includes, relative to `headers`

    def sources(self):
        """The sources with the words of their compiler commands, but for headers and outputs."""
        for entry in self.objects:
            words = [w for w in shlex.split(entry["command"]) if not w.startswith(("-Werror", "-M", "-O3"))]
            out = words.index("-o")
            words = words[:out] + words[out + 2 :]
            words = [w for w in words if not w.endswith(".o.d") and not w.startswith("tests/")]
            words = [w for w in words if w != "-DWEFT_COMPILED=1"] + ["-w"]
            if "-O1" not in words:
                words.append("-O0")
            words.append("-DWEFT_MUTANTS=1")  # a test may leave out what takes long, and kills nothing more
            if self.compiled:
                words.append("-DWEFT_COMPILED=1")
            yield entry["file"], words, entry["directory"]
        if self.compiled:
            words = [str(DEFINITIONS) if w == entry["file"] else w for w in words] + ["-DWEFT_DEFINITIONS=1"]
            yield str(DEFINITIONS), words, entry["directory"]

    def run(self, headers, work, touched=None):
        """Builds it, but for what includes no header that is touched, and runs it. Returns (built, status, output)."""
        program = work / "test"
        linked = [*self.main]
        for i, (source, words, directory) in enumerate(self.sources()):
            known, included = self.unbroken.get(source, (None, set()))
            if touched is not None and known is not None and not included & touched:
                linked.append(str(known))
                continue
            target = work / f"{i}.o"
            words = [f"-I{headers}" if w == f"-I{ROOT / 'include'}" else w for w in words]
            words += ["-o", str(target), "-MD", "-MF", str(work / f"{i}.d")]
            done = subprocess.run(words, cwd=directory, capture_output=True, text=True)
            if done.returncode != 0:
                return False, 1, done.stderr
            if source == str(DEFINITIONS):  # a library: tests that need nothing of it may define their own in its place
                library = target.with_suffix(".a")
                subprocess.run(["ar", "rcs", str(library), str(target)], check=True)
                target = library
            linked.append(str(target))
            if touched is None:
                names = (work / f"{i}.d").read_text().replace("\\\n", " ").split()[1:]
                names = [os.path.relpath(os.path.join(directory, n), headers) for n in names]
                self.unbroken[source] = target, {n for n in names if not n.startswith("..")}
        done = subprocess.run(["c++", *linked, "-o", str(program), *self.libraries],
                              capture_output=True, text=True)
        if done.returncode != 0:
            return False, 1, done.stderr
        environment = {**os.environ, "WEFT_TEST_TIMEOUT": str(LIMIT)}
        environment.pop("WEFT_TEST_SEED", None)  # what was killed once is killed in each run
        try:
            done = subprocess.run([str(program), "--abort"], capture_output=True, text=True, errors="replace",
                                  env=environment, timeout=LIMIT + 20)
        except subprocess.TimeoutExpired:
            return True, -1, "the time limit"
        return True, done.returncode, done.stdout + done.stderr


def reason(status, output):
    for line in output.splitlines():
        if line.strip().startswith(("hang:", "simulation:", "weft:", "due to", "seed ")) or "FAILED" in line:
            return line.strip()
    return f"status {status}"


def kill(patch, tests):
    """Returns (killed, sentence)."""
    lines = patch.read_text().splitlines()
    breaks, test = lines[0].removeprefix("# "), tests[lines[1].removeprefix("# test: ")]
    touched = {line.removeprefix("+++ b/include/") for line in lines if line.startswith("+++ b/include/")}
    with tempfile.TemporaryDirectory(prefix="weft-mutant-") as folder:
        work = pathlib.Path(folder)
        shutil.copytree(ROOT / "include", work / "include")
        done = subprocess.run(["patch", "-s", "-p1", "--fuzz=0", "-i", str(patch)], cwd=work, capture_output=True,
                              text=True)
        if done.returncode != 0:
            return False, f"does not apply any more: {done.stdout.strip()}"
        built, status, output = test.run(work / "include", work, touched)
    if not built:
        return False, f"does not compile: {output[:400]}"
    if status == 0:
        return False, f"SURVIVES {test.name}: {breaks}"
    return True, f"{breaks}: {test.name}, {reason(status, output)}"


def sound(test, folder):
    """Builds the test over the unbroken headers, in the same way. Returns whether it passes, and what it printed."""
    work = folder / test.name
    work.mkdir()
    built, status, output = test.run(ROOT / "include", work)
    if not built and test.compiled:  # it defines itself what would be compiled apart
        test.compiled = False
        test.unbroken.clear()
        built, status, output = test.run(ROOT / "include", work)
    return built and status == 0, output


def sample(patches, count, chance):
    """Some of the patches, of few tests, since each test has to be built over the unbroken headers first."""
    of_test = {}
    for patch in patches:
        of_test.setdefault(patch.read_text().splitlines()[1], []).append(patch)
    chosen = []
    for test in chance.sample(sorted(of_test), len(of_test)):
        chosen += chance.sample(of_test[test], min(len(of_test[test]), 4, count - len(chosen)))
    return sorted(chosen)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", type=pathlib.Path, default=ROOT / "build/release")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    parser.add_argument("--sample", type=int)
    parser.add_argument("names", nargs="*")
    options = parser.parse_args()
    build = options.build.resolve()
    commands = json.loads((build / "compile_commands.json").read_text())
    patches = sorted(p for p in HERE.glob("*.patch") if not options.names or p.stem in options.names)
    failed = 0
    for patch in patches:
        done = subprocess.run(["patch", "-s", "-p1", "--fuzz=0", "--dry-run", "-i", str(patch)], cwd=ROOT,
                              capture_output=True, text=True)
        if done.returncode != 0:
            failed += 1
            print(f"FAIL  {patch.stem} does not apply any more: {done.stdout.strip()}", flush=True)
    print(f"figure mutants {len(patches) - failed}")
    if options.sample is not None and "WEFT_TEST_LONG" not in os.environ:
        patches = sample(patches, options.sample, random.Random(int(os.environ.get("WEFT_TEST_SEED", "0"), 0)))
    names = sorted({p.read_text().splitlines()[1].removeprefix("# test: ") for p in patches})
    tests = {name: Test(name, build, commands) for name in names}
    with tempfile.TemporaryDirectory(prefix="weft-mutant-") as folder, \
            concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        builds = pool.map(lambda test: sound(test, pathlib.Path(folder)), tests.values())
        for test, (passes, output) in zip(tests.values(), builds):
            if not passes:
                failed += 1
                print(f"FAIL  {test.name} fails over the unbroken headers\n{output[-2000:]}", flush=True)
        for patch, (killed, sentence) in zip(patches, pool.map(lambda p: kill(p, tests), patches)):
            failed += not killed
            print(f"{'ok  ' if killed else 'FAIL'}  {patch.stem}: {sentence}", flush=True)
    print(f"figure mutants_killed {len(patches) - min(failed, len(patches))}")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
