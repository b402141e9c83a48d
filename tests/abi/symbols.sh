#!/bin/sh
# SPDX-License-Identifier: MIT
# symbols.sh - holds the exported symbols of a library against the published list: usage symbols.sh LIBRARY LIST
set -eu

[ $# -eq 2 ] || { echo "usage: symbols.sh LIBRARY LIST" >&2; exit 1; }
nm -D --defined-only --extern-only "$1" | awk '{ print $3 }' | grep -v '^__\(asan\|tsan\|ubsan\|odr_asan\)' | LC_ALL=C sort >"${TMPDIR:-/tmp}/symbols.$$"
trap 'rm -f "${TMPDIR:-/tmp}/symbols.$$"' EXIT
diff -u "$2" "${TMPDIR:-/tmp}/symbols.$$" || { echo "the exported symbols differ from $2; a symbol once published stays" >&2; exit 1; }
