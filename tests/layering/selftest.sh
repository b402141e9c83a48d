#!/bin/sh
# SPDX-License-Identifier: MIT
# selftest.sh - the layering test must object to a forbidden include, to getenv in a library and to a cycle.
set -eu
script=$1
source=$2
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
mkdir "$work/ok"
(cd "$source" && tar cf - include umd kmd_sim hw_model) | (cd "$work/ok" && tar xf -)
mkdir -p "$work/ok/tools" "$work/ok/tests"

expect() {
    if python3 "$script" "$work/ok" >"$work/out"; then
        echo "not found: $1"; exit 1
    fi
    grep -q "$1" "$work/out" || { cat "$work/out"; echo "expected: $1"; exit 1; }
}
python3 "$script" "$work/ok" >/dev/null
printf '/* SPDX-License-Identifier: MIT */\n/* bad.c - x. */\n#include "hw.h"\n#include "../hw_model/hw.h"\n' >"$work/ok/umd/bad.c"
expect 'umd/bad.c: includes hw_model/hw.h'
rm "$work/ok/umd/bad.c"
printf '/* SPDX-License-Identifier: MIT */\n/* bad.c - x. */\nchar *x(void) { return getenv("PETREL_KMD"); }\n' >"$work/ok/umd/bad.c"
expect 'umd/bad.c: getenv in a library'
rm "$work/ok/umd/bad.c"
printf '/* SPDX-License-Identifier: MIT */\n/* a.h - x. */\n#include "b.h"\n' >"$work/ok/umd/a.h"
printf '/* SPDX-License-Identifier: MIT */\n/* b.h - x. */\n#include "a.h"\n' >"$work/ok/umd/b.h"
expect 'include cycle: '
