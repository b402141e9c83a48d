#!/bin/sh
# SPDX-License-Identifier: MIT
# isa.sh - runs one instruction test by each kind of handlers, one lane and several. usage: isa.sh HW_RUN PROGRAM
set -u
status=0
for how in "--lanes 1" "--lanes 32" "--lanes 45" "--functional" "--functional --lanes 32" "--base" "--base --functional --lanes 32"; do
    # shellcheck disable=SC2086  # options
    "$1" --max-instructions 1000000 $how "$2"
    got=$?
    [ $got -eq 0 ] || { echo "$2 $how: case $got went wrong" >&2; status=1; }
done
exit $status
