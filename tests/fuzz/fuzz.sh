#!/bin/sh
# SPDX-License-Identifier: MIT
# fuzz.sh - a fuzzer's short run: a number of runs, not a time, from one seed. usage: fuzz.sh FUZZER RUNS [FILE...]: what it begins with
set -eu
fuzzer=$(readlink -f "$1") runs=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/seeds" "$work/found"
for f; do
    cp "$f" "$work/seeds"
done
cd "$work"
status=0
UMD_LOG_CONSOLE=off "$fuzzer" -runs="$runs" -seed=1 -max_len=65536 -rss_limit_mb=4096 -timeout=600 found seeds >out 2>&1 || status=$?
tail -n 3 out
if [ $status -ne 0 ]; then
    cat out
    for f in crash-* leak-* timeout-* oom-*; do
        [ ! -f "$f" ] || { echo "$f (base64):"; base64 "$f"; }
    done
fi
exit $status
