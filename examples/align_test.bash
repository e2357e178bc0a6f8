#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# FASTA files as others write them, with scores known by hand and those of edlib and parasail, and files that are none.
# usage: align_test.bash align        (leaves its files in the current directory)
set -u
align=$1
failed=0

gives() {  # the output, the arguments
  local wanted=$1 found
  shift
  found=$("$align" "$@" . 2>err) || { echo "align $*: $(cat err)"; failed=1; }
  [ "$found" = "$wanted" ] || { echo "align $*: '$found', expected '$wanted'"; failed=1; }
}
refuses() {  # a part of the message, the arguments
  local wanted=$1 status
  shift
  "$align" "$@" . >out 2>err
  status=$?
  [ $status -eq 1 ] || { echo "align $*: status $status, expected 1"; failed=1; }
  [ ! -s out ] || { echo "align $*: wrote '$(cat out)'"; failed=1; }
  grep -qF -- "$wanted" err || { echo "align $*: '$(cat err)', expected '$wanted'"; failed=1; }
}

# A comment, two records, lower case, lines that end like those of DOS; a blank line, and an end without a newline.
printf ';made by hand\r\n>first record\r\nkit\r\nTEN\r\n>second record\r\nAAAA\r\n' >a.fasta
printf '>b\nSIT\n\nting' >b.fasta
gives 'edit distance 3: 4 matches, 2 mismatches, 1 gaps' a.fasta b.fasta
gives 'local score 6: 3 matches, 0 mismatches, 0 gaps' --local a.fasta b.fasta

# Several tiles: 4201 and 4191 equal letters, 60 in a line.
{ echo '>long'; printf 'A%.0s' $(seq 4201) | fold -w 60; } >long.fasta
{ echo '>shorter'; printf 'a%.0s' $(seq 4191) | fold -w 60; } >shorter.fasta
gives 'edit distance 10: 4191 matches, 0 mismatches, 10 gaps' long.fasta shorter.fasta
gives 'local score 8382: 4191 matches, 0 mismatches, 0 gaps' --local long.fasta shorter.fasta

# Random sequences of several tiles, with the scores of edlib and parasail.
for seed in 1 2 3; do
  awk -v seed=$seed 'function letter() { return substr("ACGT", int(rand() * 4) + 1, 1) }
    BEGIN {
      srand(seed)
      for (i = 0; i < 1500 * seed + 1000; ++i) {
        a = a (c = letter())
        if ((x = rand()) < 0.03) continue
        b = b (x < 0.06 ? letter() : "") (x < 0.1 ? letter() : c)
      }
      print ">a\n" a >"first.fasta"
      print ">b\n" b >"second.fasta"
    }'
  score=$(edlib-aligner first.fasta second.fasta | sed -n 's/^#0: \([0-9]*\) .*/\1/p')
  found=$("$align" first.fasta second.fasta . 2>err)
  [ -n "$score" ] && [ "${found%%:*}" = "edit distance $score" ] || { echo "seed $seed: '$found', edlib: '$score'"; failed=1; }
  cat first.fasta second.fasta | parasail_aligner -a sw_striped_32 -d -M 2 -X 3 -o 4 -e 4 -x -t 1 -g scores.csv
  score=$(cut -d, -f5 scores.csv)
  found=$("$align" --local first.fasta second.fasta . 2>err)
  [ -n "$score" ] && [ "${found%%:*}" = "local score $score" ] || { echo "seed $seed: '$found', parasail: '$score'"; failed=1; }
done

refuses 'cannot read none.fasta: No such file' none.fasta b.fasta
printf '>header only\n\n>second\nACGT\n' >empty.fasta
refuses 'empty.fasta has no sequence' a.fasta empty.fasta
: >nothing.fasta
refuses 'nothing.fasta has no sequence' nothing.fasta b.fasta
printf '>x\nACGT\nAC-T\n' >gap.fasta
refuses 'gap.fasta: line 3 holds a character that is no letter' gap.fasta b.fasta
printf '\037\213\010\000' >packed.fasta
refuses 'packed.fasta: line 1 holds a character that is no letter' packed.fasta b.fasta
refuses 'the length of random sequences is too small' --random 0
"$align" a.fasta 2>err && { echo 'one file is taken'; failed=1; }
grep -qF 'usage: align' err || { echo "one file: '$(cat err)'"; failed=1; }
exit $failed
