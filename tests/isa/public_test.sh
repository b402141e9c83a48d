#!/bin/sh
# SPDX-License-Identifier: MIT
# public_test.sh - public.sh counts what passes and what does not, built or not. usage: public_test.sh PUBLIC_SH HW_RUN PROGRAM
set -u
public=$(readlink -f "$1") hw_run=$(readlink -f "$2") program=$(readlink -f "$3")
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

# run STATUS PATTERN: of the last line.
run() {
    status=0
    "$public" "$hw_run" checkout >out 2>&1 || status=$?
    if [ "$status" -ne "$1" ] || ! tail -n 1 out | grep -Eq -e "$2"; then
        echo "public_test.sh: not $1 '$2' but $status:"
        cat out
        exit 1
    fi
}

run 2 'there is no folder checkout$'
mkdir -p checkout/isa/rv64ui checkout/env/p
run 2 'has neither'
cp "$program" checkout/isa/rv64ui-p-good
: >checkout/isa/rv64ui-p-good.dump
run 0 '^2 runs, 0 failed$'
cat >checkout/isa/rv64ui/five.S <<'S'
#include "riscv_test.h"
.globl _start
.section .text.init
_start: li a0, STATUS
    li a7, 93
    ecall
S
run 2 'env/p is not there: git submodule update --init in checkout$'
echo '#define STATUS 5' >checkout/env/p/riscv_test.h
run 1 '^4 runs, 2 failed$'
grep -q '^rv64ui-p-five --lanes 32: exit status 5$' out || { cat out; exit 1; }
echo '#define STATUS 0' >checkout/env/p/riscv_test.h
run 0 '^4 runs, 0 failed$'
echo '.half16 1' >>checkout/isa/rv64ui/five.S
run 2 'five.S does not assemble$'
