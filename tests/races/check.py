#!/usr/bin/env python3
# SPDX-License-Identifier: BSL-1.0
"""Runs each program of `planted` with 1 and with 4 workers: those with a race must be reported, the others must not.

usage: check.py PLANTED
"""
import subprocess
import sys

REPORTED = 66  # the exit status of Thread Sanitizer


def main():
    program = sys.argv[1]
    listed = subprocess.run([program], capture_output=True, text=True, check=True).stdout.splitlines()
    found = wrong = quiet = 0
    for i, line in enumerate(listed):
        race, what = line.split(maxsplit=1)
        for workers in ("1", "4"):
            done = subprocess.run([program, str(i), workers], capture_output=True, text=True, errors="replace",
                                  timeout=60)
            reported = done.returncode == REPORTED and "data race" in done.stderr
            if reported != (race == "race") or (not reported and done.returncode != 0):
                wrong += 1
                print(f"{what}, {workers} workers: status {done.returncode}, expected {race}\n{done.stderr[:2000]}")
            elif workers == "1":
                found += reported
                quiet += not reported
    print(f"figure races_found {found}\nfigure ordered_programs_silent {quiet}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
