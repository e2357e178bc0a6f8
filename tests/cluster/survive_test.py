#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Kills a job of a cluster, or one process of it, at any moment, and goes on with another number of processes, until it
ends. The result must be right, and little may have been executed twice.

usage: survive_test.py <mpiexec> <survive_program> [option of mpiexec ...]
WEFT_TEST_LONG in the environment: a job of a minute with a checkpoint each second.
"""
import os
import random
import signal
import subprocess
import sys
import tempfile
import time

from checkpoint_test import check, processes_of

kills = 20
long_test = "WEFT_TEST_LONG" in os.environ
seconds = 1 if long_test else 0.05  # from one checkpoint to the next
leaves = 60000 if long_test else 4000  # of a millisecond of a processor each
longest_life = 4 if long_test else 0.4  # of a job that is killed, from the beginning of its run
slack = 0.5 if long_test else 0.25  # how late a checkpoint may be


def main(mpiexec, program, *options):
    seed = int(os.environ.get("WEFT_TEST_SEED", "1"))
    print("seed", seed)
    lot = random.Random(seed)
    # In memory, if there is such a place: where a device is slow, no checkpoint would be whole before the next kill.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    folder = tempfile.TemporaryDirectory(prefix="weft-test-", dir=memory)
    directory, work = os.path.join(folder.name, "checkpoints"), os.path.join(folder.name, "work")

    def executed():
        return int.from_bytes(open(work, "rb").read(), sys.byteorder) if os.path.exists(work) else 0

    def check_end(said, complaints, status, allowed):
        check(said == "result right\n", f"the job ended with status {status}, and said {said!r}, {complaints!r}")
        now = executed()
        print(f"executed {now} leaves of {leaves}, at most {leaves + allowed} are allowed")
        check(leaves <= now <= leaves + allowed, "too much was executed twice, or too little at all")
        check(os.listdir(directory) == [], f"the job has left {os.listdir(directory)}")
        os.remove(work)

    killed, before, allowed, found_in_all, processes, ended = 0, 0, 0, 0, 0, False
    while killed < kills or not ended:  # where one has ended before it was killed often enough, the next one begins
        processes = lot.choice([n for n in range(1, 5) if n != processes])
        job = subprocess.Popen([mpiexec, *options, "-n", str(processes), program, directory, str(seconds), str(leaves), work],
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        first = job.stdout.readline()  # so that the moments are in the run
        check(first.startswith("resumed "), f"{processes} processes have not begun")
        found = int(first.split()[1])
        found_in_all += found
        if killed < kills:
            time.sleep(lot.random() * longest_life)
            all_of_it = processes_of(program, directory)
            for process in all_of_it if lot.random() < 0.7 else all_of_it[-1:]:
                try:
                    os.kill(process, signal.SIGKILL)
                except ProcessLookupError:
                    pass
        said, complaints = job.communicate()
        if killed < kills and "result" not in said and executed() >= leaves:
            # Killed when its run had ended, or nearly: its files may have been removed, so the next one begins anew.
            killed, before, allowed, ended = killed + 1, 0, 0, False
            for name in os.listdir(directory):
                os.remove(os.path.join(directory, name))
            os.remove(work)
            continue
        ended = "result" in said or killed == kills
        if ended:
            check_end(said, complaints, job.returncode, allowed)
            before = allowed = 0
            continue
        killed += 1
        now = executed()
        print(f"{processes} processes found {found}, executed {now - before}")
        check(job.returncode != 0, "a job that was killed says that it ended well")
        # What is not in a file when a process is killed: the work of an interval, and the tasks under way.
        allowed += min(now - before, int(min(processes, len(os.sched_getaffinity(0))) * 1000 * (seconds + slack)) + processes)
        before = now
    check(found_in_all > 0, "no checkpoint was used")


if __name__ == "__main__":
    main(*sys.argv[1:])
