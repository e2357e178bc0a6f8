#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Kills a job with a partitioned step at any moment, and goes on with another number of processes, until it ends.

usage: checkpoint_test.py <mpiexec> <partition_program> [option of mpiexec ...]
"""
import os
import pathlib
import random
import signal
import subprocess
import sys
import tempfile
import time

steps = 3000
kills = 20


def check(condition, sentence):
    if not condition:
        sys.exit(sentence)


def processes_of(program, file):
    """The numbers of all processes of the job but mpiexec, which removes what they leave."""
    found = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0") if entry.name.isdigit() else [b""]
        except OSError:  # it has ended
            continue
        if words[0] == program.encode() and file.encode() in words:
            found.append(int(entry.name))
    return found


def kill(program, file):
    for process in processes_of(program, file):
        try:
            os.kill(process, signal.SIGKILL)
        except ProcessLookupError:
            pass


def main(mpiexec, program, *options):
    seed = int(os.environ.get("WEFT_TEST_SEED", "1"))
    print("seed", seed)
    lot = random.Random(seed)
    # In memory, if there is such a place: where a device is slow, no checkpoint would be whole before the next kill.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.TemporaryDirectory(prefix="weft-test-", dir=memory)

    def start(file, processes):
        return subprocess.Popen([mpiexec, *options, "-n", str(processes), program, "resume", file, str(steps)],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def numbers(said):
        return dict(line.split() for line in said.splitlines() if line.split()[:1] in (["resumed"], ["result"]))

    began = time.monotonic()
    expected = numbers(start(os.path.join(folder.name, "whole"), 1).communicate()[0])
    check(expected.get("resumed") == "0" and "result" in expected, f"the job that is not killed says {expected}")
    print(f"not killed: {time.monotonic() - began:.2f} s")

    file = os.path.join(folder.name, "state")
    at, killed = 0, 0
    while True:
        processes = lot.randint(1, 3)
        job = start(file, processes)
        first = job.stdout.readline()  # so that the moments are in the run
        to_be_killed = killed < kills
        if to_be_killed:
            time.sleep(lot.random() * 0.2)
            kill(program, file)
            killed += 1
        said = numbers(first + job.communicate()[0])
        check("resumed" in said, f"{processes} processes have not begun")
        now = int(said["resumed"])
        check(at <= now <= steps, f"the job goes on from {now}, and from {at} before")
        at = now
        if "result" in said:
            break
        check(to_be_killed, f"the job ended without a result, with status {job.returncode}")
    print(f"killed {killed} times, at last resumed from {at} of {steps}")
    check(said["result"] == expected["result"], f"{said} in place of {expected}")
    check(at > 0, "no checkpoint was used")


if __name__ == "__main__":
    main(*sys.argv[1:])
