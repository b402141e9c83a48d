#!/bin/sh
# SPDX-License-Identifier: MIT
# symbols.sh - holds the exported symbols of a library against the published list: usage symbols.sh LIBRARY LIST [HEADER...]
# With headers only those that they name: the others of libumd_diag are for our own libraries and tools, which are built with it.
set -eu

[ $# -ge 2 ] || { echo "usage: symbols.sh LIBRARY LIST [HEADER...]" >&2; exit 1; }
library=$1 list=$2
shift 2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
nm -D --defined-only --extern-only "$library" | awk '{ print $3 }' | grep -v '^__\(asan\|tsan\|ubsan\|odr_asan\)' | LC_ALL=C sort -u >"$work/exported"
if [ $# -gt 0 ]; then
    grep -ohw '[A-Za-z_][A-Za-z_0-9]*' "$@" | LC_ALL=C sort -u | LC_ALL=C comm -12 - "$work/exported" >"$work/public"
else
    cp "$work/exported" "$work/public"
fi
diff -u "$list" "$work/public" || { echo "the public symbols differ from $list; a symbol once published stays" >&2; exit 1; }
