#!/bin/sh
# SPDX-License-Identifier: MIT
# petrel-cc.sh - libraries: what links, what is not known, what is not there. usage: petrel-cc.sh PETREL_CC
set -u
cc=$(readlink -f "$1")
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
unset PETREL_PICOLIBC PETREL_LIBGCC

die() {
    echo "petrel-cc.sh: $1"
    cat err
    exit 1
}
# run STATUS PATTERN ARGUMENT...: the pattern is of one line on stderr; "": nothing is said.
run() {
    want=$1 pattern=$2
    shift 2
    status=0
    "$cc" "$@" 2>err || status=$?
    [ "$status" -eq "$want" ] || die "exit status $want, not $status, was expected of: $*"
    if [ -n "$pattern" ]; then
        [ "$(wc -l <err)" -eq 1 ] && grep -Eq -e "$pattern" err || die "not so: $pattern"
    else
        [ ! -s err ] || die "nothing was to be said"
    fi
}
cat >k.c <<'C'
#include <device/petrel_device.h>
#ifdef LIBM
#include <math.h>
#endif
struct args { unsigned long x, y; float f; };
PETREL_KERNEL(k, struct args)
{
    unsigned __int128 a = (unsigned __int128)args->x << 64 | args->y;
    *(unsigned long *)args->x = (unsigned long)(a / args->y);
#ifdef LIBM
    *(float *)args->y = powf(args->f, 0.3f);
#endif
}
C
run 1 '^petrel-cc: there is no library foo for the device: m and gcc are known$' -lfoo k.c
run 1 '^petrel-cc: -l needs a value' -l
PETREL_LIBGCC=/nowhere run 2 '^petrel-cc: -l gcc: libgcc.a is not in /nowhere; apt-get install gcc-riscv64-unknown-elf$' -l gcc k.c
PETREL_PICOLIBC=/nowhere run 2 '^petrel-cc: -l m: picolibc is not in /nowhere; apt-get install picolibc-riscv64-unknown-elf$' -lm k.c
run 0 '' -lgcc -o gcc.pco k.c
run 0 '' -D LIBM -l m -o m.pco k.c
rm k.pco 2>/dev/null
"$cc" k.c 2>err && die "it links without the library"
grep -q __udivti3 err || die "the linker does not say what is missing"
