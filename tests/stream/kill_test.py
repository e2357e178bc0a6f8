#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Kills a program that writes a stream, at random moments, and looks at what can be recovered.

usage: kill_test.py WRITER

WRITER is kill_writer.cpp, built; the bytes that it should write are made here, anew. What is recovered must be a
beginning of them, and hold all that a commit had acknowledged; a file that has its final name must be complete.
"""
import os
import pathlib
import random
import subprocess
import sys
import tempfile
import threading
import time

TABLE = bytearray()
x = 1
for _ in range(32768):
    x = (x * 1103515245 + 12345) & 0x7FFFFFFF
    TABLE.append((x >> 16) & 0xFF)
TABLE = bytes(TABLE)


def record(i):
    at = i * 7919 % 8192
    return b"%012d " % i + TABLE[at:at + i * i % 9001]


def check(path, count):
    """Demands that the file is a beginning of the stream. Returns its size, and whether it is all of it."""
    size = 0
    with open(path, "rb") as file:
        for first in range(0, count, 1024):
            expected = b"".join(map(record, range(first, min(first + 1024, count))))
            got = file.read(len(expected))
            if got != expected[:len(got)]:
                sys.exit(f"{path}: wrong bytes behind offset {size}")
            size += len(got)
            if len(got) < len(expected):
                return size, False
        if file.read(1):
            sys.exit(f"{path}: more bytes than the stream has, behind offset {size}")
    return size, True


def last_line(pipe):
    """The number in the last whole line; the rest, if any, was cut off."""
    lines = pipe.read().split(b"\n")[:-1]
    return int(lines[-1]) if lines else 0


def check_rest(writer, layout, count, path, acknowledged):
    """Recovers and checks what the writer has left. Returns (bytes recovered, whether the file had its name)."""
    complete = path.exists()
    copy = path.parent / "copy"
    done = subprocess.run([writer, "recover", path, copy], capture_output=True, text=True, check=True)
    kept = int(done.stdout.split()[0])
    if kept < 0:
        if acknowledged != 0 or complete:
            sys.exit(f"{acknowledged} bytes were acknowledged, but: {done.stdout}")
        return 0, complete
    size, whole = check(copy, count)
    if size != kept or size < acknowledged:
        sys.exit(f"{size} bytes recovered, {kept} promised, {acknowledged} acknowledged")
    if complete and not whole:
        sys.exit(f"the {layout} file had its name before it was complete")
    return kept, complete


def strike(writer, layout, count, folder, delay):
    """Writes, kills, recovers and checks once. Returns (killed, bytes recovered, bytes acknowledged)."""
    path = folder / "stream"
    begin = time.monotonic()
    with subprocess.Popen([writer, "write", path, layout, str(count)], stdout=subprocess.PIPE) as process:
        heard = []
        listener = threading.Thread(target=lambda: heard.append(last_line(process.stdout)))
        listener.start()
        try:
            process.wait(timeout=None if delay is None else max(0.0, delay - (time.monotonic() - begin)))
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
        listener.join()
    took = time.monotonic() - begin
    killed = process.returncode == -9
    if not killed and process.returncode != 0:
        sys.exit(f"the writer failed with status {process.returncode}")
    kept, complete = check_rest(writer, layout, count, path, heard[0])
    if not killed and not complete:
        sys.exit("the writer has ended, and there is no file")
    for left in folder.iterdir():
        left.unlink()
    return killed, kept, heard[0], took


def main():
    writer = sys.argv[1]
    long = "WEFT_TEST_LONG" in os.environ
    kills = 200 if long else 30
    count = 2**31 // 4500 if long else 12_000
    dice = random.Random(int(os.environ.get("WEFT_TEST_SEED", "1")))
    seen = {"plain": 0, "segmented": 0}
    partial = dict(seen)
    acknowledged = dict(seen)
    with tempfile.TemporaryDirectory(prefix="weft-kill-") as name:
        folder = pathlib.Path(name)
        usual = {layout: strike(writer, layout, count, folder, None)[3] for layout in seen}
        for attempt in range(3 * kills):
            layout = "plain" if attempt % 2 == 0 else "segmented"
            killed, kept, told, took = strike(writer, layout, count, folder, dice.uniform(0, usual[layout]))
            if not killed:  # the machine was slower when the usual time was taken
                usual[layout] = min(usual[layout], took)
            seen[layout] += killed
            partial[layout] += killed and kept > 0
            acknowledged[layout] += killed and told > 0
            if sum(seen.values()) == kills:
                break
    print(f"killed: {seen}, something was recovered {partial}, after a commit {acknowledged}")
    print(f"figure stream_writer_kills {sum(seen.values())}")
    if sum(seen.values()) < kills or min(partial.values()) < kills // 8 or min(acknowledged.values()) < kills // 10:
        sys.exit("too few kills came in the middle")


if __name__ == "__main__":
    main()
