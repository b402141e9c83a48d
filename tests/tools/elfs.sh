#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# elfs.sh - every ELF file given, or under a folder given, has a build-id and line info, its own or in a separate debug file (C10).
# usage: elfs.sh [--debug-dir DIR] FILE|FOLDER...
set -euo pipefail

debug=
[ "${1:-}" = --debug-dir ] && { debug=$2; shift 2; }
[ $# -gt 0 ] || { echo "usage: elfs.sh [--debug-dir DIR] FILE|FOLDER..." >&2; exit 1; }
count=0 bad=0
while read -r file; do
    head -c 4 "$file" | grep -q ELF || continue
    count=$((count + 1))
    id=$(readelf -n "$file" 2>/dev/null | sed -n 's/.*Build ID: //p' | head -n 1)
    [ -n "$id" ] || { echo "$file has no build-id"; bad=1; continue; }
    readelf -S "$file" 2>/dev/null | grep -q '\.debug_line' && continue
    separate=$debug/.build-id/${id:0:2}/${id:2}.debug
    [ -n "$debug" ] && readelf -n "$separate" 2>/dev/null | grep -q "Build ID: $id" && readelf -S "$separate" 2>/dev/null | grep -q '\.debug_line' && continue
    echo "$file has no line info, nor has $separate"
    bad=1
done < <(find "$@" -type f ! -name '*.debug' ! -name '*.o')
[ $count -gt 0 ] || { echo "no ELF file in $*"; exit 1; }
[ $bad -eq 0 ] && echo "$count ELF files have build-id and line info"
exit $bad
