#!/bin/sh
# SPDX-License-Identifier: MIT
# hw-run.sh - exit statuses, traps with their place, lanes with memory of their own, and files that are none.
# usage: hw-run.sh HW_RUN CLANG LLD CASE
set -u
hw_run=$(readlink -f "$1") clang=$2 lld=$3 case=$4 status=0
here=$(dirname "$(readlink -f "$0")")
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
unset PETREL_FAULTS UMD_LOG_CONSOLE UMD_LOG_FILE

die() {
    echo "hw-run.sh: $case: $1"
    echo "--- exit status $status, stdout:"; cat out
    echo "--- stderr:"; cat err
    exit 1
}
# assemble NAME [OPTION...] <source: NAME.S to NAME.elf
assemble() {
    name=$1
    shift
    rm -f "$name.elf" # at the end of a pipe this runs in a shell of its own, whose exit nobody sees
    cat >"$name.S"
    "$here/assemble.sh" "$clang" "$lld" "$here" "$name.S" "$name.elf" "$@" || exit 99
}
# run STATUS ARGUMENT...: nothing is printed where the program ends by itself, else one line.
run() {
    want=$1
    shift
    status=0
    "$hw_run" "$@" >out 2>err || status=$?
    [ "$status" -eq "$want" ] || die "exit status $want was expected of: $*"
    [ ! -s out ] || die "nothing was expected on stdout of: $*"
    return 0
}
silent() { [ ! -s err ] || die "nothing was expected on stderr"; }
says() {
    [ "$(wc -l <err)" -eq 1 ] || die "one line was expected on stderr"
    grep -Eq -e "$1" err || die "stderr does not say: $1"
}

exits() {
    printf '_start: .globl _start\n li a0, STATUS\n li a7, 93\n ecall\n' >exit.body
    for value in 0 1 42 255 256 0x12345678; do
        assemble exit -DSTATUS=$value <exit.body
        for lanes in 1 2 32 33 1024; do
            run $((value & 255)) --lanes $lanes --memory 1 exit.elf; silent
        done
        run $((value & 255)) --functional --base exit.elf; silent
    done
    # Returning from the start is an end, too; arguments are zeros, sp is aligned.
    assemble return <<'S'
_start: .globl _start
    andi t0, sp, 15
    or   t0, t0, a0
    ld   t1, 0(sp)
    or   t0, t0, t1
    bnez t0, 1f
    ret
1:  unimp
S
    run 0 return.elf; silent
    run 0 --lanes 40 return.elf; silent
    # As from main: the value of the start is the status, of each lane.
    for value in 3 256; do
        printf '.globl _start\n_start: li a0, %d\n ret\n' $value | assemble main
        for how in "" "--lanes 33" "--functional" "--base"; do
            # shellcheck disable=SC2086
            run $((value & 255)) $how main.elf; silent
        done
    done
    # Lanes that return beside others that do not: 4 is the first that is not 0.
    assemble some <<'S'
.globl _start
_start:
    .insn i 0x73, 2, a0, zero, 0x4cc - 0x800
    slti a1, a0, 4
    beqz a1, 1f
    li a0, 0
    li a7, 93
    ecall
1:  ret
S
    run 0 --lanes 4 some.elf; silent
    run 4 --lanes 40 some.elf; silent
}

# trap CAUSE PATTERN <instructions: line 3 on of the file; the trap is at the label `here`.
trap_of() {
    { printf '.globl _start\n_start:\n'; cat; } | assemble trap
    for how in "" "--functional" "--lanes 32" "--base"; do
        # shellcheck disable=SC2086
        run $((128 + $1)) $how trap.elf
        says "^hw-run: .* \(cause $1\) at 0x8[0-9a-f]+ <here\+0x0> trap\.S:$2 lane 0$3\$"
    done
}
traps() {
    trap_of 2 4 ': 0x0000.*' <<'S'
    nop
here: unimp
S
    trap_of 2 '[34]' ': 0xfe007033.*' <<'S'
    nop
here: .insn r 0x33, 7, 127, x0, x0, x0
S
    trap_of 3 4 '' <<'S'
    nop
here: ebreak
S
    trap_of 5 4 ': address 0x[0-9a-f]+' <<'S'
    li a0, 0x710000001000
here: ld a1, 0(a0)
S
    trap_of 5 4 ': nothing is mapped at 0x10' <<'S'
    li a0, 8
here: lw a1, 8(a0)
S
    trap_of 7 4 ': nothing is mapped at 0x18' <<'S'
    li a0, 8
here: sw a1, 16(a0)
S
    trap_of 7 4 ': nothing is mapped at 0x60000000' <<'S'
    li a0, 0x60000000
here: amoadd.d a1, a2, (a0)
S
    trap_of 4 4 ': address 0x.*' <<'S'
    addi a0, sp, -15
here: lr.w a1, (a0)
S
    trap_of 6 4 ': address 0x.*' <<'S'
    addi a0, sp, -12
here: amoswap.d a1, a2, (a0)
S
    trap_of 6 4 ': address 0x.*' <<'S'
    addi a0, sp, -14
here: sc.w a1, a2, (a0)
S
    trap_of 8 4 ': only exit \(a7 = 93\) is served' <<'S'
    li a7, 64
here: ecall
S
    trap_of 24 '[34]' ': code 77' <<'S'
    li a0, 77
here: .insn r 0x0b, 0, 2, zero, a0, zero
S
    # The first lane waits for its workgroup, the others for their warp: both places are told.
    assemble barrier <<'S'
.globl _start
_start:
    csrr t0, 0xccc
    bnez t0, there
here: .insn r 0x0b, 0, 0, zero, zero, zero      # p.barrier
    j end
there: .insn r 0x0b, 0, 3, zero, zero, zero     # p.wsync
end: li a7, 93
    li a0, 0
    ecall
S
    run 153 --lanes 32 barrier.elf
    says '^hw-run: barrier that cannot be met \(cause 25\) at 0x8[0-9a-f]+ <(here|there)\+0x0> barrier\.S:[4-7] lane [0-9]+: others wait at 0x8[0-9a-f]+ <(here|there)\+0x0> barrier\.S:[4-7]$'
    run 0 barrier.elf
    # Code that is not there: the place is where it should be.
    printf '.globl _start\n_start: li a0, 0x1000\n jr a0\n' | assemble fetch
    run 129 fetch.elf; says '^hw-run: instruction access fault \(cause 1\) at 0x1000 lane 0: nothing is mapped at 0x1000$'
    # Far behind all that has a name there is no name.
    printf '.globl _start\n_start: lui a0, 0x48000\n slli a0, a0, 1\n jr a0\n.data\nword: .word 0\n' | assemble fetch
    run 129 fetch.elf; says '^hw-run: instruction access fault \(cause 1\) at 0x90000000 lane 0: nothing is mapped at 0x90000000$'
    # Of names at one address a function's goes first, then one that other files see, then the first.
    printf '.globl _start\n_start:\n.globl outer\n.type inner, @function\nouter:\ninner: ebreak\n' | assemble named
    run 131 named.elf; says ' <inner\+0x0> '
    printf '_start:\n.globl _start\n.globl first\n.globl second\nlocal:\nnop\nfirst:\nsecond: ebreak\n' | assemble named
    run 131 named.elf; says ' <first\+0x0> '
    # The first lane that comes to it is named; the others wait.
    assemble lane <<'S'
.globl _start
_start:
    .insn i 0x73, 2, a0, zero, 0x4cc - 0x800
    li a1, 5
    bltu a0, a1, 1f
here: ebreak
1:  j 1b
S
    run 131 --lanes 32 lane.elf; says 'lane 5$'
}

lanes() {
    # Each counts in the same word; what each sees is its own count alone.
    assemble count <<'S'
.globl _start
_start:
    la a1, word
    li a2, 100
1:  li a3, 1
    amoadd.w a3, a3, (a1)
    lw a4, 4(a1)
    addi a4, a4, 1
    sw a4, 4(a1)
    addi a2, a2, -1
    bnez a2, 1b
    lw a0, (a1)
    lw a4, 4(a1)
    sub a4, a4, a0
    addi a0, a0, -100
    or a0, a0, a4
    li a7, 93
    ecall
    .data
word: .word 0, 0, 0
S
    for n in 1 2 31 32 100; do
        run 0 --lanes $n count.elf; silent
        run 0 --lanes $n --functional count.elf; silent
    done
    # The status is the first that is not 0: here the number of the lane above 3.
    assemble lane <<'S'
.globl _start
_start:
    .insn i 0x73, 2, a0, zero, 0x4cc - 0x800
    slti a1, a0, 4
    addi a1, a1, -1
    and a0, a0, a1
    li a7, 93
    ecall
S
    run 0 --lanes 4 lane.elf; silent
    run 4 --lanes 32 lane.elf; silent
}

# tell STATUS END: tohost says 2 * STATUS + 1, then the program goes on with END.
tell() {
    printf '.globl _start\n_start: li a0, %d\n la a1, tohost\n sd a0, 0(a1)\n li a0, 0\n %s\n.data\ntohost: .dword 0\n' $((2 * $1 + 1)) "$2" | assemble told
    run "$1" told.elf; silent
    run "$1" --lanes 33 told.elf; silent
}
tohost() {
    assemble tohost -DSTATUS=0 <<'S'
.globl _start
_start:
    li a0, 2 * STATUS + 1
    la a1, tohost
    sd a0, 0(a1)
1:  j 1b
    .data
    .globl tohost
tohost: .dword 0
S
    for value in 0 9; do
        "$here/assemble.sh" "$clang" "$lld" "$here" tohost.S tohost.elf -DSTATUS=$value || exit 99
        run $value tohost.elf; silent
        run $value --lanes 3 tohost.elf; silent
    done
    # It is looked at in the end, too, and counts before what lanes end with by themselves.
    tell 3 'ret'
    tell 3 'li a0, 0; li a7, 93; ecall'
    tell 3 'unimp'
    # A lane that returns or exits is waited for no more.
    for last in 'ret' 'li a0, 0; li a7, 93; ecall'; do
        assemble beside <<S
.globl _start
_start:
    .insn i 0x73, 2, t0, zero, 0x4cc - 0x800
    beqz t0, 1f
    li a0, 2 * 5 + 1
    la a1, tohost
    sd a0, 0(a1)
2:  j 2b
1:  li a0, 0
    $last
    .data
tohost: .dword 0
S
        for n in 2 32 33; do
            run 5 --lanes $n --max-instructions 10000000 beside.elf; silent
        done
    done
    # A trap is one as long as any lane has not ended.
    assemble trapped <<'S'
.globl _start
_start:
    .insn i 0x73, 2, t0, zero, 0x4cc - 0x800
    bnez t0, 1f
    li a0, 1
    la a1, tohost
    sd a0, 0(a1)
2:  j 2b
1:  ebreak
    .data
tohost: .dword 0
S
    run 0 trapped.elf; silent
    run 131 --lanes 2 trapped.elf; says 'lane 1$'
    # The console: a character at a time, as soon as the word is 0 again; the end is the end.
    assemble console <<'S'
.globl _start
_start:
    la a1, tohost
    la a2, text
1:  lbu a0, (a2)
    beqz a0, 3f
    li a3, 0x0101000000000000
    or a0, a0, a3
    sd a0, (a1)
2:  ld a0, (a1)
    bnez a0, 2b
    addi a2, a2, 1
    j 1b
3:  li a0, 13
    sd a0, (a1)
4:  j 4b
    .data
tohost: .dword 0
text: .asciz "hi\n"
S
    for n in 1 3; do
        status=0
        "$hw_run" --lanes $n --functional --max-instructions 10000000 console.elf >out 2>err || status=$?
        [ $status -eq 6 ] && [ "$(cat out)" = hi ] || die "the console"
        silent
    done
    # An endless one is given up when that is asked for.
    printf '.globl _start\n_start: j _start\n' | assemble endless
    run 2 --max-instructions 100000 endless.elf; says '^hw-run: endless\.elf has not ended after [0-9]+ instructions$'
    assemble sign <<'S'
.globl _start
_start:
    la a1, begin_signature
    li a0, 0x123456789abcdef0
    sd a0, 0(a1)
    li a0, 0
    li a7, 93
    ecall
    .data
    .globl begin_signature
    .globl end_signature
begin_signature: .dword 0
    .word 7
end_signature:
S
    run 0 --signature words sign.elf; silent
    [ "$(tr '\n' ' ' <words)" = "9abcdef0 12345678 00000007 " ] || die "signature: $(cat words)"
    run 2 --signature words endless.elf --max-instructions 1000
    [ "$(wc -l <err)" -eq 2 ] || die "both are told"
    for value in '' 'begin_signature = 8; end_signature = 4' 'begin_signature = 8; end_signature = 16'; do
        printf '.globl _start, begin_signature, end_signature\n%s\n_start: li a7, 93\n ecall\n' "$value" | assemble unsigned
        run 2 --signature words unsigned.elf
        case $value in
        '') says 'are not there$' ;;
        *4) says 'begin_signature is 0x8 and end_signature 0x4, the wrong way round$' ;;
        *) says 'begin_signature is 0x8 and end_signature 0x10, not all of which is mapped$' ;;
        esac
    done
    run 2 --signature no/such sign.elf; says '^hw-run: no/such cannot be written: No such file or directory$'
}

# One line for each instruction that was carried out, with what it wrote, a lane at a time where they differ.
trace() {
    assemble trace <<'S'
.globl _start
_start:
    .option norvc
    .insn i 0x73, 2, a0, zero, 0x4cc - 0x800
    slti a1, a0, 2
    beqz a1, 1f
    addi a2, a1, 4
1:  la a3, word
    fld fa0, (a3)
    li a0, 0
    li a7, 93
    ecall
    .data
    .balign 8
word: .dword 0x3ff0000000000000
S
    for how in "" "--functional"; do
        status=0
        # shellcheck disable=SC2086
        "$hw_run" --trace --lanes 4 $how trace.elf >out 2>err || die "exit status"
        [ "$(wc -l <out)" -eq 10 ] || die "ten instructions have been carried out"
        sed -n 1p out | grep -q '^0000000f 0x80000000 <_start+0x0> ccc02573 csrr.* a0, .*  a0=0:0x0,1:0x1,2:0x2,3:0x3$' || die "line 1"
        sed -n 2p out | grep -q ' slti a1, a0, 2  a1=0:0x1,1:0x1,2:0x0,3:0x0$' || die "line 2"
        sed -n 3p out | grep -q "^0000000f .* <_start+0x8> [0-9a-f]* beq[^=]*\$" || die "line 3"
        sed -n 4p out | grep -q '^00000003 .* addi a2, a1, 4  a2=0x5$' || die "line 4"
        grep -q '^0000000f .* fld fa0, .*  fa0=0x3ff0000000000000$' out || die "a floating point register"
        tail -n 1 out | grep -q ' ecall$' || die "the last line"
    done
    "$hw_run" --trace trace.elf >out 2>err && [ "$(cut -d" " -f1 <out | sort -u)" = 00000001 ] || die "one lane"
}

# Files that are no such programs: one line, exit status 2.
input() {
    printf '.globl _start\n_start: li a0, 0\n li a7, 93\n ecall\n' | assemble good
    run 0 good.elf; silent
    run 1; says '^hw-run: no program is named; try hw-run --help$'
    run 1 good.elf good.elf; says 'one program at a time'
    run 1 --lanes 0 good.elf; says "^hw-run: --lanes is '0', not a whole number from 1 to 1024; try hw-run --help\$"
    run 1 --lanes 1025 good.elf; says 'from 1 to 1024'
    run 2 no-such; says '^hw-run: no-such cannot be read: No such file or directory$'
    run 2 .; says 'no regular file$'
    : >empty; run 2 empty; says '^hw-run: empty: it is no ELF file$'
    head -c 40 good.elf >short; run 2 short; says '^hw-run: short: it is no ELF file'
    head -c 200 good.elf >cut; run 2 cut; says '^hw-run: cut: '
    run 2 /bin/true; says 'for another machine|no 64-bit'
    # patch OFFSET BYTES: of the good one.
    patch() { cp good.elf bad; printf "$2" | dd of=bad bs=1 seek="$1" conv=notrunc 2>/dev/null; }
    patch 4 '\001'; run 2 bad; says 'no 64-bit little-endian file'
    patch 16 '\001'; run 2 bad; says 'no program that is linked'
    patch 18 '\076'; run 2 bad; says 'for another machine \(62\)'
    patch 80 '\0\0\0\0\0\360\377\377'; run 2 bad; says 'apertures begin|it has nothing'
    patch 24 '\0\0\0\0\0\0\0\0'; run 129 bad; says 'instruction access fault \(cause 1\) at 0x0'
    patch 24 '\001'; run 128 bad; says 'misaligned instruction address \(cause 0\) at 0x80000001'
    # A position-independent one, at 0.
    printf '.globl _start\n_start: la a0, word\n ld a0, 0(a0)\n ld a0, 0(a0)\n li a7, 93\n ecall\n.section .data.rel.ro, "aw"\nword: .dword other\nother: .dword 7\n' >pie.S
    "$clang" --target=riscv64-unknown-elf -march=rv64gc -mabi=lp64d -fPIC -mno-relax -c pie.S -o pie.o &&
        "$lld" -m elf64lriscv -pie --no-dynamic-linker pie.o -o pie.elf || exit 99
    run 7 pie.elf; silent
    run 7 --lanes 5 pie.elf; silent
    "$lld" -m elf64lriscv -shared -soname x pie.o -o lib.so && "$lld" -m elf64lriscv -pie --dynamic-linker=/lib/ld.so pie.o lib.so -o dynamic.elf || exit 99
    run 2 dynamic.elf; says 'link it with -static'
}

case $case in
exits) exits ;;
traps) traps ;;
lanes) lanes ;;
tohost) tohost ;;
trace) trace ;;
input) input ;;
*) echo "hw-run.sh: no case $case"; exit 99 ;;
esac
