#!/bin/sh
# SPDX-License-Identifier: MIT
# umd-bench.sh - the bench of the simulation runs, its kernels' results hold, it does without its peer, and not with one that computes something else. No figure is judged.
# usage: umd-bench.sh UMD_BENCH
set -u
bench=$(readlink -f "$1")
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99

die() {
    echo "umd-bench.sh: $1"
    echo "--- stdout:"; cat out
    echo "--- stderr:"; cat err
    exit 1
}
# holds EXPRESSION: of the report d and its figures f by name.
holds() {
    python3 -c 'import json, sys; d = json.load(open("out")); f = {x["name"]: x for x in d["figures"]}; assert eval(sys.argv[1]), (sys.argv[1], d)' "$1" ||
        die "not so: $1"
}
"$bench" sim --seconds 0.001 --json >out 2>err || die "it does not run"
holds 'd["bench"] == "sim" and all(x["value"] > 0 for x in d["figures"])'
holds 'all(f"{k}, {m}" in f for k in ("saxpy", "matmul f32", "integer hash", "divergent set", "pointer chase") for m in ("timed", "functional"))'
holds 'all(f[k + ", timed"]["goal"] for k in ("saxpy", "matmul f32", "integer hash", "divergent set", "pointer chase"))'
holds 'len(d["figures"]) == 15 and "note" not in d and f["saxpy, functional, beside"]["peer"] == "qemu-riscv64"'
holds 'abs(f["saxpy, functional, beside"]["ratio"] * f["saxpy, functional, beside"]["peer_value"] / f["saxpy, functional, beside"]["value"] - 1) < 1e-9'
python=$(command -v python3)
mkdir bin && ln -s "$python" bin/python3
PATH=$work/bin "$bench" sim --seconds 0.001 --json >out 2>err || die "it does not run without a peer"
holds 'len(d["figures"]) == 10 and "qemu-riscv64 is not there" in d["note"]'
printf '#!/bin/sh\necho 1000000 1 5\n' >bin/qemu-riscv64 && chmod +x bin/qemu-riscv64
PATH=$work/bin:$PATH "$bench" sim --seconds 0.001 >out 2>err
[ $? -eq 4 ] || die "a peer that computes something else is taken for one"
grep -q '^umd-bench: sim_saxpy: results add up to 5 in qemu-riscv64 and to [0-9]* here' err || die "what differs is not said"
"$bench" sim --threads 2 --seconds 0.001 --json >out 2>err || die "it does not run on two threads"
holds 'len(d["figures"]) == 10 and "host threads" in d["note"] and all(x["value"] > 0 and not x.get("goal") for x in d["figures"])'
holds 'f["saxpy, timed, 2 threads"] and f["pointer chase, functional, 2 threads"]'
for wrong in "sim --threads 0" "sim --threads 65" "sim --threads x" "log --threads 2"; do
    "$bench" $wrong >out 2>err
    [ $? -eq 1 ] && [ "$(wc -l <err)" -eq 1 ] && grep -q -e --threads err || die "$wrong is no usage error"
done
