#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Kills a job with a partitioned step at any moment, and goes on with another number of processes, so many times. The job that
comes then is let end; its result must be that of a job that nobody has killed.

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

endless = 10**9  # steps, of jobs that are killed: however fast the machine is, they do not end before
more = 200  # steps of the last job, beyond its checkpoint
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

    def start(file, processes, steps):
        return subprocess.Popen([mpiexec, *options, "-n", str(processes), program, "resume", file, str(steps)],
                                stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

    def numbers(said):
        return dict(line.split() for line in said.splitlines() if line.split()[:1] in (["resumed"], ["result"]))

    file = os.path.join(folder.name, "state")
    at, moved = 0, 0
    for job_number in range(kills + 1):
        processes = lot.randint(1, 3)
        to_be_killed = job_number < kills
        job = start(file, processes, endless if to_be_killed else f"+{more}")
        first = job.stdout.readline()  # so that the moments are in the run
        if to_be_killed:
            time.sleep(lot.random() * 0.2)
            check(job.poll() is None, f"job {job_number} ended before it could be killed, with status {job.returncode}")
            kill(program, file)
        said = numbers(first + job.communicate()[0])
        check("resumed" in said, f"{processes} processes have not begun")
        now = int(said["resumed"])
        check(at <= now, f"the job goes on from {now}, and from {at} before")
        moved += now > at
        at = now
        check((job.returncode == 0) != to_be_killed, f"job {job_number} ended with status {job.returncode}")
        check(("result" in said) != to_be_killed, f"job {job_number} said {said}")
    print(f"killed {kills} times, resumed from {moved} checkpoints, at last from {at} of {at + more} steps")
    check(moved > 0, "no checkpoint was used")

    began = time.monotonic()
    expected = numbers(start(os.path.join(folder.name, "whole"), 1, at + more).communicate()[0])
    check(expected.get("resumed") == "0" and "result" in expected, f"the job that is not killed says {expected}")
    print(f"not killed: {time.monotonic() - began:.2f} s")
    check(said["result"] == expected["result"], f"{said} in place of {expected}")


if __name__ == "__main__":
    main(*sys.argv[1:])
