#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# What lk23_ring_ooc does with files of an earlier job: it goes on, and where one is missing, has another size, or has
# seen other sweeps, the job ends with one message that names it. usage: lk23_ring_test.bash MPIEXEC PROGRAM
set -u
mpiexec=$1 program=$2

ring() { "$mpiexec" --oversubscribe -n "$1" "$program" "${@:2}" 2>&1; }
complain() { echo "lk23_ring_test: $*"; exit 1; }
# refused <regex> <argument of ring>...: the job fails, and one line says this.
refused() {
  local out status
  out=$(ring "${@:2}")
  status=$?
  [[ $status != 0 ]] || complain "'$*' does not fail: $out"
  [[ $(grep -Ec "weft: process [0-9] ends by an exception: .*$1" <<<"$out") == 1 ]] || complain "'$*' says: $out"
  ! grep -q "every bit" <<<"$out" || complain "'$*' goes on: $out"
}

rm -rf files
mkdir files
ring 2 200 5 2 files keep | grep -c "every bit as in the plain loops: yes" | grep -qx 2 || complain "it does not begin"
ring 2 200 7 1 files more | grep -c "every bit as in the plain loops: yes" | grep -qx 2 || complain "it does not go on"
cp files/lk23-ring-1 kept
rm files/lk23-ring-1
refused "lk23-ring-1'?: No such file" 2 200 7 2 files more
ring 2 160 12 2 . keep >/dev/null
mv lk23-ring-1 files/lk23-ring-1
refused "'files/lk23-ring-1' has 80 x 160 points; process 1 of 2 needs 96 x 200" 2 200 7 2 files more
mv kept files/lk23-ring-1
rm -f lk23-ring-0
ring 2 200 5 2 . keep >/dev/null
mv lk23-ring-1 files/lk23-ring-1
refused "'files/lk23-ring-1' has seen 5 sweeps, the file of process 0 12" 2 200 7 2 files more
rm -rf files lk23-ring-0
echo passed
