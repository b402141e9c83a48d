#!/bin/bash
# SPDX-License-Identifier: MIT
# umd-log.sh - umd-log over logs of real runs: filters, merging, trees of errors, counts, sites, the emergency ring, bad input.
# usage: umd-log.sh UMD_LOG UMD_TRAIN CASE CARRIER
# shellcheck source=tests/tools/umd-log-common.sh
. "$(dirname "$0")/umd-log-common.sh"

case $case in
formats) # the same run in all formats says the same
    export TRACEPARENT=00-0123456789abcdef0123456789abcdef-00f067aa0ba902b7-01
    UMD_LOG_FILE=run.log UMD_LOG_JSON=run.json UMD_LOG_BINARY=run.bin UMD_LOG_RUN=run.txt UMD_LOG_LEVEL=trace training 3 --faults "$hang"
    ul 0 show --json run.log; silent; mv out text
    ul 0 show --json run.json; silent; mv out json
    python3 - <<'PY' || die "text and JSON tell different stories"
import json
a, b = ([json.loads(l) for l in open(f)] for f in ("text", "json"))
for r in a + b:
    del r["ObservedTimestamp"]
    assert r["TraceId"] == "0123456789abcdef0123456789abcdef" and r["SpanId"] == "00f067aa0ba902b7"
for r in b:
    assert r.pop("TraceFlags") == 1 # the text has none
assert len(a) == len(b) > 20 and a == b
PY
    ul 0 show run.log; silent
    grep -v '^#' run.log | sort >want; sort out >got
    cmp want got || die "show does not show what the file says"
    ul 0 show - <run.log; mv out piped
    ul 0 show run.log; cmp out piped || die "standard input is read differently"
    gzip -k run.log
    ul 0 show run.log.gz; cmp out piped || die "a compressed file is read differently"
    gzip -k run.bin
    for f in run.bin run.bin.gz; do
        ul 0 show $f; silent; cmp out piped || die "$f is read differently"
        ul 0 show - <$f; silent; cmp out piped || die "$f as standard input is read differently"
        # shellcheck disable=SC2094,SC2002
        cat $f | "$umdlog" show - >out 2>err; silent; cmp out piped || die "$f through a pipe is read differently"
    done
    head -c 2000 run.bin >cut.bin; ul 0 show cut.bin; one_line; says err 'cut off'
    head -c 50 run.bin >cut.bin; ul 2 show cut.bin; one_line; says err 'head is damaged'
    ul 0 merge run.log run.json run.bin; [ "$(wc -l <out)" -eq $((3 * $(wc -l <piped))) ] || die "merged formats lost records"
    # The logs for people, as far as they go: the run log has no places, the disaster log nothing below ERROR.
    rm -f run.*
    UMD_LOG_FILE=run.log UMD_LOG_RUN=run.txt UMD_LOG_DISASTER=run.dis training 3 --faults "$hang"
    ul 0 show --json run.txt; silent; mv out run.people
    ul 0 show --json run.dis; silent; mv out dis.people
    ul 0 show --json run.log; mv out all.people
    python3 - <<'PY' || die "the logs for people are not read as they should"
import json
run, dis, all = ([json.loads(l) for l in open(f + ".people")] for f in ("run", "dis", "all"))
raised = {r["Attributes"]["petrel.record"]: r for r in all if r["SeverityText"] == "ERROR" and r["Body"].startswith(r["Attributes"].get("petrel.code_name", "?"))}
assert raised and any(r["SeverityText"] == "INFO" for r in run) and len(run) > len(raised)
def same(a, b, *keys):
    for k in keys:
        assert a.get(k) == b.get(k), (k, a.get(k), b.get(k))
def of(records):
    return {r["Attributes"]["petrel.record"]: r for r in records if r["SeverityText"] == "ERROR"}
assert set(of(run)) == set(of(dis)) == set(raised)
for key, r in raised.items():
    a, b, c = r["Attributes"], of(run)[key]["Attributes"], of(dis)[key]["Attributes"]
    for other in (of(run)[key], of(dis)[key]):
        same(r, other, "Timestamp", "SeverityText", "Resource")
        same(a, other["Attributes"], "petrel.code_name", "petrel.code", "petrel.context_id")
        assert other["Body"].startswith(r["Body"].split(" ring=")[0].split(" action=")[0]) # kernel and line may follow
    same(a, b, "petrel.figures")
    same(r, of(run)[key], "Body")
    same(r, of(dis)[key], "InstrumentationScope")
    advice = {k: str(a["petrel.figures"].pop(k)) for k in ("action", "delay_ms", "count", "largest_fit_B") if k in a["petrel.figures"]}
    assert set(a["petrel.figures"]) <= set(c["petrel.figures"]) # at the end of a record more may be known
    assert "action" in b and "action" in c # the advice stands beside the figures there
    for k in advice:
        assert c[k] == advice[k] == b[k], (k, advice)
    same(a, c, "thread.id", "code.function.name", "code.file.path", "code.line.number")
    assert c["end"] in ("delivered", "absorbed")
PY
    ul 0 show --level error run.txt; silent; mv out again.log # and what show prints is a log
    ul 0 show --json again.log; lines out "$(grep -c ' ERROR ' run.txt)"
    cause=$(sed -n 's/.* ERROR UMD_ERR_HW_HANG: .* | record \([0-9a-f:]*\)$/\1/p' run.txt)
    for f in run.txt run.dis; do
        ul 0 errors $f; silent
        says out "^first cause: UMD_ERR_HW_HANG.*, $f, record $cause$" '^[`|]- .*UMD_ERR_EXEC_CANCELLED' '^\|  figures +ring='
    done
    says out '^\|  where +kmd\.reset raise_guilty_locked \(reset\.c:[0-9]+\), process [0-9]+ thread [0-9]+ context 1'
    "$(dirname "$train")/../umd-explain/umd-explain" "$cause" --log run.dis >out 2>err || die "umd-explain does not read the disaster log"
    says out "^record $cause: UMD_ERR_HW_HANG" 'led to +UMD_ERR_EXEC_CANCELLED'
    head -c -300 run.dis >torn.dis; ul 0 show torn.dis; says err 'the last line is cut off'
    sed '1s/petrel run log/petrel walk log/' run.txt >walk.txt; ul 0 show walk.txt; says err 'walk\.txt is a walk log, of which this version knows nothing' ;;
filters)
    UMD_LOG_FILE=run.log UMD_LOG_LEVEL=trace training 3 --faults "$hang"
    ul 0 show -l error run.log; says out UMD_ERR_HW_HANG; hushes out ' (WARN|INFO|DEBUG|TRACE) '
    ul 0 show -m kmd run.log; says out ' kmd\.'; hushes out ' (umd|hw)\.'
    ul 0 show -m umd.context,kmd.drv run.log; says out ' umd\.context ' ' kmd\.drv '; hushes out ' umd\.mem '
    ul 0 show -c 2 run.log; says out 'ctx=2 '; hushes out 'ctx=1 '
    for code in UMD_ERR_HW_HANG HW_HANG HANG hang hw-hang -4000 'UMD_ERR_HW_*' hw -4999..-4000; do
        ul 0 show -C "$code" run.log; silent; lines out 2; says out 'ended UMD_ERR_HW_HANG: end=delivered call=umd'
        ul 0 show -l error -C "$code" run.log; silent; lines out 1; says out 'UMD_ERR_HW_HANG:'
    done
    id=$(grep -o 'rec=[^:]*:[0-9]*:[0-9]*' out); id=${id#rec=}
    ul 0 show -r "$id" run.log; says out UMD_ERR_HW_HANG
    ul 0 show -F started=0 run.log; says out EXEC_CANCELLED; hushes out HW_HANG
    ul 0 show -g '^context (created|destroyed)' run.log; says out 'context created' 'context destroyed'; hushes out stream
    ul 0 show --function context_create run.log; silent; says out '\[context_create context\.c:'; hushes out 'stream_create '
    ul 0 show --function 'umd*Destroy' run.log
    ! traced || { says out '\[umdStreamDestroy ' '\[umdContextDestroy '; hushes out '\[umd[A-Za-z]*Create '; }
    printf '2026-11-29T17:54:00.5Z ERROR UMD_ERR_MEM_SIZE: Zero. size_B=0 | where: call umdMemAlloc, context 3 | next: Free. | record a:7:4\n' >run.people
    ul 0 show --function 'umdMem*' run.people; lines out 1 # a run log has the call
    ul 0 show --function 'umdStream*' run.people; lines out 0
    ul 1 show --function a,,b run.log; one_line
    for tid in $(grep -v '^#' run.log | sed 's/^[^.]*\.[0-9]*Z [0-9.]* [A-Z]* *[0-9]*\.\([0-9]*\) .*/\1/' | sort -u); do
        ul 0 show -t "$tid" run.log; lines out "$(grep -c "^[^#].* [0-9]*\.$tid " run.log)"
    done
    for code in UMD_ERR_HW_HANGG HW_HONG hw,hangg; do # slips, not names of a newer version
        ul 1 show -C $code run.log; lines out 0; one_line; says err "^umd-log: there is no code '.*'; did you mean UMD_ERR_HW_HANG[?,]"
        ul 1 errors -C $code run.log; one_line
    done
    ul 1 show -C NOSUCH run.log; lines out 0; one_line; says err "^umd-log: there is no code 'NOSUCH'"
    ul 1 show -C xyzzyxyzzy run.log; one_line; says err "^umd-log: there is no code 'xyzzyxyzzy'; umd-explain --list prints all$"
    ul 0 show -n 3 run.log; lines out 3; says out 'exit umdShutdown|library ends|device closed' ;;
times)
    made 30 >a.log
    ul 0 show --since 2026-11-29T17:54:10Z --until '2026-11-29 17:54:12.5' a.log; lines out 3; says out 'i=10 ' 'i=12 '
    ul 0 show --since 2026-11-29T18:54:10+01:00 --until @1795974852 a.log; lines out 2
    ul 0 show --since 110 --until 111.5 a.log; lines out 2; says out 'i=10 ' 'i=11 '
    ul 0 show --since +28 a.log; lines out 2; says out 'i=28 '
    ul 0 show --since -1.5s a.log; lines out 2; says out 'i=29 '
    ul 0 show --since +28500ms --json a.log; lines out 1
    ul 2 show --since +1 - <a.log; says err 'standard input cannot be read twice'
    ul 2 show --since +1 <(cat a.log); one_line; says err '/dev/fd/[0-9]+ cannot be read twice'
    ul 0 show --since @18000000000 a.log; lines out 0
    for bad in @18446744074 yesterday +x 2026-13-01T00:00:00Z 1.5.2 ''; do
        ul 1 show --since "$bad" a.log; one_line; lines out 0; says err '^umd-log: --since is .*, not a time: .*; try umd-log show --help$'
    done ;;
rotated) # parts of one run, newest last; parts of an earlier run only when asked for; a child's file is no part
    made 60 >all
    sed 's/ \(INFO  \)[78]\./ \17./' all >one
    head -n 10 one >run.log.2; head -n 30 one | tail -n 20 | gzip >run.log.1.gz; tail -n 30 one >run.log
    made 3 | sed 's/ \(INFO  \)[78]\./ \19./' >run.log.3
    { echo '# petrel log, version 0.1.0, pid 4711, opened 2026-11-29T17:54:00.000000000Z'; made 1; } >run.log.4711
    ul 0 show run.log; lines out 60; cmp out one || die "the parts are not in order"
    lines err 2; says err '1 older file\(s\) are of earlier runs' 'run\.log\.4711'
    mkdir links; ln -s ../run.log links/now.log; ul 0 show links/now.log; cmp out one || die "the parts of what a link leads to are not read"
    ul 0 show --history run.log; lines out 63
    ul 0 show --alone run.log; lines out 30 ;;
merge)
    UMD_LOG_FILE=a.log training 3 --faults "$hang" &
    UMD_LOG_JSON=b.json "$train" mlp --train-size 96 --test-size 32 --batch 32 --hidden 32 --epochs 1 --carrier "$carrier" >/dev/null 2>&1
    wait %1 || die "the first training did not end as it should"
    ul 0 merge a.log b.json; silent
    says out '^a\.log \| 2' '^b\.json \| 2'
    sed 's/.* | \(20[^ ]*\) .*/\1/' out >got; sort -c got || die "not in order of real time"
    [ "$(wc -l <got)" -eq $(($(grep -vc '^#' a.log) + $(wc -l <b.json))) ] || die "records are missing"
    ul 0 merge --json a.log b.json
    json 'r = [json.loads(l) for l in sys.stdin]; assert {x["Attributes"]["log.file.path"] for x in r} == {"a.log", "b.json"}'
    ul 0 errors a.log b.json; says out '^first cause: UMD_ERR_HW_HANG in kmd\.reset of process [0-9]+, a\.log, record'
    mkdir r0 r1; cp a.log r0/x; cp b.json r1/x
    ul 0 merge r0/x r1/x; says out '^r0/x \| ' '^r1/x \| '
    ul 1 merge --follow a.log; one_line
    ul 2 merge a.log none.log; one_line; says err '^umd-log: none.log cannot be read: No such file'; lines out 0
    for command in merge show stats errors; do
        ul 1 $command a.log a.log; one_line; lines out 0; says err '^umd-log: a.log is named twice'
    done ;;
follow)
    made 3 >run.log
    "$umdlog" show --follow run.log >out 2>err &
    pid=$!
    waits() { for _ in $(seq 600); do grep -q "$1" out && return; sleep 0.1; done; kill $pid; die "never came: $1"; }
    waits 'i=2 '
    made 5 | tail -n 2 >>run.log; waits 'i=4 '
    made 6 | tail -n 1 | tr -d '\n' >>run.log; echo >>run.log; waits 'i=5 '
    mv run.log run.log.1; made 7 | tail -n 1 >run.log; waits 'i=6 '
    made 8 | tail -n 1 >>run.log; waits 'i=7 '
    kill -INT $pid; status=0; wait $pid || status=$?
    [ $status -eq 0 ] || die "an end by Ctrl-C is no failure"
    lines out 8
    # Nothing is added to what is compressed: it is read to its end once, also where that is missing.
    made 40 >whole; gzip -k whole; head -c 300 whole.gz >cut.gz
    ul 0 show --follow whole.gz; silent; cmp out whole || die "a compressed file is followed differently"
    ul 0 show --follow --tail 3 whole.gz; silent; lines out 3
    ul 0 show --follow - <whole.gz; cmp out whole || die "compressed standard input is followed differently"
    ul 0 show cut.gz; mv out want; ul 0 show --follow cut.gz; cmp out want || die "a file that is cut off is followed differently"
    says err 'cut\.gz: the compressed data are damaged or cut off'
    # A pipe: to its end; a silent one is left by a signal, before and after its first record; what is looked at is not lost.
    cat whole | "$umdlog" show --follow - >out 2>err; silent; cmp out whole || die "a pipe is followed differently"
    ul 0 show <(cat whole); cmp out whole || die "a pipe that has a name is read differently"
    mkfifo fifo
    for n in 0 3; do
        for sig in INT TERM; do
            rm -f out; : >out
            (exec sleep 600) >fifo &
            holder=$!
            "$umdlog" show --follow fifo >out 2>err &
            pid=$!
            for _ in $(seq 600); do [ "$(readlink /proc/$pid/fd/3)" = "$work/fifo" ] && break; sleep 0.1; done
            [ $n -eq 0 ] || { made $n >fifo; waits "i=$((n - 1)) "; }
            # Only after its handlers are in place is a signal an end without failure.
            for _ in $(seq 600); do grep -q '^SigCgt:.*[1-9a-f]' /proc/$pid/status && break; sleep 0.1; done
            kill -$sig $pid; status=0; wait $pid || status=$?
            kill $holder; wait $holder 2>/dev/null
            [ $n -eq 0 ] || [ $status -eq 0 ] || die "SIG$sig does not end it as it should"
            lines out $n
        done
    done ;;
errors)
    UMD_LOG_FILE=run.log training 3 --faults "$hang"
    ul 0 errors run.log; silent
    says out '^[0-9]+ error records?, ' '^first cause: UMD_ERR_HW_HANG ' 'UMD_ERR_HW_HANG \(-4000\)  <== first cause$' '^ *\|? *what +The watchdog' \
        ' where +kmd\.reset raise_guilty_locked \(reset\.c:[0-9]+\), process [0-9]+ thread [0-9]+ context 1' ' figures .*job=' ' next +Look at kernel' \
        ' kernel +mlp_[a-z_0-9]+ at mlp(_args)?\.[ch]:[1-9][0-9]*$' ' added +kernel=mlp_[a-z_0-9]+ source=mlp'
    mv out out_text
    ul 0 errors --json run.log
    json 'r = json.load(sys.stdin); f = [x for x in r["records"] if x["first_cause"]]
assert len(f) == 1 and f[0]["code_name"] == "UMD_ERR_HW_HANG" and f[0]["record"] == r["first_cause"] and f[0]["next"] and r["errors"] >= 1 and r["swallowed"] == 0
assert " at mlp" in f[0]["kernel"] and "stream=" in f[0]["added"]
told = any("ended UMD_ERR_HW_HANG: end=delivered" in l for l in open("run.log"))
assert not told or f[0]["end"] == "delivered" and f[0]["hops"] and all(h["layer"] and h["line"] for h in f[0]["hops"])
assert all(x["cause"] == r["first_cause"] and x["cause_found"] for x in r["records"] if x["code_name"] == "UMD_ERR_EXEC_CANCELLED")
assert all(x["advice"]["action"] == "rebuild_context" and x["advice"]["of"] == "record" for x in r["records"] if "reason=context_banned" in x["log"]["Body"])
assert f[0]["advice"]["action"] == "rebuild_context" and f[0]["advice"]["of"] == ("record" if told else "table")'
    # What fell with it hangs below it; where it went, and the code at entry and exit of each layer.
    says out_text '^`- \+[0-9.]+ s UMD_ERR_EXEC_CANCELLED \(-3011\)' 'figures .*cause=[0-9a-f]{8}:[0-9]+:1( action=rebuild_context)?$'
    ! grep -q 'ended UMD_ERR_HW_HANG: end=delivered' run.log || says out_text 'end +delivered to umd[A-Z]'
    [ "$(grep -c '^20' out_text)" -eq 1 ] || die "there is more than one tree"
    ul 0 errors --trace run.log
    says out 'trace +kmd\.reset +raise_guilty_locked \(reset\.c:[0-9]+\) raises UMD_ERR_HW_HANG'
    ! grep -q 'ended UMD_ERR_HW_HANG: end=delivered' run.log || says out ' umd +[a-z_]+ \([a-z_]+\.c:[0-9]+\) in UMD_ERR_HW_HANG out UMD_ERR_HW_HANG$'
    ul 3 errors --check run.log; ul 3 errors --check --code HW_HANG run.log; ul 0 errors --check --module nothing run.log # of what is asked for
    ul 0 errors --code EXEC_CANCELLED run.log; says out EXEC_CANCELLED
    UMD_LOG_FILE=good.log training 0
    ul 0 errors good.log; silent; lines out 1; says out '^no errors: '
    ul 0 errors --check good.log
    : >empty.log
    ul 0 errors empty.log; silent; says out '^no errors: '
    # Long chains of causes take neither a stack nor a walk for each record.
    python3 -c 'for i in range(1, 60001):
    print("2026-11-29T17:54:00.%09dZ 100.%09d ERROR 7.7 umd.test depth=1 rec=1:7:%d: UMD_ERR_HW_HANG: stuck n=%d cause=1:7:%d" % (i, i, i, i, i - 1 or 60000))' >chain.log
    (ulimit -s 1024; exec "$umdlog" errors -m nothing chain.log) >out 2>err || die "a long chain is not survived"
    ul 0 errors --json chain.log; silent
    json 'r = json.load(sys.stdin); n = r["records"]
assert len(n) == r["errors"] == 60000 and r["first_cause"] == "00000001:7:60000" and all(x["cause_found"] for x in n)'
    # What is folded is told at its 1st, 10th, 100th time alone; what is too much, as a number: neither is more than is known.
    storm() { # SECOND CODE TEXT PLACE [rec=ID]
        printf '2026-11-29T17:54:%02d.5Z %d.5 ERROR 7.70 umd.mem ctx=1 depth=1%s: %s [%s m.c:5]\n' "$1" "$1" "${4:+ rec=a:7:$4}" "$2" "$3"
    }
    { storm 1 'UMD_ERR_MEM_POINTER: Bad. ptr=0x1' f 1; storm 2 'UMD_ERR_MEM_POINTER: Bad. ptr=0x1 repeat=1' f 1; storm 3 'UMD_ERR_MEM_POINTER: Bad. ptr=0x1 repeat=10' f 1
      storm 4 'ended UMD_ERR_MEM_POINTER: end=delivered call=umdMemFree repeat=10 hops=""' f 1; storm 5 'UMD_ERR_MEM_SIZE: Zero.' g 2; storm 6 'UMD_ERR_MEM_SIZE: Zero.' g 3
      storm 7 'not logged one by one: suppressed=40 of=UMD_ERR_MEM_SIZE since_ns=6500000000' g; storm 8 'not logged one by one: suppressed=2 of=UMD_ERR_MEM_SIZE since_ns=7500000000' g
      storm 9 'not logged one by one: suppressed=9 of=UMD_ERR_HW_HANG since_ns=6500000000' h; } >storm.log
    cp storm.log twin.log # the same lines of another file count once
    for files in storm.log 'storm.log twin.log'; do
        # shellcheck disable=SC2086
        ul 0 errors $files; silent
        says out '^3 error records, ' 'UMD_ERR_MEM_POINTER \(-1022\), at least 11 times' 'UMD_ERR_MEM_SIZE \(-1020\), 2 times$' 'of this code and place 42 more were not logged one by one' \
            '^not logged one by one: 42 of UMD_ERR_MEM_SIZE in umd\.mem g \(m\.c:5\) of process 7$' '^not logged one by one: 9 of UMD_ERR_HW_HANG in '
    done
    ul 0 errors --json storm.log
    json 'r = json.load(sys.stdin); t = {x["record"]: (x["times"], x["times_exact"]) for x in r["records"]}
assert t == {"0000000a:7:1": (11, False), "0000000a:7:2": (1, True), "0000000a:7:3": (1, True)}, t
assert r["not_logged"] == 51 and [(x["code_name"], x["function"], x["count"]) for x in r["not_logged_by_place"]] == [("UMD_ERR_MEM_SIZE", "g", 42), ("UMD_ERR_HW_HANG", "h", 9)]'
    ul 0 stats storm.log; silent; says out '^not logged one by one: at least 10 repeats of records, told by 3 lines; 51 failures that were too many$'
    ul 0 stats --json storm.log; json 'r = json.load(sys.stdin); assert r["repeats_at_least"] == 10 and r["suppressed"] == 51 and r["repeat_lines"] == 3'
    grep 'suppressed' storm.log >alone.log; ul 0 errors alone.log; hushes out '^no errors'; says out '^not logged one by one: 42 '; ul 3 errors --check alone.log
    "$(dirname "$train")/../umd-explain/umd-explain" 0000000a:7:1 --log storm.log >out 2>err; says out '^  times +at least 11 times$'
    "$(dirname "$train")/../umd-explain/umd-explain" 0000000a:7:2 --log storm.log >out 2>err; says out '^  besides +of this code and place 42 more' ;;
stats)
    UMD_LOG_FILE=run.log UMD_LOG_JSON=run.json UMD_LOG_LEVEL=debug training 3 --faults "$hang"
    ul 0 stats run.log; silent
    says out '^[0-9]+ records from 20.* to 20.*/s' '^lost on the way: 0 dropped' '^ERROR +[0-9]+ ' '^kmd\.reset +[0-9]+ ' '^UMD_ERR_HW_HANG +2 +1 ' '^[0-9]+\.[0-9]+ '
    ul 0 stats --json run.json
    want=$(grep -vc '^#' run.log)
    json "r = json.load(sys.stdin); assert r['records'] == $want and sum(m['records'] for m in r['modules']) == $want and r['dropped'] == 0"
    { cat run.log; printf '2026-11-29T17:54:00.0Z 1.0 WARN  1.1 diag.log depth=0: log records were dropped, a thread'"'"'s ring was full count=17\n'; } >lossy.log
    ul 0 stats --json lossy.log; json 'assert json.load(sys.stdin)["dropped"] == 17'
    # Each process counts what it drops by itself, up.
    drop() { printf '2026-11-29T17:54:0%d.0Z 1.0 WARN  %d.1 diag.log depth=0: log records were dropped, the ring was full count=%d total=%d\n' "$@"; }
    { drop 1 7 17 17; drop 2 7 3 20; drop 3 8 5 5; } >two.log; drop 4 7 9 9 >host2.log
    ul 0 stats --json two.log host2.log; json 'assert json.load(sys.stdin)["dropped"] == 34'
    # After very many names the others are one row; those that are known go on to be counted.
    python3 -c 'for i in range(20000 + 5):
    print("2026-11-29T17:54:00.%09dZ 1.%09d INFO 1.1 m%d depth=0: x" % (i, i, i))
print("2026-11-29T17:54:01.0Z 2.0 INFO 1.1 m7 depth=0: x")' >names.log
    ul 0 stats --json names.log
    json 'm = {r["module"]: r["records"] for r in json.load(sys.stdin)["modules"]}; assert m["m7"] == 2 and m["(others)"] == 5' ;;
tolerant)
    made 4 >good
    { head -n 2 good; echo 'hello from somebody else'; head -c 100 /dev/zero; tail -n 2 good; printf '\n\377\376\033[31m\n'; echo '{"a":1}'; } >log
    ul 0 show log; lines out 4; cmp out good || die "records between foreign lines are lost"
    says err '^umd-log: log: 3 of [0-9]+ lines are no log records, the first is line 3$' '100 bytes are NUL'
    { cat good; head -c 400000 /dev/zero | tr '\0' x; echo; cat good; } >log
    ul 0 show log; lines out 8; says err 'longer than 256 KiB'
    { cat good; printf '2026-11-29T17:54:50.5Z 9.5 INFO  7.70 umd.mem depth=1: torn he'; } >log
    ul 0 show log; lines out 5; says out ': torn he$'; one_line; says err 'the last line is cut off'
    printf '2026-11-29T17:54:50.5Z 9.5 FATAL 7.70 umd.new ctx=1 depth=1 rec=0a:1:2 gpu=3 trace=a b colour=red: UMD_ERR_OF_TOMORROW: Oh. x=1 [f n.c:2]\n' >log
    ul 0 show log; silent; cat log >want
    says out ' FATAL 7\.70 umd\.new ctx=1 depth=1 rec=0000000a:1:2 gpu=3 .*colour=red.* trace=a b: UMD_ERR_OF_TOMORROW: Oh\. x=1 \[f n\.c:2\]$'
    ul 0 show -C 'UMD_ERR_OF_*' log; lines out 1 # a name that this version does not know is found by a pattern
    ul 1 show -C UMD_ERR_OF_TOMORROW log; one_line
    ul 0 show --json log; json 'r = json.loads(sys.stdin.read()); assert r["Attributes"]["gpu"] == "3" and r["Attributes"]["petrel.code_name"] == "UMD_ERR_OF_TOMORROW"'
    printf '{"Timestamp":5,"Body":{"k":1},"SeverityNumber":21,"SpanId":"aa","Attributes":{"new.key":[1,2]},"Resource":{"host.name":"n1"}}\n' >log
    ul 0 show log; says out 'ERROR|\?' 'new\.key=\[1,2\]' ' span=aa' 'host\.name=n1' '\{"k":1\}'
    printf 'hello\nfrom somebody else\n' >foreign
    for command in 'show foreign' 'show --json foreign' 'stats foreign' 'errors foreign' 'merge good foreign' 'export --otlp foreign' 'show -'; do
        # shellcheck disable=SC2086
        ul 2 $command <foreign; one_line; says err '^umd-log: (foreign|-) is no log: none of its 2 lines is a record$'
    done
    ul 0 show -C hw good; silent; lines out 0 # none that matches is no failure
    # A way up through many layers is longer than a figure may be.
    python3 -c 'hops = " ".join("layer%02d:%s:some_file_name_%02d.c:%d:-4000>-4000" % (i, "f" * 25, i, i + 1) for i in range(16))
print("2026-11-29T17:54:01.5Z 1.5 ERROR 7.70 kmd.x depth=1 rec=a:7:1: UMD_ERR_HW_HANG: Stuck. [f m.c:5]")
print("2026-11-29T17:54:02.5Z 2.5 INFO 7.70 diag.record depth=1 rec=a:7:1: ended UMD_ERR_HW_HANG: end=delivered call=umdX hops=\"%s\" repeat=0" % hops)' >deep.log
    ul 0 errors --json deep.log; json 'h = json.load(sys.stdin)["records"][0]["hops"]; assert [(x["layer"], x["line"]) for x in h] == [("layer%02d" % i, i + 1) for i in range(16)], h'
    head -c 3000 good | gzip | head -c 60 >cut.gz
    ul 0 show cut.gz; says err 'damaged'
    # One bit of the checksum: all that was inflated is there.
    gzip -c good >sum.gz; python3 -c 'b = bytearray(open("sum.gz", "rb").read()); b[-6] ^= 1; open("sum.gz", "wb").write(b)'
    ul 0 show sum.gz; cmp out good || die "what comes before the damage is not shown"
    one_line; says err 'sum\.gz: the compressed data are damaged or cut off; .*the rest is lost$'
    cat sum.gz | "$umdlog" show - >out 2>err; cmp out good || die "what comes before the damage is not shown of a pipe" ;;
sites)
    ul 0 sites; silent
    says out '^libumd_diag\.so.*: [1-9][0-9]* call sites$' '^libumd\.so.*: ' '^libpetrel_kmd\.so: ' '^INFO +in +umd\.context +context\.c:[0-9]+ +context_create +context created id=%lu'
    # Where records are raised: with code, and the level of its severity.
    says out '^ERROR +in +umd\.mem +memory\.c:[0-9]+ +[a-z_]+ +raise UMD_ERR_MEM_POINTER: argument=%s' \
        '^ERROR +in +kmd\.watchdog +watchdog\.c:[0-9]+ +ring_stuck_locked +raise UMD_ERR_HW_HANG: ring=%u' \
        '^WARN +in +kmd\.irq +irq\.c:[0-9]+ +irq_lost_locked +raise UMD_ERR_HW_IRQ_LOST: ' \
        '^ERROR +in +diag\.fault +fault_plan\.c:[0-9]+ +[a-z_]+ +raise UMD_ERR_FAULT_SPEC: position=%zu' \
        '^ERROR +in +diag\.sys +device\.c:[0-9]+ +umd_device_create +raise UMD_ERR_MEM_HOST_ALLOC_FAILED: size_B=%zu' \
        '^- +in +kmd\.sched +sched\.c:[0-9]+ +petrel_queue_cancel_locked +raise UMD_ERR_EXEC_CANCELLED: ' \
        '^- +in +kmd\.reset +reset\.c:[0-9]+ +raise_guilty_locked +raise \(code at run time\): ring=%u' \
        '^INFO +in +umd\.stream +stream\.c:[0-9]+ +exec_retrying +absorb: waited for the oldest job' 'known at run time alone'
    ul 0 sites --json --module umd
    json 'r = json.load(sys.stdin); assert len(r) > 5 and all(s["module"].startswith("umd") and s["line"] > 0 and (s.get("text") or s["kind"] == "absorb") for s in r)'
    ul 0 sites --json --module kmd.watchdog
    json 'r = [s for s in json.load(sys.stdin) if s["kind"] == "raise"]; assert {s["code"] for s in r} >= {"UMD_ERR_HW_HANG", "UMD_ERR_HW_LONG_RUNNING"}
assert all(s["level"] in ("ERROR", "WARN") and s["compiled_in"] for s in r)'
    # Of a process with very many files mapped, ours before the others.
    python3 - "$(ldd "$umdlog" | sed -n 's/.*=> \(.*libumd_diag[^ ]*\).*/\1/p')" <<'PY' &
import mmap, sys, time
def map_code(path):
    with open(path, "rb") as f:
        return mmap.mmap(f.fileno(), 4096, prot=mmap.PROT_READ | mmap.PROT_EXEC, flags=mmap.MAP_PRIVATE)
held = [map_code(sys.argv[1])]
for i in range(150):
    with open("lib%d" % i, "wb") as f:
        f.write(b"x" * 4096)
    held.append(map_code("lib%d" % i))
open("mapped", "w").close()
time.sleep(600)
PY
    pid=$!
    for _ in $(seq 1200); do [ ! -e mapped ] || break; sleep 0.1; done
    ul 0 sites --json --pid $pid; kill $pid
    json 'assert any("libumd_diag" in s["library"] for s in json.load(sys.stdin))'
    ul 0 sites --level warn; hushes out '^(INFO|DEBUG|TRACE|ERROR) '
    ul 2 sites /bin/true; one_line; says err 'no call sites'
    ul 2 sites "$self"; one_line; says err 'no ELF'
    ul 1 sites --level loud; one_line ;;
doctor)
    verdict() { # STATUS WORD WORD-OF-DOCTOR...
        local want=$1
        shift
        ul 0 doctor "$@"; silent
        says out "^verdict: $want\\."
    }
    verdict no-file
    UMD_LOG_FILE=new.log verdict never-logged
    UMD_LOG_FILE=/nowhere/run.log verdict path-unwritable; says out '/nowhere is not there'
    mkdir d; UMD_LOG_FILE=d verdict path-unwritable; says out 'd is a directory'
    UMD_LOG_FILE=new.log UMD_LOG_LEVEL=umd=loud verdict bad-setting; says out 'UMD_LOG_LEVEL=umd=loud is ignored: position 4'
    UMD_LOG_FILE=new.log UMD_LOG_FILE_LEVEL=off verdict filtered; says out 'UMD_LOG_FILE_LEVEL says off'
    traced && below=filtered || below=compiled-out
    UMD_LOG_FILE=new.log verdict "$below" --level trace --module umd.mem; says out 'no TRACE of umd.mem, only INFO and above, by the default'
    UMD_LOG_FILE=run.log training 3 --faults "$hang"
    verdict fine run.log
    UMD_LOG_FILE=run.log verdict fine
    verdict filtered --level debug run.log; says out 'no DEBUG record'
    : >empty.log
    verdict never-logged empty.log; says out 'empty and no process has it open'
    printf '# petrel log, version 0.1.0, pid 4711, opened 2026-11-29T17:54:00.669505909Z\n' >head.log
    verdict nothing-happened head.log; says out 'process 4711 opened it'
    echo hello >foreign.log; verdict no-log foreign.log; lines out 4; hushes out 'empty|sudo'
    # All that the library ignores, by its own word; names that are none.
    printf 'nothing\n' >plain; mkdir open_dir; chmod 777 open_dir
    for bad in UMD_LOG_ROTATE=weekly UMD_LOG_MAX_MIB=-1 UMD_LOG_KEEP=x UMD_LOG_FLUSH_MS=0 TRACEPARENT=junk UMD_EMERGENCY=yes UMD_CONTROL=maybe UMD_LOG_CONSOLE=2; do
        (export UMD_LOG_FILE=run.log "${bad?}"; verdict bad-setting; says out "^bad-setting +$bad is ignored: ") || exit 1
        name=${bad%%=*} # each empty is none
        (export UMD_LOG_FILE=run.log "$name="; verdict fine) || exit 1
    done
    for bad in UMD_EMERGENCY_FILE=/nowhere/x PETREL_STATE_DIR=/nowhere/y UMD_CRASH_DIR=/nowhere/x/y PETREL_STATE_DIR=plain UMD_CRASH_DIR=open_dir UMD_CRASH_DIR=/etc/passwd; do
        (export UMD_LOG_FILE=run.log "${bad?}"; verdict path-unwritable; says out "^path-unwritable +${bad%%=*}: ") || exit 1
    done
    (export UMD_LOG_FILE=run.log UMD_EMERGENCY=off UMD_EMERGENCY_FILE=ring.bin; verdict bad-setting; says out 'UMD_EMERGENCY says off') || exit 1
    for bad in UMD_LOG_FIEL=x:UMD_LOG_FILE PETREL_DEVICE=2:PETREL_DEVICES UMD_EMERGENCYFILE=x:UMD_EMERGENCY_FILE; do
        (export UMD_LOG_FILE=run.log "${bad%:*}"; verdict bad-setting; says out "^bad-setting +${bad%%=*} is no setting, and is ignored; was ${bad#*:} meant\?$") || exit 1
    done
    (export UMD_LOG_FILE=run.log UMD_LOG_ZZZZZZZZZZ=1; verdict bad-setting) || exit 1
    (export UMD_LOG_FILE=run.log UMD_OF_SOMEBODY_ELSE=1; verdict fine; says out 'UMD_OF_SOMEBODY_ELSE is none of the variables') || exit 1
    (export UMD_LOG_FILE=run.log UMD_LOG_LEVEL=umd.mme=trace,info; verdict bad-setting; says out 'UMD_LOG_LEVEL: there is no module umd\.mme; was umd\.mem meant\?') || exit 1
    (export UMD_LOG_FILE=run.log UMD_LOG_FILE_LEVEL='umd.*=info'; verdict bad-setting; says out "UMD_LOG_FILE_LEVEL: 'umd\.\*' matches no module") || exit 1
    (export UMD_LOG_FILE=run.log UMD_LOG_LEVEL=my.app=info,kmd=info,info; verdict fine; says out 'no library of ours has a module my\.app,') || exit 1
    printf '[log]\nUMD_LOG_FIEL = x\nPETREL_DEVICES = 2\nUMD_LOG_KEEP = many\n[Log]\nx = 1\n[other]\nUMD_LOG_JSON = y\nz = 1\n' >bad.ini
    (export UMD_LOG_FILE=run.log PETREL_CONFIG=bad.ini; verdict bad-setting
        says out 'UMD_LOG_FIEL \(bad\.ini, line 2\)=x is ignored: no such setting; was UMD_LOG_FILE meant\?$' 'PETREL_DEVICES \(bad\.ini, line 3\)=2 is ignored: no such setting$' \
            'UMD_LOG_KEEP \(bad\.ini, line 4\)=many is ignored: not a number from 0 to 1000' 'x \(bad\.ini, line 6\)=1 is ignored: it stands in section \[Log\]' \
            'UMD_LOG_JSON \(bad\.ini, line 8\)=y is ignored: it stands in section \[other\]'
        hushes out 'line 9') || exit 1
    (export PETREL_CONFIG=/nonexist; verdict bad-setting; says out '/nonexist: No such file'; hushes out 'line 0') || exit 1
    # What the documentation lists is known here, and so is each module of the sources.
    root=$(dirname "$self")/../..
    (for name in $(sed -n 's/^| \(`[A-Z_`, ]*\) |.*/\1/p' "$root/docs/environment.md" | tr -d '`,' | grep -o '\(UMD\|PETREL\)_[A-Z_]*'); do export "$name=$([ $name != PETREL_CONFIG ] || echo)"; done
        ul 0 doctor; hushes out 'none of the variables' 'is no setting') || exit 1
    for module in $(grep -rlE '\b(UMD_LOG|UMD_FAIL|UMD_LIFECYCLE)\(' "$root"/umd "$root"/kmd_sim "$root"/hw_model | xargs grep -hoE '^UMD_LOG_MODULE\("[a-z_.]+"' | grep -oE '"[a-z_.]+"' | tr -d '"' | sort -u); do
        echo "$module=info"
    done | xargs -n 25 | tr ' ' ',' | while read -r spec; do
        UMD_LOG_LEVEL=$spec ul 0 doctor; hushes out 'there is no module' 'has a module'
    done || exit 1
    # A module that is none, that has said nothing, that is the program's own.
    verdict nothing-happened --module nosuch run.log; says out 'no library of ours has a module nosuch;'
    verdict nothing-happened --module umd.mme run.log; says out 'was umd\.mem meant\?'
    verdict nothing-happened --module diag.fault run.log; says out 'run\.log: it has no record of diag\.fault'
    verdict fine --module umd run.log
    { cat run.log; printf '2026-11-29T17:54:00.0Z 1.0 INFO  1.1 my.app depth=0: hello\n'; } >app.log
    verdict filtered --module my.app --level debug app.log; says out 'or that of the program is not compiled in \(-DUMD_DEBUG_ENABLE=1\)'
    verdict filtered --module umd --level debug app.log; hushes out 'not compiled in \('
    { cat run.log; printf '2026-11-29T17:54:00.0Z 1.0 WARN  1.1 diag.log depth=0: log sink fails, its records are lost path="/x" errno=28 reason="No space left on device"\n'; } >full.log
    verdict sink-failing full.log; says out 'errno=28'
    ul 0 doctor --json full.log; json 'r = json.load(sys.stdin); assert r["verdict"] == "sink-failing" and r["next"] and r["findings"]'
    # An end that is missing, by the file itself, by what it says, by the ring of its process.
    head -c -20 run.log >torn.log; verdict cut-short torn.log; says out 'torn\.log: it ends in the middle of a record'
    UMD_LOG_BINARY=run.bin UMD_LOG_JSON=run.json training 0
    verdict fine run.bin; verdict fine run.json
    head -c -20 run.bin >torn.bin; verdict cut-short torn.bin
    head -c -20 run.json >torn.json; verdict cut-short torn.json
    gzip -c run.log | head -c -30 >torn.gz; verdict cut-short torn.gz; says out 'place\(s\) of it cannot be decoded'
    again() { cat run.log; printf '%s 1.0 WARN  1.1 diag.log depth=0: log sink works again records_lost=%d\n' "$(date -u +%FT%T.%NZ)" "$1"; }
    again 7 >again.log; verdict lost again.log; says out 'it says that 7 records were lost'
    again 0 >again.log; verdict fine again.log; says out 'has lost nothing'
    rm -rf state; UMD_LOG_FILE=/nowhere/gone.log training 3 --faults "$hang"
    ring=$(echo state/emergency.*)
    { printf '# petrel log, version 0.1.0, pid %d, opened 2026-01-01T00:00:00.0Z\n' "${ring##*.}"; sed -n '3,9p' run.log; } >gone.log
    verdict cut-short gone.log; says out "the emergency ring of its process, .*/emergency.${ring##*.}, says: log sink fails.* errno=2 "
    cp gone.log other.log; verdict fine other.log
    { cat gone.log; again 0 | tail -n 1; } >mended.log; mv mended.log gone.log; verdict fine gone.log
    # What cannot be read as a log, by what is wrong with it.
    head -c 50 run.bin >headless.bin; verdict no-log headless.bin; says out 'headless\.bin cannot be read: a binary log whose head is damaged'
    verdict path-unwritable d; says out ' d is a directory$'
    # A disk that is full, where a file system of its own may be had.
    mkdir full
    if unshare -rm mount -t tmpfs -o size=128k none full 2>err; then
        status=0
        unshare -rm bash -c 'mount -t tmpfs -o size=128k none full && cat run.log >full/run.log && "$1" doctor full/run.log && { cat /dev/zero >full/filler
            "$1" doctor full/run.log; UMD_LOG_FILE=full/run.log "$1" doctor; UMD_LOG_FILE=full/new.log "$1" doctor; }' bash "$umdlog" >out 2>err || status=$?
        [ "$status" -eq 0 ] && [ "$(sed -n 's/^verdict: \([a-z-]*\)\..*/\1/p' out | tr '\n' ' ')" = 'fine disk-full disk-full disk-full ' ] ||
            die "a full disk is not told"
        says out '^disk-full +the log: the file system of full/run\.log is full: 0 bytes' '^next: Make room'
    fi
    # The configuration file counts where the environment is silent, and is not obeyed by the tool itself.
    printf '[log]\nUMD_LOG_FILE = conf.log\nUMD_LOG_LEVEL = umd=loud\nrubbish\n' >petrel.ini
    PETREL_CONFIG=petrel.ini ul 0 doctor --level warn
    says out 'petrel\.ini, line 4: neither' 'UMD_LOG_LEVEL \(petrel\.ini, line 3\)=umd=loud is ignored: position 4' '/conf\.log is not there'
    [ ! -e conf.log ] || die "the tool wrote the log that its configuration names"
    mkdir -p .config/petrel; printf '[log]\nUMD_LOG_FILE = run.log\nUMD_LOG_FILE_LEVEL = off\n' >.config/petrel/petrel.ini
    verdict filtered; says out 'UMD_LOG_FILE_LEVEL \(.*/petrel\.ini, line 3\) says off'
    UMD_LOG_FILE_LEVEL=info verdict fine
    rm -r .config
    verdict no-library --pid $$
    ul 2 doctor --pid 999999999; one_line; says err 'none of that id'
    ul 1 doctor --pid x; one_line
    ul 1 doctor --level loud; one_line ;;
control) # a process that runs until it is killed
    state() { ul 0 status --json --pid $pid; json "r = json.load(sys.stdin); s = {x['name']: x for x in r['sinks']}; assert $1, r"; }
    UMD_LOG_FILE=run.log UMD_LOG_JSON=/dev/full UMD_LOG_KEEP=7 "$train" mlp --train-size 3200 --test-size 32 --batch 32 --hidden 32 --epochs 1000 \
        --carrier "$carrier" >train.out 2>&1 &
    pid=$!
    trap 'kill -9 $pid 2>/dev/null; rm -rf "$work"' EXIT
    for _ in $(seq 600); do "$umdlog" status --pid $pid >/dev/null 2>&1 && grep -q 'stream created' run.log 2>/dev/null && break; sleep 0.1; done
    ul 0 status --pid $pid; silent
    says out "^process +$pid, version " '^console +levels off \(environment\)$' "^text +levels INFO \\(default\\), $work/run.log|run\.log \\(environment\\), open" '^counts +records [1-9]' '^modules .*umd\.mem='
    state "r['pid'] == $pid and s['text']['open'] and s['text']['levels_from'] == 'default' and s['json']['failing'] and s['json']['errno'] == 28"
    ul 0 doctor --pid $pid; silent
    says out '^sink-failing +the json log /dev/full cannot write: No space left on device \(errno 28\)' '^verdict: sink-failing'
    # What doctor works out from settings is what the process goes by.
    ul 0 doctor --json --pid $pid --module kmd.vm --level info
    json 'r = json.load(sys.stdin); assert any(f["kind"] == "fine" and f["text"] == "the text log takes INFO and above of kmd.vm, by the default" for f in r["findings"]), r'
    ul 0 doctor --pid $pid --module hw.cp --level trace; says out '^filtered +the text log takes no TRACE of hw\.cp, only INFO and above, by the default$'
    ul 0 level hw.cp=trace,info --pid $pid; silent
    says out '^console +hw\.cp OFF, others OFF \(levels of its own, by environment; --sink console sets them\)$' '^text +hw\.cp TRACE, others INFO'
    [ -n "$(traced && echo yes)" ] || says out '^text .* \(compiled in up to INFO\)$'
    for _ in $(seq 600); do grep -q ' TRACE .* hw\.cp ' run.log && break; traced || break; sleep 0.1; done
    ! traced ||
    grep -q ' TRACE .* hw\.cp ' run.log || die "the level did not take"
    state "r['levels_from'] == 'control' and 'hw.cp' in r['levels']"
    ul 0 doctor --pid $pid --module umd.mem; says out 'the text log takes INFO and above of umd\.mem, by umd-log level$'
    ul 1 level umd=loud --pid $pid; one_line; says err "^umd-log: process $pid: "
    # One sink alone; what is set for all then does not reach it, and that is said.
    ul 0 level umd.mem=warn,error --sink text --pid $pid; silent; says out '^text +umd\.mem WARN, others ERROR$'
    state "s['text']['levels_from'] == 'control' and s['text']['levels'] == 'umd.mem=warn,error' and s['json']['levels'] == ''"
    ul 0 doctor --pid $pid --module umd.mem --level warn; says out 'the text log takes WARN and above of umd\.mem, by umd-log level$'
    ul 0 level info --pid $pid; silent; says out '^text +ERROR \(levels of its own, by control; --sink text sets them\)$' '^json +INFO$'
    ul 0 level --json info --sink json --pid $pid
    json 'r = json.load(sys.stdin); s = {x["name"]: x["modules"] for x in r["sinks"]}; assert s["json"] == [{"module": "*", "level": "INFO", "set_for": "json", "levels_from": "control"}] and len(s) == 3, r'
    ul 2 level info --pid $pid; one_line; says err "^umd-log: process $pid: set, but each sink has levels of its own"
    for sink in text json; do ul 0 level '' --sink $sink --pid $pid; done
    ul 1 level warn --sink binary --pid $pid; one_line; says err "^umd-log: process $pid: the process has no such file: binary$"
    ul 1 level warn --sink txt --pid $pid; one_line; says err 'unknown sink, known are: console text json binary run disaster$'
    ul 1 level warn --sink text --console --pid $pid; one_line
    ul 0 level info --pid $pid
    mv run.log moved.log
    ul 0 doctor --pid $pid; says out 'run\.log was moved away while the process has it open: umd-log reopen'
    ul 0 reopen --pid $pid; silent
    ul 0 level umd=trace,info --pid $pid # its own line says so, if nothing else
    for _ in $(seq 600); do [ -s run.log ] && break; sleep 0.1; done
    [ -s run.log ] || die "the file was not begun anew"
    ul 0 emergency --list; says out "$pid +alive +umd-train"
    kill -9 $pid; wait $pid 2>/dev/null
    for command in status reopen 'level info'; do
        # shellcheck disable=SC2086
        ul 2 $command --pid $pid; one_line; says err "^umd-log: process $pid: there is none of that id$"
    done
    ul 2 status --pid $$; one_line; says err "^umd-log: process $$: the process has no control socket; "
    ul 1 level --pid 1; one_line
    ul 1 status; one_line
    ul 1 reopen now --pid 1; one_line ;;
export)
    UMD_LOG_FILE=run.log UMD_LOG_LEVEL=umd.api=trace,info training 3 --faults "$hang"
    { cat run.log; printf '2026-11-29T23:59:59.0Z 99999999.0 ERROR 1.1 kmd.x depth=0 rec=a:1:1: UMD_ERR_HW_HANG: Stuck. job=1\n'
      printf '2026-11-29T23:59:59.5Z 99999999.5 ERROR 1.2 umd.x depth=1 rec=a:1:2: UMD_ERR_EXEC_FAILED: Failed. job=1 cause=a:1:1 x="q\\"q" f=1.5 b=true\n'; } >all.log
    ul 0 export --chrome-trace all.log; silent
    json '
r = json.load(sys.stdin); e = r["traceEvents"]
traced = '"$(traced && echo True || echo False)"'
assert {x["ph"] for x in e} == {"M", "i", "X", "s", "f"} | ({"B", "E"} if traced else set()) and all("pid" in x and "tid" in x and "name" in x for x in e)
open = {}
for x in sorted((x for x in e if x["ph"] in "BE"), key=lambda x: x["ts"]):
    stack = open.setdefault(x["tid"], [])
    if x["ph"] == "B": stack.append(x["name"])
    else: assert stack.pop() == x["name"]
assert not any(open.values())
assert any(x["ph"] == "i" and x["name"] == "UMD_ERR_HW_HANG" and x["cat"] == "error" for x in e)
assert any(x["ph"] == "i" and x["name"] == "context created" for x in e)
assert not traced or any(x["ph"] == "E" and x["args"]["code"] == "UMD_ERR_HW_HANG" for x in e)
s = [x for x in e if x["ph"] == "s" and x["pid"] == 1]; f = [x for x in e if x["ph"] == "f" and x["pid"] == 1]
assert len(s) == len(f) == 1 and s[0]["id"] == f[0]["id"] and s[0]["ts"] < f[0]["ts"] and f[0]["bp"] == "e"
assert {x["args"]["name"] for x in e if x["ph"] == "M" and x["name"] == "process_name"} >= {"process 1, all.log"}'
    ul 0 export --otlp all.log; silent
    want=$(grep -vc '^#' all.log)
    json "
n = 0
for line in sys.stdin:
    for r in json.loads(line)['resourceLogs']:
        assert set(r) == {'resource', 'scopeLogs'} and {a['key'] for a in r['resource']['attributes']} >= {'service.name', 'process.pid'}
        for s in r['scopeLogs']:
            assert set(s) == {'scope', 'logRecords'} and s['scope']['name']
            for l in s['logRecords']:
                n += 1
                assert set(l) <= {'timeUnixNano', 'observedTimeUnixNano', 'severityNumber', 'severityText', 'body', 'attributes', 'traceId', 'spanId', 'flags'}
                assert isinstance(l['timeUnixNano'], str) and isinstance(l['severityNumber'], int) and l['body']['stringValue']
                last = l
assert n == $want, n
f = [a['value']['kvlistValue']['values'] for a in last['attributes'] if a['key'] == 'petrel.figures'][0]
f = {a['key']: a['value'] for a in f}
assert f['job'] == {'intValue': '1'} and f['x'] == {'stringValue': 'q\"q'} and f['f'] == {'doubleValue': 1.5} and f['b'] == {'boolValue': True}, f"
    ul 1 export all.log; one_line
    ul 1 export --otlp --chrome-trace all.log; one_line
    : >empty.log
    # Two containers with one process id, one whose first record has no monotonic time, another boot: all on the axis of real time.
    printf '2026-11-29T17:54:%sZ %s INFO 7.70 umd.a depth=0: %s\n' 00.0 100.0 a0 01.0 101.0 a1 03.0 5000.0 a3 >ra.log
    printf '2026-11-29T17:54:%sZ %s INFO 7.70 umd.a depth=0: %s\n' 00.5 9000.5 b05 >rb.log
    { echo '{"Timestamp":"1795974840200000000","Body":"c02","Resource":{"process.pid":8}}'
      printf '2026-11-29T17:54:%sZ %s INFO 8.80 umd.a depth=0: %s\n' 00.4 50.4 c04; } >rc.log
    ul 0 export --chrome-trace ra.log rb.log rc.log
    json 'e = json.load(sys.stdin)["traceEvents"]; at = {x["name"]: (x["ts"], x["pid"]) for x in e if x["ph"] == "i"}
assert [at[n][0] for n in ("a0", "a1", "a3", "b05", "c02", "c04")] == [0, 1e6, 3e6, 5e5, 2e5, 4e5], at
assert at["a0"][1] == at["a3"][1] == 7 and at["b05"][1] not in (7, 8) and at["c04"][1] == 8, at
assert len([x for x in e if x["name"] == "process_name"]) == 3'
    ul 0 export --chrome-trace empty.log; json 'assert json.load(sys.stdin)["traceEvents"] == []'
    ul 0 export --otlp empty.log; lines out 0 ;;
emergency)
    UMD_EMERGENCY_FILE=ring training 3 --faults "$hang"
    UMD_EMERGENCY_FILE=ring ul 0 emergency; silent; says out 'ERROR .* kmd\.reset .*: UMD_ERR_HW_HANG: '
    [ ! -e ring.1 ] || die "looking at the ring moved it away"
    # The configuration file names it as well as the environment does.
    printf '[log]\nUMD_EMERGENCY_FILE = conf.ring\n' >ring.ini
    PETREL_CONFIG=ring.ini training 3 --faults "$hang"
    PETREL_CONFIG=ring.ini ul 0 emergency; silent; says out 'ERROR .* kmd\.reset .*: UMD_ERR_HW_HANG: '
    [ -e conf.ring ] && [ ! -e conf.ring.1 ] || die "the configuration file's ring is not where it should be"
    ul 0 emergency --json ring
    json 'r = [json.loads(l) for l in sys.stdin]; assert any(x["Attributes"].get("petrel.code_name") == "UMD_ERR_HW_HANG" for x in r)'
    training 3 --faults "$hang" # the default: a file in the state directory
    ul 0 emergency --list --json
    pid=$(python3 -c 'import json; r = json.load(open("out")); assert len(r) == 1 and r[0]["program"] == "umd-train" and not r[0]["alive"]; print(r[0]["pid"])') ||
        die "the list is not what it should be"
    ul 0 emergency --pid "$pid"; silent; says out ': UMD_ERR_HW_HANG: '
    ul 0 emergency; one_line; says err 'is the newest$'; says out ': UMD_ERR_HW_HANG: '
    # The name of the program may be anything.
    mkdir forged; python3 -c 'import sys; b = bytearray(open(sys.argv[1], "rb").read()); at = b.index(b"umd-train"); b[at:at + 16] = b"\x1bBCDEFGHIJKLMNOP"
open("forged/emergency.4194000", "wb").write(b)' "state/emergency.$pid"
    PETREL_STATE_DIR=forged ul 0 emergency --list --json; json 'r = json.load(sys.stdin); assert [x["program"][1:] for x in r] == ["BCDEFGHIJKLMNO"], r'
    PETREL_STATE_DIR=forged ul 0 emergency --list; says out ' \?BCDEFGHIJKLMNO  '
    ul 2 emergency --pid 1; one_line; says err 'process 1 has left no emergency file'
    [ "$(ls state)" = "emergency.$pid" ] || die "the tool left an emergency file of its own: $(ls state)"
    ul 2 emergency none; one_line; says err 'none: No such file'
    made 200 >text
    ul 2 emergency text; one_line; says err 'no emergency ring' ;;
bytes) # what a terminal could take for a command, or is no UTF-8, in all that may be in a file
    esc=$(printf '\033]0;x\007') bad=$(printf '\377')
    printf '2026-11-29T17:54:01.5Z 1.5 ERROR 7.70 kmd.x ctx=1 depth=1 rec=a:7:1: UMD_ERR_HW_HANG: Stuck. job=1 note="\\x1b]0;x\\x07" [f m.c:5]\n' >esc.log
    printf '2026-11-29T17:54:02.5Z 2.5 INFO  7.70 umd.error ctx=1 depth=1 rec=a:7:1: failure told code=UMD_ERR_HW_HANG context=1 job=1 kernel="k\\x1b[31m" source="s\\xff.c:1" [f m.c:5]\n' >>esc.log
    printf '2026-11-29T17:54:03.5Z 3.5 INFO  7.70 diag.record ctx=1 depth=0 rec=a:7:1: ended UMD_ERR_HW_HANG: end=delivered call="umd\\x1b[31mX" hops="umd:\\x1b[31mf:m.c:1:-4000>-4000" [f m.c:5]\n' >>esc.log
    printf '2026-11-29T17:54:04.5Z 4.5 INFO  7.70 umd.mem ctx=1 depth=1: raw %s %s [f m.c:5]\n' "$esc" "$bad" >>esc.log
    printf '# petrel \033[31mlog, version \033[31m9, pid 7, opened 2026-11-29T17:54:00.0Z\n' >head.log; cat esc.log >>head.log
    clean() { ! LC_ALL=C grep -q "$(printf '[\033\007\377]')" "$1" || die "$1 has raw bytes"; }
    name=$(printf 'n\033[31m\377.log'); cp esc.log "$name"
    for f in esc.log head.log "$name"; do
        for command in show 'show --json' errors 'errors --trace' 'errors --json' stats 'stats --json' doctor 'doctor --json' 'export --otlp' 'export --chrome-trace' 'merge --json'; do
            # shellcheck disable=SC2086
            "$umdlog" $command "$f" >out 2>err || true
            clean out; clean err
            case $command in *--*)  python3 -c 'import sys; open("out", encoding="utf-8").read()' || die "$command is no UTF-8" ;; esac
        done
    done
    "$(dirname "$train")/../umd-explain/umd-explain" 0000000a:7:1 --log esc.log >out 2>err || die "no story"
    says out '^  kernel '; clean out
    UMD_LOG_FILE=$(printf '/nowhere/\033[31m') ul 0 doctor; clean out
    # What a process says of itself.
    python3 - <<'PY' &
import json, os, socket
s = socket.socket(socket.AF_UNIX)
s.bind("\0petrel-control.%d" % os.getpid())
s.listen(8)
open("listening", "w").close()
esc = "\x1b]0;x\x07"
sink = {"name": "text", "enabled": True, "open": True, "path": "/x" + esc, "levels": "info" + esc, "path_from": esc, "failing": True, "reason": esc, "modules":
        [{"module": "a" + esc, "level": esc, "set_for": "all"}]}
while True:
    c = s.accept()[0]
    c.recv(1024)
    c.sendall(b"ok " + json.dumps({"pid": os.getpid(), "version": esc, "levels": esc, "sinks": [sink], "counts": {"n" + esc: 1}, "modules": {"m" + esc: esc}}).encode() + b"\n")
    c.close()
PY
    pid=$!
    trap 'kill $pid 2>/dev/null; rm -rf "$work"' EXIT
    for _ in $(seq 1200); do [ ! -e listening ] || break; sleep 0.1; done
    ul 0 status --pid $pid; says out '^modules ' '^counts '; clean out
    ul 0 level info --pid $pid; says out '^text '; clean out
    ul 0 doctor --pid $pid; clean out
    kill $pid
    # A disaster log whose parts are longer than a message may be.
    a=$(head -c 16000 /dev/zero | tr '\0' A)
    { echo '==== 2026-11-29T17:54:00.5Z ERROR 1.2 kmd.x'; echo 'UMD_ERR_HW_HANG (-4000)'; echo "  what     $a"; echo '  where    in module kmd.x by f (m.c:1)'
      echo "  state    open; cause $a"; echo '  record   1:2:3, and 99999 more'; } >long.dis
    { echo '# petrel disaster log, version 0.1.0, pid 1, opened 2026-11-29T17:54:00.0Z'; cat long.dis; } >long2.dis
    ul 0 show long2.dis ;;
kinds) # what is looked into is a file
    mkfifo ff
    for command in 'emergency ff' 'sites ff' 'doctor ff' 'emergency .' 'sites .'; do
        # shellcheck disable=SC2086
        timeout 100 "$umdlog" $command >out 2>err; status=$?
        [ $status -ne 124 ] || die "$command waits for a pipe"
    done
    ul 2 emergency ff; one_line; says err 'ff is no file'
    ul 2 sites ff; one_line
    made 3 >log
    for command in 'show log' 'show --json log' 'merge log' 'stats log' 'errors log' 'export --otlp log' 'sites'; do
        status=0
        # shellcheck disable=SC2086
        "$umdlog" $command >/dev/full 2>err || status=$?
        [ $status -eq 2 ] || die "lost output is no success"
        one_line; says err '^umd-log: standard output could not be written: No space left on device$'
    done
    for _ in $(seq 400); do made 30; done >log # more than one write
    "$umdlog" show log >/dev/full 2>err && die "lost output is no success"; says err 'No space left on device$' ;;
input)
    ul 1; one_line; says err 'no command'
    ul 1 shwo; one_line; says err "was show meant"
    ul 1 --json show; one_line; says err 'the command comes first'
    ul 1 show; one_line; says err 'no file is named.*UMD_LOG_BINARY'
    ul 1 show --no-such-option x; one_line; says err 'no-such-option'
    ul 2 show .; one_line; says err 'Is a directory'
    for words in '-c x' '-t 1,,2' '-P -1' '-l loud' '-r 1:2' '-C x;y' '-F novalue' '-g ([' '-n 0' '-m a,,b'; do
        made 1 >a.log
        # shellcheck disable=SC2086
        ul 1 show $words a.log; one_line; lines out 0
    done
    ul 0 --help; says out '^Usage: umd-log' 'Examples:' 'Exit status:'
    ul 0 --version; lines out 1
    for command in show merge errors stats sites emergency export doctor; do
        ul 0 $command --help; silent; says out "^Usage: umd-log $command " '[Ee]xamples?:' '--(json|otlp)'
        grep -q "^  $command " <("$umdlog" --help) || die "$command is not in the list"
    done
    made 100 >a.log
    status=0; "$umdlog" show a.log >/dev/full 2>err || status=$?
    [ $status -eq 2 ] || die "output that is lost is no success"
    one_line
    # The log of the environment is looked at, not written to.
    UMD_LOG_FILE=a.log ul 0 show; lines out 100
    UMD_LOG_FILE=a.log ul 1 show --level loud
    # Nor where it is one of very many variables, or where there is none and the configuration file alone names the log.
    # shellcheck disable=SC2046
    env $(seq 80 | sed 's/.*/UMD_X&=1/') UMD_LOG_FILE=a.log "$umdlog" emergency /nonexistent >out 2>err
    mkdir -p home/.config/petrel
    printf '[log]\nUMD_LOG_FILE = %s/a.log\n' "$work" >home/.config/petrel/petrel.ini
    for words in 'umd-log emergency /nonexistent' 'umd-explain 1:2:3 --emergency /nonexistent' 'umd-crash show /nonexistent'; do
        # shellcheck disable=SC2086
        env -i HOME="$work/home" "$(dirname "$umdlog")"/../${words%% *}/$words >out 2>err && die "there is nothing at /nonexistent"
    done
    [ "$(wc -l <a.log)" -eq 100 ] && [ ! -e a.log.1 ] || die "the tool wrote to the log that it looks at" ;;
forged) # what a file says reaches neither the terminal as commands nor a program as broken JSON
    clean() { ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" out err || die "control characters are printed"; }
    utf8() { iconv -f UTF-8 -t UTF-8 out >/dev/null 2>&1 || die "this is no UTF-8"; }
    python3 - <<'PY'
E, T = r"\x1b]0;pwned\x07\x1b[31m", "2026-11-29T17:54:00.%d00000000Z 100.%d "
with open("esc.log", "w") as f:
    f.write((T + 'ERROR 7.7 umd.test ctx=9 depth=1 rec=1:7:1: UMD_ERR_HW_HANG: stuck kernel="%s" source="a.c:1" [f m.c:1]\n') % (0, 0, E))
    f.write((T + 'INFO 7.7 umd.test ctx=9 depth=1 rec=1:7:1: failure told code=UMD_ERR_HW_HANG kernel="%s" source="%s" x="\\xff"\n') % (1, 1, E, E))
    f.write((T + 'INFO 7.7 diag.record ctx=9 depth=1 rec=1:7:1: ended UMD_ERR_HW_HANG: end=delivered call="%s" hops="umd:%s:x.c:1:-4000>-4000"\n') % (2, 2, E, E))
bad = b'\xe0\x80\x80 \xed\xa0\x80 \xf4\x90\x80\x80 \xf0\x80\x80\x80 \xff'
with open("utf.log", "wb") as f:
    t = b"2026-11-29T17:54:00.5Z 100.5 ERROR 7.7 umd.test ctx=9 depth=1 rec=1:7:1: UMD_ERR_HW_HANG: "
    f.write(t + bad + b' a="\\xff\\xfe" b="' + "\u00e4".encode() * 400 + b'" kernel="' + "\u00e4".encode() * 80 + b'" [f m.c:1]\n')
    f.write(b"2026-11-29T17:54:00.6Z 100.6 INFO 7.7 umd.test ctx=9 depth=1: x" + "\u00e4".encode() * 60 + b"\n")
    f.write(b"2026-11-29T17:54:00.7Z 100.7 INFO 7.7 umd.test ctx=9 depth=1: " + "\u20ac".encode() * 600 + b"\n")
open("kind.log", "w").write("# petrel \033[31mX\007, version \033]0;v\007, pid 5\nfoo\n")
# A disaster log whose record has more to say than there is room; JSON that is longer as text again.
open("full.log", "w").write("==== 2026-11-29T17:54:00.0Z ERROR 1.1 mod\nUMD_ERR_HW_HANG\n  what     %s\n  record   1:2:3, and %s more at 5.5\n  state    open; cause %s\n"
                            % ("A" * 16000, "9" * 200, "B" * 16000))
open("long.json", "wb").write(b'{"Timestamp":"1","Body":"UMD_ERR_HW_HANG: x","Attributes":{"petrel.record":"1:2:3"},"x":{"a":"' + b"\x01" * 4000 + b'"},"SpanId":"last"}\n')
PY
    for words in 'errors esc.log' 'errors --trace esc.log' 'show esc.log' 'show kind.log' 'show utf.log' 'stats esc.log' 'errors utf.log'; do
        # shellcheck disable=SC2086
        "$umdlog" $words >out 2>err
        clean; utf8
    done
    "$(dirname "$umdlog")/../umd-explain/umd-explain" 1:7:1 --log esc.log >out 2>err || die "umd-explain failed"
    clean; says out 'kernel +\?\]0;pwned'
    cp utf.log $'b\344\033[31mx.log'
    for log in utf.log esc.log $'b\344\033[31mx.log'; do
        for words in 'show --json' 'errors --json' 'export --chrome-trace' 'export --otlp' 'stats --json' 'merge --json esc.log' merge 'doctor --json'; do
            [ "$words $log" != 'merge --json esc.log esc.log' ] || continue
            # shellcheck disable=SC2086
            "$umdlog" $words "$log" >out 2>err
            utf8; clean
        done
        ul 0 export --chrome-trace "$log"; json 'json.load(sys.stdin)'
    done
    ul 0 show full.log; says out 'UMD_ERR_HW_HANG: AAAA'
    ul 0 show long.json; says out ' span=last: UMD_ERR_HW_HANG: x$'
    # A ring of a program whose name fills its field; a library that points anywhere.
    UMD_EMERGENCY_FILE=ring training 3 --faults "$hang"
    mkdir -p -m 700 state; chmod 700 state
    python3 -c 'b = bytearray(open("ring", "rb").read()); b[64:72] = b"\x1b" * 8; b[72:80] = b"\xff" * 8; open("state/emergency.4194300", "wb").write(b)'
    chmod 600 state/*
    ul 0 emergency --list; lines out 1; clean; utf8
    ul 0 emergency --list --json; utf8; json 'assert len(json.load(sys.stdin)[0]["program"]) == 15'
    cat >evil.c <<'C'
#include <stdint.h>
struct module { const char *name; int level; void *next; uint8_t x[16]; };
struct site { void *module; const char *func, *file, *fmt; uint32_t line, id; uint8_t level, args, strings, ceiling, kind, r[3]; int32_t code; uint8_t r2[12]; } __attribute__((aligned(64)));
extern int puts(const char *);
static struct module mod = { "mod\033[31m" };
__attribute__((section("umd_log_sites"), used)) struct site one =
#ifdef ELSEWHERE
    { (void *)puts, "f", "x.c", "m", 1, 0, 1, 0, 0, 0, 0, { 0 }, 0, { 0 } };
#else
    { &mod, "f\033]0;pwn\007", "x\xff.c", "m\n two", 1, 0, 1, 0, 0, 0, 0, { 0 }, 0, { 0 } };
#endif
C
    ${CC:-cc} -shared -fPIC -o evil.so evil.c && ${CC:-cc} -DELSEWHERE -shared -fPIC -o elsewhere.so evil.c || die "no library can be built"
    ul 0 sites evil.so; clean; utf8; says out '^ERROR in  mod\?\[31m +x\?\.c:1 +f\?\]0;pwn\? +m\? two$'
    ul 0 sites --json evil.so; utf8
    ul 0 sites elsewhere.so; silent; says out ': 0 call sites$' ;; # what it points at is no module of ours
*)
    echo "umd-log.sh: unknown case $case"
    exit 99 ;;
esac
