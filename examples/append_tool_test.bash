#!/usr/bin/env bash
# SPDX-License-Identifier: BSL-1.0
# What append_tool prints and how it ends, for every verb and every kind of stream.
#
# usage: append_tool_test.bash <append_tool> <make_streams>
set -u
tool=$1
make=$2
here=$(mktemp -d) || exit 1
trap 'rm -rf "$here"' EXIT
cd "$here" || exit 1
"$make" . || exit 1
failed=0
# expect <status> <part of what is printed> <word>...: runs the tool.
expect() {
  local status=$1 part=$2 output
  shift 2
  output=$("$tool" "$@" 2>&1)
  local got=$?
  if [[ $got != "$status" || $output != *"$part"* ]]; then
    printf 'append_tool %s\nended with %s instead of %s, or without: %s\n%s\n\n' "$*" "$got" "$status" "$part" "$output"
    failed=1
  fi
}
expect 2 "usage: append_tool show <stream>"
expect 2 "usage:" show
expect 2 "usage:" verify a b
expect 2 "usage:" show --overwrite finished
expect 0 "layout     segmented" show finished
expect 0 "bytes      25" show finished
expect 0 "complete   yes" show plain
expect 1 "complete   no" show unfinished
expect 1 "bytes      13" show unfinished
expect 1 "do not match their checksum" show damaged
expect 1 "bytes      13" show log
expect 1 "nothing vouches for the bytes of 'alone.weft-part'" show alone
expect 1 "there is no stream 'absent'" show absent
expect 0 "25 bytes in 3 segments: every checksum is right" verify finished
expect 0 "which has no checksums" verify plain
expect 1 "the bytes from offset 4103 to 4115 of 'damaged.weft-" verify damaged
expect 1 "is not finished" verify unfinished
expect 3 "No such file or directory" verify absent
expect 0 "25 bytes written to 'out'" export finished out
[[ $(cat out) == "serial bytes in parallel" ]] || { echo "export has written: $(cat out)"; failed=1; }
expect 3 "File exists" export plain out
expect 0 "13 bytes written to 'out'" export --overwrite plain out
expect 1 "is damaged" export damaged out2
expect 0 "bytes      13" recover unfinished
expect 0 "13 bytes in 2 segments" verify unfinished
expect 0 "complete   yes" recover unfinished
expect 0 "bytes      13" recover log
[[ $(cat log) == "serial bytes " ]] || { echo "recover has kept: $(cat log)"; failed=1; }
expect 1 "only if it may be overwritten" recover damaged
expect 0 "bytes      13" recover --overwrite damaged
expect 0 "every checksum is right" verify damaged
exit $failed
