#!/bin/bash
# SPDX-License-Identifier: MIT
# umd-log-files.sh - umd-log over files that change while they are read: rotated, removed, written in pieces.
# usage: umd-log-files.sh UMD_LOG UMD_TRAIN CASE CARRIER
# shellcheck source=tests/tools/umd-log-common.sh
. "$(dirname "$0")/umd-log-common.sh"

# waits TEXT: until the tool in the background has written it.
waits() { for _ in $(seq 600); do grep -q "$1" out && return; sleep 0.1; done; kill -9 $pid; die "never came: $1"; }
# following FILE...: the tool in the background, which is done with what is there.
following() { "$umdlog" show --follow "$@" >out 2>err & pid=$!; }
# stopped: as if the pager took nothing; goes on with kill -CONT.
stopped() { kill -STOP $pid; for _ in $(seq 600); do grep -q '^State:.*T' /proc/$pid/status && return; sleep 0.1; done; die "it does not stop"; }
ended() { kill -INT $pid; status=0; wait $pid || status=$?; [ $status -eq "$1" ] || die "exit status $1 was expected of following"; }
part() { sed -n "$1,$2p" all; }

made 4000 | sed 's/ \(INFO  \)[78]\./ \17./' >all
case $case in
follow) # a file that is moved on several times between two looks
    part 1 10 >run.log
    following run.log; waits 'i=9 '; stopped
    part 11 12 >>run.log
    for n in 1 2 3; do
        for ((i = n; i > 1; i--)); do mv run.log.$((i - 1)) run.log.$i; done
        mv run.log run.log.1; part $((10 * n + 3)) $((10 * n + 12)) >run.log
    done
    kill -CONT $pid; waits 'i=41 '
    part 43 45 >>run.log; waits 'i=44 '
    ended 0; part 1 45 >want; cmp want out || die "lines are lost between rotations"
    silent
    # Its own file removed, since no more are kept: on with the oldest of those left, and it is said.
    rm run.log*; part 1 10 >run.log
    following run.log; waits 'i=9 '; stopped
    rm run.log; part 21 30 >run.log.2; part 31 40 >run.log.1; part 41 50 >run.log; part 3 5 >run.log.3
    kill -CONT $pid; waits 'i=49 '
    ended 0; { part 1 10; part 21 50; } >want; cmp want out || die "what is left is not followed"
    one_line; says err '^umd-log: run\.log was rotated away and removed .*: lines may be missing here$' ;;
listed) # parts that are moved on, and removed, after it was found out which there are
    printf_fifo() { rm -f out pipe; mkfifo pipe; "$umdlog" show run.log >pipe 2>err & pid=$!; exec 3<pipe; read -r -u 3 first; }
    part 1 2000 >run.log.2; part 2001 3000 >run.log.1; part 3001 4000 >run.log
    printf_fifo
    mv run.log.2 run.log.3; mv run.log.1 run.log.2; mv run.log run.log.1; part 1 3 >run.log
    { echo "$first"; cat <&3; } >out; exec 3<&-
    wait $pid || die "a rotation meanwhile is no failure"
    silent; cmp all out || die "it read other files than it had found"
    rm run.log*; part 1 2000 >run.log.2; part 2001 3000 >run.log.1; part 3001 4000 >run.log
    printf_fifo
    rm run.log.1
    { echo "$first"; cat <&3; } >out; exec 3<&-
    status=0; wait $pid || status=$?
    [ $status -eq 2 ] || die "a part that is gone is a failure"
    says err '^umd-log: run\.log: a part could not be read: it was rotated away and removed meanwhile$'
    # While it is being rotated again and again, from one moment to the next.
    rm run.log*; part 1 40 >run.log.2; part 41 80 >run.log.1; part 81 120 >run.log
    python3 - <<'PY' &
import os, random, time
text = open("all").readlines()
for n in range(3, 60):
    time.sleep(random.random() * 0.03)
    for i in range(n - 1, 0, -1):
        os.rename("run.log.%d" % i, "run.log.%d" % (i + 1))
    os.rename("run.log", "run.log.1")
    with open("run.log", "w") as f:
        f.writelines(text[n * 40:n * 40 + 40])
open("done", "w").close()
PY
    until [ -e done ]; do
        ul 0 show run.log; silent
        head -n "$(wc -l <out)" all | cmp - out || die "lines are missing while it is rotated"
        [ "$(wc -l <out)" -ge 120 ] || die "parts are missing while it is rotated"
    done
    # What is being compressed is there twice for a moment; without a record in it a file is not read to its end.
    rm run.log*; part 1 10 >run.log.1; gzip -k run.log.1; part 11 20 >run.log
    ul 0 show run.log; lines out 20
    part 1 2 >./-; part 3 4 >./-.1; part 5 6 | "$umdlog" show - >out 2>err; lines out 2 ;;
pieces) # a disaster log's record that comes in pieces, while it is followed
    record() {
        printf '==== 2026-11-29T17:54:0%d.5Z ERROR 7.7 kmd.x\nUMD_ERR_HW_HANG (-4000)\n  what     Stuck.\n  figures  job=%d\n  wh' "$1" "$1"
        [ -z "${2-}" ] || touch half
        printf 'ere    in module kmd.x by f (m.c:5)\n  record   a:7:%d at 1.5\n' "$1"
    }
    { record 1; record 2 | head -c 100; } >run.dis
    following run.dis; waits 'job=1 '
    for _ in 1 2 3 4 5 6; do sleep 0.1; done
    hushes out 'job=2|HANG.*HANG'
    record 2 | tail -c +101 | head -c 40 >>run.dis; sleep 0.3; record 2 | tail -c +141 >>run.dis
    waits 'rec=0000000a:7:2'
    ended 0; lines out 2; silent; says out 'rec=0000000a:7:2.*: UMD_ERR_HW_HANG: Stuck\. job=2 \[f m\.c:5\]$' ;;
*) echo "unknown case $case"; exit 99 ;;
esac
