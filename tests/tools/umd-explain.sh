#!/bin/sh
# SPDX-License-Identifier: MIT
# umd-explain.sh - codes by name and value, near misses, unknown values, records out of logs and rings of real runs, bad input.
# usage: umd-explain.sh UMD_EXPLAIN UMD_TRAIN CASE SOURCE_ROOT
set -u
explain=$(readlink -f "$1") train=$(readlink -f "$2") case=$3 root=$4 status=0
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
unset PETREL_FAULTS PETREL_MODE PETREL_CARRIER UMD_LOG_FILE UMD_LOG_JSON UMD_LOG_BINARY UMD_LOG_LEVEL UMD_LOG_CONSOLE UMD_EMERGENCY_FILE

die() {
    echo "umd-explain.sh: $case: $1"
    echo "--- exit status $status, stdout:"; cat out
    echo "--- stderr:"; cat err
    exit 1
}
# run STATUS ARGUMENT...
run() {
    want=$1
    shift
    status=0
    "$explain" "$@" >out 2>err || status=$?
    [ "$status" -eq "$want" ] || die "exit status $want was expected of: $*"
    if [ "$want" -eq 0 ]; then
        [ -s err ] && die "nothing was expected on stderr of: $*"
    else
        [ "$(wc -l <err)" -eq 1 ] && [ ! -s out ] || die "one line on stderr alone was expected of: $*"
    fi
    return 0
}
says() {
    file=$1
    shift
    for pattern; do
        grep -Eq -e "$pattern" "$file" || die "$file does not say: $pattern"
    done
}
# json EXPRESSION: of the object (or array) d on stdout.
json() { python3 -c 'import json, sys; d = json.load(open("out")); assert eval(sys.argv[1]), d' "$1" || die "not so: $1"; }

case $case in
codes)
    for word in UMD_ERR_MEM_FRAGMENTED umd_err_mem_fragmented ERR_MEM_FRAGMENTED Mem_Fragmented mem-fragmented FRAGMENTED -2011 0xfffff825 4294965285; do
        run 0 "$word"
        says out '^UMD_ERR_MEM_FRAGMENTED \(-2011, 0xfffff825\)$' '^  what +Enough device memory' '^  range +resource, -2999 to -2000: ' \
            '^  class +MEM: ' '^  severity +error$' '^  affects +this call only$' '^  next +Free neighbours' '^  retry +after freeing something: once, at once$' \
            '^  errno +ENOMEM \(12, ' '^  Vulkan +VK_ERROR_FRAGMENTATION$' '^  CUDA +cudaErrorMemoryAllocation$' '^  HIP +hipErrorOutOfMemory$' \
            '^  Level Zero +ZE_RESULT_ERROR_OUT_OF_DEVICE_MEMORY$' '^  since +0\.1$'
    done
    run 0 -- -2011
    says out '^UMD_ERR_MEM_FRAGMENTED '
    run 0 2011 # the sign got lost on the way
    says out '^UMD_ERR_MEM_FRAGMENTED ' '^  note +.*minus sign'
    run 0 ctx_banned
    says out '^  affects +the context; unusable until it is rebuilt \(sticky\)$' '^  retry +no$' 'action: rebuild'
    run 0 SUBMIT_RING_FULL
    says out '^  retry +10 times, 10 ms apart$' 'the driver itself retries .*1000 times, 1 ms apart'
    run 0 UMD_STATUS_NOT_READY
    says out '\(1, 0x00000001\)' '^  retry +as long as the caller likes, 1 ms apart$'
    run 0 0
    says out '^UMD_SUCCESS \(0, '
    run 0 RES_QUEUES
    says out '^  from +umdStreamCreate$'
    run 0 HW_IRQ_LOST
    says out '^  from +.*no call returns it$'
    run 0 INTERNAL
    says out '^  from +all calls but '
    run 0 STATUS_TIMEOUT_PROGRESS --json
    json 'd["calls"] == ["umdEventSynchronize", "umdStreamSynchronize"]'
    run 0 MEM_QUOTA
    says out '^  since +reserved in 0\.1: .*provisional'
    run 0 HW_TRAP --json
    json 'd["name"] == "UMD_ERR_HW_TRAP" and d["value"] == -4005 and d["unsigned"] == 4294963291 and d["sticky"] is True'
    json 'd["range"]["name"] == "hw" and d["scope"] == "context" and d["action"] == "rebuild_context" and d["errno_value"] == 5'
    json 'd["cuda"] == ["cudaErrorLaunchFailure"] and d["vkresult"] == "VK_ERROR_DEVICE_LOST" and d["provisional"] is False and d["retired"] is None'
    # Every row of the table, as the table has it.
    run 0 --list --json
    python3 - "$root" 2>err <<'PY' || die "the list is not the table"
import json, sys, tomllib
listed = {d["name"]: d for d in json.load(open("out"))}
table = tomllib.load(open(sys.argv[1] + "/umd/diag/status.toml", "rb"))["status"]
assert len(listed) == len(table)
for s in table:
    d = listed[s["name"]]
    for key in ("value", "when", "todo", "severity", "scope", "sticky", "action", "errno", "vkresult", "since"):
        assert d[key] == s[key], (s["name"], key)
    assert d["retry_count"] == s.get("count", 0) and d["retry_delay_ms"] == s.get("delay_ms", 0) and d["provisional"] == s.get("provisional", False)
    assert d["driver_retry_count"] == s.get("driver_count", 0)
PY
    run 0 --list
    [ "$(wc -l <out)" -ge 80 ] || die "the list is too short"
    # Pages of the knowledge base: those whose section "Codes" has the code, the one that is about it first.
    run 0 HW_HANG --json
    python3 - "$root" 2>err <<'PY' || die "the pages are not those of docs/knowledge-base"
import glob, json, os, re, sys
d = json.load(open("out"))
pages = [p for p in glob.glob(sys.argv[1] + "/docs/knowledge-base/*.md") if os.path.basename(p) not in ("README.md", "TEMPLATE.md")]
have = {os.path.relpath(p, sys.argv[1]) for p in pages if "[UMD_ERR_HW_HANG]" in open(p).read().partition("\n## Codes\n")[2].partition("\n## ")[0]}
assert len(have) > 1 and set(d["pages"]) == have and d["pages"][0] == "docs/knowledge-base/hang.md", (d["pages"], have)
PY
    ;;
near)
    run 1 MEM_FRAGMENTD; says err "^umd-explain: there is no code 'MEM_FRAGMENTD'; did you mean UMD_ERR_MEM_FRAGMENTED\?$"
    run 1 pagefault; says err 'did you mean UMD_ERR_HW_PAGE_FAULT\?'
    run 1 UMD_ERR_CTX_BANED; says err 'did you mean UMD_ERR_CTX_BANNED'
    run 1 UMD_ERR_HADNLE_INVALID; says err 'did you mean UMD_ERR_HANDLE_INVALID'
    run 1 lost; says err 'did you mean UMD_ERR_(WAIT_SIGNAL_LOST|HW_IRQ_LOST|DEV_LOST)' # what has the word whole goes before what looks like it
    run 1 handle; says err 'did you mean UMD_ERR_HANDLE_INVALID, '
    run 1 xyzzyxyzzy; says err "no code 'xyzzyxyzzy'; umd-explain --list prints all$"
    run 0 cudaErrorMemoryAllocation; says out UMD_ERR_MEM_ALLOC_FAILED UMD_ERR_MEM_FRAGMENTED
    run 0 hiperroroutofmemory; says out UMD_ERR_MEM_ALLOC_FAILED
    run 0 ZE_RESULT_ERROR_DEVICE_LOST --json; json '{"UMD_ERR_HW_HANG", "UMD_ERR_DEV_LOST_OFF_BUS"} <= {c["name"] for c in d}'
    run 0 VK_ERROR_FRAGMENTATION; says out UMD_ERR_MEM_FRAGMENTED
    run 0 EMFILE; says out UMD_ERR_RES_DESCRIPTORS ;;
values)
    run 0 -2950; says out '^-2950 \(0xfffff47a\) is no code of this version$' '^  range +resource, ' '^  next +It may be of a newer library'
    run 0 999 --json; json 'd["name"] is None and d["value"] == 999 and d["range"]["name"] == "warning" and d["action"] == "none" and d["failed"] is False'
    run 0 999; says out '^  next +A positive value is never a failure: .*the call succeeded' 'cudaErrorUnknown'; grep -q 'stop' out && die "a success is no reason to stop"
    # Of another interface, or what is left of a code.
    run 0 96; says out 'UMD_ERR_HW_HANG \(-4000\), of which .* the low byte'
    run 0 96 --json; json '{"of": "low byte", "name": "UMD_ERR_HW_HANG", "value": -4000} in d["perhaps"] and d["action"] == "none"'
    run 0 -12; says out '^-12 \(0xfffffff4\) is no code, and lies in no range' 'ENOMEM \(-12\), of errno'
    run 0 -12 --json; json '{"of": "errno", "name": "ENOMEM", "value": -12} in d["perhaps"] and d["range"] is None and d["failed"] and d["action"] == "abort"'
    run 0 -4 --json; json '{"of": "VkResult", "name": "VK_ERROR_DEVICE_LOST", "value": -4} in d["perhaps"]'
    run 0 -1000161000; says out VK_ERROR_FRAGMENTATION
    run 0 700 --json; json '[(h["of"], h["name"]) for h in d["perhaps"]] == [("CUDA or HIP", "cudaErrorIllegalAddress")]'
    run 0 0x70000001; says out 'ZE_RESULT_ERROR_DEVICE_LOST'
    # Each name of the table that has a number there is known by it, and each number's name by itself.
    python3 - "$root" "$explain" 2>err <<'PY' || die "numbers of other interfaces are missing"
import re, subprocess, sys, tomllib
text = open(sys.argv[1] + "/tools/umd-explain/elsewhere.c").read()
rows = dict(re.findall(r'\{ "(\w+)", (-?\w+) \}', text))
table = tomllib.load(open(sys.argv[1] + "/umd/diag/status.toml", "rb"))["status"]
for key, none in (("cuda", "cudaSuccess"), ("vkresult", "VK_SUCCESS")):
    names = {n for s in table for n in (s[key].split() if isinstance(s.get(key, ""), str) and key in s else s.get(key, []))}
    assert names - {none} <= set(rows), names - {none} - set(rows)
PY
    run 0 0xfffff056; says out '^UMD_ERR_HW_MISALIGNED \(-4010'
    run 1 -9999; says err '^umd-explain: -9999 is no code, and lies in no range of codes'
    run 1 4294967296; says err 'no code'
    run 1 -2147483649; says err 'no code'
    run 1 12x; says err "no code '12x'" ;;
records)
    "$train" mlp --train-size 96 --test-size 32 --batch 32 --hidden 32 --epochs 1 --faults 'hw.cu.hang[nth=20]=fire;hw.reset.fail=fire' --log run.log >out 2>err
    id=$(sed -n 's/^  record *\([0-9a-f]*:[0-9]*:[0-9]*\).*/\1/p' err)
    [ -n "$id" ] || die "umd-train named no record"
    run 0 "$id" --log run.log
    says out "^record $id: UMD_ERR_HW_HANG" '^  what +The watchdog found the job stuck' '^  told +.*kernel=|^  told +.*job=' '^  at +20' '^  where .*kmd' '^  next +Look at ' 'UMD_ERR_HW_HANG tells more'
    run 0 "$id" --log run.log --json
    json 'd["code_name"] == "UMD_ERR_HW_HANG" and d["code"] == -4000 and d["line"] > 0 and d["explanation"]["action"] == "rebuild_context"'
    # The same as text and from the ring, in one run.
    UMD_LOG_FILE=run.txt UMD_EMERGENCY_FILE=ring.bin "$train" mlp --train-size 96 --test-size 32 --batch 32 --hidden 32 --epochs 1 \
        --faults 'hw.cu.hang[nth=20]=fire' >out 2>err
    id=$(sed -n 's/^  record *\([0-9a-f]*:[0-9]*:[0-9]*\).*/\1/p' err)
    run 0 "$id" --log run.txt; says out "^record $id: UMD_ERR_HW_HANG" '^  where '
    run 0 "$id" --emergency ring.bin; says out "^record $id: UMD_ERR_HW_HANG" '^  where '
    status=0; UMD_LOG_FILE=run.txt "$explain" "$id" >out 2>err || status=$?
    [ "$status" -eq 0 ] || die "the log of the environment was not read"
    says out "^record $id: UMD_ERR_HW_HANG"
    run 1 "${id%:*}:999999" --log run.txt; says err 'no line of run.txt tells of the record'
    run 1 "${id%:*}:999999" --emergency ring.bin; says err 'no line of ring.bin'
    # A run log has no place, module and thread of a failure, and none is made up.
    UMD_LOG_RUN=run.people "$train" mlp --train-size 96 --test-size 32 --batch 32 --hidden 32 --epochs 1 --faults 'hw.cu.hang[nth=20]=fire' >out 2>err
    id=$(sed -n 's/^  record *\([0-9a-f]*:[0-9]*:[0-9]*\).*/\1/p' err)
    run 0 "$id" --log run.people; says out '^  where +process [0-9]+, context 1'; ! grep -Eq 'thread 0| in -|^  where +in ' out || die "a place is made up"
    # Causes: the second failure of a story names the first.
    cat >chain.log <<'LOG'
# petrel log, version 0.1.0, pid 5, opened 2026-11-29T17:54:00.669505909Z
2026-11-29T17:54:00.000000001Z 1.000000001 ERROR 5.5 kmd.vm ctx=9 depth=1 rec=0000abcd:5:1: UMD_ERR_HW_PAGE_FAULT: A kernel touched it. address=0x1234 [vm_fault vm.c:120]
2026-11-29T17:54:00.000000002Z 1.000000002 ERROR 5.6 umd.stream ctx=9 depth=1 rec=0000abcd:5:2: UMD_ERR_EXEC_FAILED: See the cause. job=3 cause=0000abcd:5:1 [wait_done stream.c:160]
2026-11-29T17:54:00.000000003Z 1.000000003 ERROR 5.6 umd.stream ctx=9 depth=1 rec=0000abcd:5:3: UMD_ERR_CTX_BANNED: It was banned. cause=0000abcd:4:7 [check context.c:1]
LOG
    run 0 0000abcd:5:2 --log chain.log
    says out '^  because of +UMD_ERR_HW_PAGE_FAULT: .*address=0x1234 .*record 0000abcd:5:1'
    run 0 0000abcd:5:1 --log chain.log --json
    json 'len(d["led_to"]) == 1 and d["led_to"][0]["code_name"] == "UMD_ERR_EXEC_FAILED" and d["because_of"] == []'
    run 0 0000abcd:5:3 --log chain.log
    says out '^  because of +record 0000abcd:4:7, which is not in what was read' ;;
input)
    run 1; says err 'no code or record is named; try umd-explain --help'
    run 1 ''; says err "no code ''"
    run 1 HW_HANG HW_SPIN; says err 'one code or record at a time'
    run 1 -4000 HW_SPIN; says err 'one code or record at a time'
    run 1 --list HW_HANG; says err '--list takes no word'
    run 1 HW_HANG --log run.log; says err '--log and --emergency are for a RECORD-ID'
    run 1 a:b:c; says err "a record's id is boot:pid:number"
    run 1 0000abcd:5:2; says err 'name the log that has the record with --log FILE'
    run 2 0000abcd:5:2 --log /nonexistent; says err '/nonexistent'
    run 2 0000abcd:5:2 --emergency /nonexistent; says err '/nonexistent: No such file'
    run 2 0000abcd:5:2 --emergency "$explain"; says err 'no emergency ring of this version'
    run 1 --bogus; says err '^umd-explain: --bogus: '
    run 1 "$(printf 'a\033[31mb')"; grep -q "$(printf '\033')" err && die "control characters reached the terminal"
    run 0 --help; says out 'umd-explain UMD_ERR_MEM_FRAGMENTED' '^Exit status: '
    run 0 --version; says out '^umd-explain [0-9]'
    status=0; "$explain" HW_HANG >/dev/full 2>err || status=$?
    [ "$status" -eq 2 ] || die "output that is lost is no success"
    says err '^umd-explain: standard output could not be written: ' ;;
*) die "no such case" ;;
esac
exit 0
