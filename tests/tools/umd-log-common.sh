# shellcheck shell=bash disable=SC2034
# SPDX-License-Identifier: MIT
# umd-log-common.sh - what the tests of umd-log share: a folder of their own, a clean environment, how to run the tool and look at what it said.
# usage: . umd-log-common.sh UMD_LOG UMD_TRAIN CASE CARRIER
set -u
self=$(readlink -f "$0") umdlog=$(readlink -f "$1") train=$(readlink -f "$2") case=$3 carrier=$4 status=0
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
for name in $(env | sed -n 's/^\(UMD_[A-Z_]*\|PETREL_[A-Z_]*\)=.*/\1/p'); do unset "$name"; done
unset XDG_CONFIG_HOME
export HOME=$work PETREL_STATE_DIR=$work/state UMD_LOG_CONSOLE=off NO_COLOR=1

die() {
    echo "umd-log.sh: $case over $carrier: $1"
    echo "--- exit status $status, stdout:"; head -n 60 out
    echo "--- stderr:"; head -n 20 err
    exit 1
}

# ul STATUS WORD...: umd-log that must end with that status.
ul() {
    local want=$1
    shift
    status=0
    "$umdlog" "$@" >out 2>err || status=$?
    [ "$status" -eq "$want" ] || die "exit status $want was expected of umd-log $*"
}

says() {
    local file=$1 pattern
    shift
    for pattern; do grep -Eq -e "$pattern" "$file" || die "$file does not say: $pattern"; done
}
hushes() {
    local file=$1 pattern
    shift
    for pattern; do ! grep -Eq -e "$pattern" "$file" || die "$file should not say: $pattern"; done
}
lines() { [ "$(wc -l <"$1")" -eq "$2" ] || die "$1 should have $2 line(s)"; }
one_line() { lines err 1; }
silent() { [ ! -s err ] || die "nothing was expected on stderr"; }
json() { python3 -c "import json, sys
$1" <out || die "the JSON is not what it should be"; }

# training STATUS ARGUMENT...: a small one; its log is the caller's to ask for.
training() {
    local want=$1
    shift
    status=0
    "$train" mlp --train-size 96 --test-size 32 --batch 32 --hidden 32 --epochs 1 --carrier "$carrier" "$@" >out 2>err || status=$?
    [ "$status" -eq "$want" ] || die "exit status $want was expected of the training"
}
hang='hw.cu.hang[nth=20]=fire'
# Whether DEBUG and TRACE are compiled in.
traced() { "$umdlog" sites --level trace --module umd.api | grep -q '^TRACE in '; }

# made N: a log of N plain lines with known times, two processes.
made() {
    local i
    for ((i = 0; i < $1; i++)); do
        printf '2026-11-29T17:54:%02d.%09dZ %d.%09d INFO  %d.%d umd.mem ctx=%d depth=1: line i=%d [f m.c:%d]\n' \
            $((i % 60)) $((i % 1000)) $((100 + i)) 0 $((7 + i % 2)) $((70 + i % 2)) $((i % 3 + 1)) "$i" $((i + 1))
    done
}
