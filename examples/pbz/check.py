#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Compares what pbz writes with what bzip2 writes, byte for byte.

usage: check.py PBZ BZIP2 CASE

Cases: text zeros random empty one_byte runs mixed pipes levels errors. Exit status: 0 if all was equal.
"""
import filecmp
import os
import pathlib
import random
import subprocess
import sys
import tempfile

PBZ, BZIP2 = sys.argv[1:3]
checked = 0


def words(size, seed=1):
    """Text with a few thousand words, some of them much more frequent than others."""
    rng = random.Random(seed)
    letters = "etaoinshrdlucmfwygpbvk"
    vocabulary = ["".join(rng.choices(letters, range(len(letters), 0, -1), k=rng.randint(2, 10))) for _ in range(4000)]
    weights = [1 / (rank + 2) for rank in range(len(vocabulary))]
    text, length = [], 0
    while length < size:
        line = " ".join(rng.choices(vocabulary, weights, k=12)) + "\n"
        text.append(line)
        length += len(line)
    return "".join(text).encode()[:size]


def no_runs(size, seed=2):
    """Bytes none of which equals its neighbour, without the byte 255."""
    rng = random.Random(seed)
    last, data = 254, bytearray()
    while len(data) < size:
        last = (last + rng.randint(1, 254)) % 255
        data.append(last)
    return bytes(data)


def same(data, what, *options, level="-9", workers=4):
    """Through pipes on both sides."""
    global checked
    mine = subprocess.run([PBZ, level, "-p", str(workers), *options], input=data, capture_output=True, check=False)
    stock = subprocess.run([BZIP2, level, "-c"], input=data, capture_output=True, check=True)
    if mine.returncode != 0:
        sys.exit(f"{what}: status {mine.returncode}, {mine.stderr.decode()}")
    if mine.stdout != stock.stdout:
        first = next((i for i, (a, b) in enumerate(zip(mine.stdout, stock.stdout)) if a != b), "the shorter one's end")
        sys.exit(f"{what}: {len(mine.stdout)} bytes, bzip2 gives {len(stock.stdout)}; they differ from {first} on")
    checked += 1


def runs():
    """Runs of all lengths that are treated alike or differently, around the end of a block."""
    full = 100000 - 19
    base = no_runs(full + 20)
    for before in (0, 1, 2, 3, 4, 5, 6):  # so many coded bytes are missing when the run begins
        for length in (1, 3, 4, 5, 254, 255, 256, 259, 260, 511):
            for rest in (b"", base[:7]):
                data = base[:full - before] + b"\xff" * length + rest
                same(data, f"a run of {length}, {before} before the end, {len(rest)} behind", level="-1", workers=2)
    full = 900000 - 19
    base = no_runs(full + 20)
    for before, length in ((0, 1), (0, 300), (1, 3), (1, 255), (1, 256), (4, 4), (4, 259), (5, 260), (5, 5)):
        same(base[:full - before] + b"\xff" * length + base[:100], f"-9: a run of {length}, {before} before the end")
    for size in (full - 1, full, full + 1, 2 * full, 2 * full + 1):
        same(no_runs(size), f"{size} bytes without runs")


def mixed():
    rng = random.Random(3)
    parts = []
    for i in range(60):
        kind = i % 5
        if kind == 0:
            parts.append(words(rng.randint(1, 200000), i))
        elif kind == 1:
            parts.append(bytes([i]) * rng.choice((3, 4, 5, 254, 255, 256, 260, 700, 600000)))
        elif kind == 2:
            parts.append(rng.randbytes(rng.randint(1, 150000)))
        elif kind == 3:
            parts.append(bytes(range(256)) * rng.randint(1, 600))
        else:
            parts.append(b"".join(bytes([rng.randrange(3)]) * rng.randint(1, 9) for _ in range(30000)))
    data = b"".join(parts)
    same(data, "a mixture")
    same(data, "a mixture in small blocks", level="-1")
    same(data, "a mixture with one worker", workers=1)


def pipes():
    """A sender that hesitates, and files instead of pipes."""
    data = words(2500000)
    with tempfile.TemporaryDirectory() as folder:
        there = pathlib.Path(folder)
        (there / "in").write_bytes(data)
        subprocess.run([BZIP2, "-9", "-k", "-c", there / "in"], stdout=open(there / "stock", "wb"), check=True)
        slow = subprocess.Popen([PBZ, "-p", "3"], stdin=subprocess.PIPE, stdout=open(there / "slow", "wb"))
        for at in range(0, len(data), 33333):
            slow.stdin.write(data[at:at + 33333])
            slow.stdin.flush()
        slow.stdin.close()
        ways = {"slow": slow.wait()}
        ways["in.bz2"] = subprocess.run([PBZ, there / "in"], check=False).returncode
        ways["named"] = subprocess.run([PBZ, "-v", there / "in", there / "named"], stderr=subprocess.DEVNULL,
                                       check=False).returncode
        ways["to_output"] = subprocess.run([PBZ, "-c", there / "in"], stdout=open(there / "to_output", "wb"),
                                           check=False).returncode
        ways["from_input"] = subprocess.run([PBZ, "-", there / "from_input"], stdin=open(there / "in", "rb"),
                                            check=False).returncode
        for way, status in ways.items():
            if status != 0 or not filecmp.cmp(there / "stock", there / way, shallow=False):
                sys.exit(f"{way}: status {status}, or not what bzip2 gives")
        left = sorted(f.name for f in there.iterdir())
        if left != sorted(["in", "stock", *ways]):
            sys.exit(f"there are also other files: {left}")


def refused(what, *arguments, expect, **more):
    done = subprocess.run([PBZ, *arguments], stdin=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False,
                          **{"stdout": subprocess.DEVNULL, **more})
    text = done.stderr.decode()
    if done.returncode != 1 or expect not in text:
        sys.exit(f"{what}: status {done.returncode}, said: {text}")


def errors():
    with tempfile.TemporaryDirectory() as folder:
        there = pathlib.Path(folder)
        data = words(2000000)
        (there / "in").write_bytes(data)
        (there / "old").write_bytes(b"old")
        refused("an existing output", there / "in", there / "old", expect="old")
        if (there / "old").read_bytes() != b"old":
            sys.exit("an existing output was changed")
        refused("an input that is not there", there / "nothing", there / "out", expect="No such file")
        refused("a folder as input", there, there / "out", expect="directory")
        refused("a folder that is not there", there / "in", there / "nowhere" / "out", expect="No such file")
        refused("an unknown option", "-y", expect="usage")
        refused("a wrong number", "-p", "0", expect="usage")
        refused("a full device", "-c", there / "in", stdout=open("/dev/full", "wb"), expect="No space")
        read, write = os.pipe()
        os.close(read)
        refused("a closed pipe", "-c", there / "in", stdout=write, expect="ipe")
        os.close(write)
        stuck = subprocess.Popen([PBZ, "-", there / "out"], stdin=subprocess.PIPE, stderr=subprocess.PIPE)
        stuck.stdin.write(data)
        stuck.stdin.flush()
        stuck.terminate()
        stuck.wait()  # its input has not ended
        stuck.stdin.close()
        said = stuck.stderr.read().decode()
        if stuck.returncode not in (1, -15):
            sys.exit(f"ended by a signal: status {stuck.returncode}, said: {said}")
        left = sorted(f.name for f in there.iterdir())
        if left != ["in", "old"]:
            sys.exit(f"there is an output that is not complete: {left}")
        subprocess.run([PBZ, "-f", there / "in", there / "old"], check=True)
        if subprocess.run([BZIP2, "-dc", there / "old"], capture_output=True, check=True).stdout != data:
            sys.exit("-f did not replace the old output")


def main():
    case = sys.argv[3]
    if case == "text":
        data = words(3000000)
        same(data, "text")
        same(data, "text, one worker", workers=1)
    elif case == "zeros":
        for size in (899981 * 51, 46000000, 255 * 179997, 255 * 179997 + 1):  # about a block each
            same(bytes(size), f"{size} zeros")
    elif case == "random":
        same(random.Random(4).randbytes(5000000), "random bytes")
    elif case == "empty":
        same(b"", "nothing")
        same(b"", "nothing, small blocks", level="-1")
    elif case == "one_byte":
        for value in (0, 65, 255):
            same(bytes([value]), f"one byte, {value}")
    elif case == "levels":
        data = words(1000000)
        for level in (1, 2, 5, 8):
            same(data, f"level {level}", level=f"-{level}")
    else:
        {"runs": runs, "mixed": mixed, "pipes": pipes, "errors": errors}[case]()
    print(f"{case}: {checked} outputs equal" if checked else f"{case}: as expected")


main()
