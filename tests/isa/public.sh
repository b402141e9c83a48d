#!/bin/sh
# SPDX-License-Identifier: MIT
# public.sh - runs the programs of a checkout of riscv-tests, by one lane and by 32. By hand: the checkout is not ours.
set -u
usage() {
    cat <<'END'
usage: public.sh HW_RUN FOLDER | --help
FOLDER is a checkout of https://github.com/riscv-software-src/riscv-tests with its submodule env, or holds programs that were built from it
(rv64ui-p-add and so on). What is not built is assembled by clang, or by binutils for RISC-V where clang does not take it, and linked by lld.
Runs rv64ui, um, ua, uf, ud, uc and uzfh for bare machines (-p-), with --lanes 1 and with --lanes 32.
Example: tests/isa/public.sh build/release/tools/hw-run ~/riscv-tests
Exit status: 0 all passed; 1 some did not, or usage; 2 there is nothing to run, or it does not assemble.
END
}
fail() {
    echo "public.sh: $1" >&2
    exit 2
}

[ "${1:-}" != --help ] || { usage; exit 0; }
[ $# -eq 2 ] || { usage >&2; exit 1; }
hw_run=$1 folder=$2 here=$(dirname "$0")
[ -x "$hw_run" ] || fail "$hw_run is no program; build it, or name another"
[ -d "$folder" ] || fail "there is no folder $folder"
isa=$folder
[ ! -d "$folder/isa" ] || isa=$folder/isa
work=$(mktemp -d) || exit 2
trap 'rm -rf "$work"' EXIT
runs=0 failed=0

# assemble SOURCE OUT: clang's assembler does not know all directives that they use (.float16), binutils' does.
assemble() {
    [ -f "$folder/env/p/riscv_test.h" ] || fail "$folder/env/p is not there: git submodule update --init in $folder"
    target="--target=riscv64-unknown-elf -march=rv64gc_zfh -mabi=lp64d -mno-relax"
    # shellcheck disable=SC2086  # options
    if ! clang $target -I"$folder/env/p" -I"$isa/macros/scalar" -c "$1" -o "$2.o" 2>"$work/why"; then
        # shellcheck disable=SC2086  # options
        clang $target -I"$folder/env/p" -I"$isa/macros/scalar" -E "$1" -o "$2.s" 2>"$work/why" &&
            riscv64-unknown-elf-as -march=rv64gc_zfh -mabi=lp64d -mno-relax "$2.s" -o "$2.o" 2>"$work/why"
    fi
    if ! [ -f "$2.o" ] || ! ld.lld -m elf64lriscv -static --no-relax -T "$here/link.ld" "$2.o" -o "$2" 2>>"$work/why"; then
        tail -n 5 "$work/why" >&2
        fail "$1 does not assemble"
    fi
    rm -f "$2.o" "$2.s"
}
# run PROGRAM: both ways.
run() {
    for lanes in 1 32; do
        runs=$((runs + 1))
        "$hw_run" --lanes $lanes --max-instructions 10000000 "$1" || {
            echo "$(basename "$1") --lanes $lanes: exit status $?" >&2
            failed=$((failed + 1))
        }
    done
}

for class in rv64ui rv64um rv64ua rv64uf rv64ud rv64uc rv64uzfh; do
    for source in "$isa/$class"/*.S; do
        name=$class-p-$(basename "$source" .S)
        if [ -f "$source" ] && [ ! -f "$isa/$name" ]; then
            assemble "$source" "$work/$name"
            run "$work/$name"
        fi
    done
    for program in "$isa/$class"-p-*; do
        case $program in *.dump | *.out) continue ;; esac
        [ ! -f "$program" ] || run "$program"
    done
done
[ $runs -gt 0 ] || fail "$folder has neither rv64ui/*.S nor rv64ui-p-* in it"
echo "$runs runs, $failed failed"
[ $failed -eq 0 ]
