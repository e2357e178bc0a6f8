#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs a program that writes a stream under a kernel that refuses one of its calls, or all from one on.

usage: refusals_test.py WRITER SHIM

WRITER is kill_writer.cpp, built, and SHIM refusing_kernel.cpp, which is preloaded. Wherever a call is refused, the
writer must say so and end with status 1; what it leaves is checked as in kill_test.py.
"""
import errno
import os
import pathlib
import subprocess
import sys
import tempfile

from kill_test import check_rest

COUNT = 600  # records, 2.7 MB


def write(writer, shim, layout, folder, **settings):
    """Returns (whether a call was refused, status, message, bytes recovered, whether the file has its name)."""
    path = folder / "stream"
    done = subprocess.run([writer, "write", path, layout, str(COUNT)], capture_output=True, text=True, timeout=60,
                          env={**os.environ, "LD_PRELOAD": shim, **{k: str(v) for k, v in settings.items()}})
    if done.returncode not in (0, 1):
        sys.exit(f"{layout}, {settings}: status {done.returncode}: {done.stderr}")
    heard = done.stdout.split()
    kept, complete = check_rest(writer, layout, COUNT, path, int(heard[-1]) if heard else 0)
    for left in folder.iterdir():
        left.unlink()
    refused = done.stderr.startswith("refused\n")
    return refused, done.returncode, done.stderr.removeprefix("refused\n"), kept, complete


def main():
    writer, shim = sys.argv[1:]
    faults = partial = 0
    with tempfile.TemporaryDirectory(prefix="weft-refusals-") as name:
        folder = pathlib.Path(name)
        for layout in ("plain", "segmented"):
            refused, status, message, _, complete = write(writer, shim, layout, folder, REFUSING_BUMPY=1)
            if not refused or status != 0 or not complete:
                sys.exit(f"{layout}: interrupted and short calls: status {status}, {message}")
            for error, for_ever in ((errno.EIO, 0), (errno.ENOSPC, 1), (errno.EDQUOT, 1)):
                call = 0
                while True:
                    refused, status, message, kept, complete = write(
                        writer, shim, layout, folder, REFUSING_FROM=call, REFUSING_WITH=error,
                        REFUSING_FOR_EVER=for_ever)
                    if not refused:
                        break
                    if status != 1 or complete or os.strerror(error) not in message:
                        sys.exit(f"{layout}, call {call}, {errno.errorcode[error]}: status {status}, {message}")
                    faults += 1
                    partial += kept > 0
                    call += 1 + call // 8
                if status != 0 or not complete:
                    sys.exit(f"{layout}, without a refusal: status {status}, {message}")
    print(f"refused {faults} times; something was recovered {partial} times")
    print(f"figure stream_refusals {faults}")
    if faults < 60 or partial < 20:
        sys.exit("too few refusals came in the middle")


if __name__ == "__main__":
    main()
