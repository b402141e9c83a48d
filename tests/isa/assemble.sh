#!/bin/sh
# SPDX-License-Identifier: MIT
# assemble.sh - assembles and links one bare program. usage: assemble.sh CLANG LLD FOLDER SOURCE OUT [OPTION...]
set -eu
clang=$1 lld=$2 folder=$3 source=$4 out=$5
shift 5
"$clang" --target=riscv64-unknown-elf -march=rv64gc_zfh -mabi=lp64d -mno-relax -g -I"$folder" "$@" -c "$source" -o "$out.o"
"$lld" -m elf64lriscv -static --no-relax -T "$folder/link.ld" "$out.o" -o "$out"
rm -f "$out.o"
