#!/bin/sh
# SPDX-License-Identifier: MIT
# fault.sh - umd-train over injected faults and bad input: exit status, code, kernel and source line, length of what it prints.
# usage: fault.sh UMD_TRAIN CASE CARRIER
set -u
train=$(readlink -f "$1") case=$2 carrier=$3 status=0
source=$(readlink -f "$(dirname "$0")/../..")
built=$(dirname "$train")/.. # the other tools
work=$(mktemp -d) || exit 99
trap 'rm -rf "$work"' EXIT
cd "$work" || exit 99
unset PETREL_FAULTS PETREL_MODE PETREL_CARRIER UMD_LOG_FILE UMD_LOG_JSON UMD_LOG_LEVEL UMD_LOG_CONSOLE

die() {
    echo "fault.sh: $case over $carrier: $1"
    echo "--- exit status $status, stdout:"; cat out
    echo "--- stderr:"; cat err
    exit 1
}

# run STATUS ARGUMENT...: a small training that must end with that status.
run() {
    want=$1
    shift
    status=0
    "$train" mlp --train-size 96 --test-size 32 --batch 32 --hidden 32 --epochs 1 --carrier "$carrier" "$@" >out 2>err || status=$?
    [ "$status" -eq "$want" ] || die "exit status $want was expected"
}

# tool STATUS COMMAND...: as run, of any command; stdout goes where $to says.
tool() {
    want=$1
    shift
    status=0
    "$@" >"$to" 2>err || status=$?
    [ "$status" -eq "$want" ] || die "exit status $want was expected of $*"
}

# says FILE PATTERN...: each pattern is somewhere in it.
says() {
    file=$1
    shift
    for pattern; do
        grep -Eq -e "$pattern" "$file" || die "$file does not say: $pattern"
    done
}

# hushes FILE PATTERN...: none of the patterns is in it.
hushes() {
    file=$1
    shift
    for pattern; do
        ! grep -Eq -e "$pattern" "$file" || die "$file should not say: $pattern"
    done
}

# A report is at most a screen; a mistake in the input one line.
screen() { [ "$(wc -l <err)" -le 24 ] || die "the report is longer than a screen"; }
one_line() { [ "$(wc -l <err)" -eq 1 ] || die "one line was expected on stderr"; }
silent() { [ ! -s err ] || die "nothing was expected on stderr"; }
# No file beside those named, in particular no half-written one.
only() {
    for f in *; do
        case " out err $* " in *" $f "*) ;; *) die "left behind: $f" ;; esac
    done
}
# stopped CODE KERNEL: the five questions, answered.
stopped() {
    screen
    says err "^umd-train: stopped by a device error at step [0-9]+ of [0-9]+: $1\$" '^  what +[A-Z]' "^  where +kernel $2 at mlp(_args)?\.[ch]:[1-9][0-9]*" \
        'stream [0-9]+, submission [0-9]+' '^  why ' '^  done +[a-z]' '^  next +[A-Z]'
}
not_started() {
    screen
    says err "^umd-train: could not start: $1\$" '^  what +[A-Z]' '^  where ' '^  why ' '^  done +[a-z]' '^  next +[A-Z]'
}

case $case in
# A step launches gather, forward, forward, softmax, score, grad_weights, grad_bias, grad_input, grad_weights, grad_bias and sgd four times.
hang)
    run 3 --faults 'hw.cu.hang[nth=20]=fire'
    stopped UMD_ERR_HW_HANG mlp_grad_weights1
    says err 'step [23] of 3' '^  record +[0-9a-f]{8}:[0-9]+:[0-9]+; run again with --log FILE'
    run 3 --faults 'hw.cu.hang[nth=5]=fire' # where it stands the compiler gives no line (0): that of the code before it counts
    stopped UMD_ERR_HW_HANG mlp_score
    run 3 --faults 'hw.cu.hang[nth=20]=fire' --log log
    says err '^  record +[0-9a-f]{8}:[0-9]+:[0-9]+ in the log log$'
    id=$(sed -n 's/^  record \([^ ]*\) .*/\1/p' err) # one spelling: the id finds each line that names it
    says log "failure told .* kernel=mlp_grad_weights1 source=mlp.*\"petrel.record\":\"$id\"" "UMD_ERR_HW_HANG: .*\"petrel.record\":\"$id\""
    UMD_LOG_FILE=env.log run 3 --faults 'hw.cu.hang[nth=20]=fire'
    says err '^  record +[0-9a-f]{8}:[0-9]+:[0-9]+ in the log env.log$' ;;
# The first copy of the set-up: whether the set-up or a step meets the hang, it is the device that failed, and no kernel.
copy)
    for watchdog in 1 100; do
        run 3 --faults 'hw.sdma.hang[nth=1]=fire' --watchdog-ms $watchdog
        screen
        says err '^umd-train: stopped by a device error (at step [0-9]+ of 3|before the first step): UMD_ERR_HW_HANG$' '^  where +stream [0-9]+, submission [0-9]+' \
            'kind=copy' '^  next +[A-Z].*copy or fill'
        hushes err '^  (where|next|  ).*(workgroup|lane) [0-9]' '^  next.*(kernel|line)'
    done ;;
# Nobody's fault: the ring is reset and the work done again.
ring)
    run 0 --faults 'hw.cp.hang[nth=1]=fire' --report report.json
    silent
    says out '^went on after 1 x UMD_ERR_HW_HANG: .*reset the engine and started the work again' '^3 steps, loss '
    python3 -c 'import json; r = json.load(open("report.json")); assert [(n["name"], n["count"]) for n in r["went_on_after"]] == [("UMD_ERR_HW_HANG", 1)]' ||
        die "the report does not have the reset"
    run 3 --faults 'hw.cp.hang=fire'
    screen
    says out '^went on after [0-9]+ x UMD_ERR_HW_HANG: .* in the end the device was lost\.$'
    says err ': UMD_ERR_DEV_LOST_TOO_MANY_RESETS$' 'because of UMD_ERR_HW_HANG in '
    hushes err 'recovered'
    hushes out 'recovered' ;;
# What the host cannot give is an error with a record, not a signal.
limit)
    status=0
    (ulimit -f 100 && "$train" mlp -q --train-size 96 --test-size 32 --batch 32 --epochs 1 --carrier "$carrier") >out 2>err || status=$?
    [ $status -eq 2 ] || die "exit status 2 was expected under a limit of file sizes"
    not_started UMD_ERR_RES_FILE
    says err 'path="memfd:petrel-vram" .*errno=27 '
    run 2 --faults 'sys.open=fail'
    not_started UMD_ERR_RES_FILE
    says err 'path="memfd:petrel-vram" .*errno=5 '
    PETREL_RANK=x run 1 --faults 'hw.cu.hang[rank=1]=fire'; one_line; says err 'UMD_ERR_CONFIG_VALUE: .*key=PETREL_RANK value="x"'
    PETREL_PROFILE=nowhere run 1; one_line; says err 'UMD_ERR_CONFIG_VALUE: .*key=profile value="nowhere"'
    PETREL_DEVICES=99 run 1; one_line; says err 'UMD_ERR_CONFIG_VALUE: .*key=PETREL_DEVICES value="99"' ;;
# What the log could not take is told once, at the end.
log)
    run 0 --log /dev/full
    one_line; says err '^umd-train: the log /dev/full is not whole: [1-9][0-9]* record\(s\) could not be written: No space left on device$'
    UMD_LOG_FILE=/nonexistent/log run 0
    one_line; says err '^umd-train: the log /nonexistent/log is not whole: [1-9][0-9]* record\(s\) could not be written: No such file or directory$'
    run 3 --log /dev/full --faults 'hw.cu.hang[nth=20]=fire'
    says err 'UMD_ERR_HW_HANG$' 'the log /dev/full is not whole'
    run 0 --log log
    silent; only log ;;
# Output that is lost is no success.
output)
    command -v "$built/umd-info" >/dev/null || die "umd-info is not built"
    small="mlp --train-size 96 --test-size 32 --batch 32 --hidden 32 --epochs 1 --carrier $carrier"
    for command in "$train $small" "$train --help" "$train --version" "$built/umd-info" "$built/umd-info --json" "$built/umd-info --help" \
        "$built/umd-inject list" "$built/umd-inject list --json" "$built/umd-inject --help" "$built/umd-inject check hw.cu.hang=fire"; do
        : >out
        to=/dev/full
        # shellcheck disable=SC2086
        tool 2 $command
        one_line; says err '^umd-(train|info|inject): standard output could not be written: No space left on device$'
        to=out
        # shellcheck disable=SC2086
        tool 0 $command
        silent
    done
    to=/dev/full
    # shellcheck disable=SC2086
    tool 3 "$train" $small --epochs 3 --faults 'hw.cu.hang[nth=103]=fire' # the fifth step has been told by then
    says err 'UMD_ERR_HW_HANG$' 'standard output could not be written' ;;
# A full pipe holds the run until it is read, so none of this depends on how fast the host is.
signal)
    : >out
    python3 - "$train" "$carrier" 2>err <<'PY' || die "a signal did not do what it should"
import json, os, signal, subprocess, sys, time

def start(ignored, *more):
    def set_up():
        for s in (signal.SIGINT, signal.SIGTERM):
            signal.signal(s, signal.SIG_IGN if s == ignored else signal.SIG_DFL)
    p = subprocess.Popen([sys.argv[1], "mlp", "--carrier", sys.argv[2], "--train-size", "96", "--test-size", "32", "--batch", "8",
                          "--hidden", "32", "--epochs", "1000", *more], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, preexec_fn=set_up)
    assert "step" in p.stdout.readline()
    return p

for sig, ignored in ((signal.SIGINT, signal.SIGTERM), (signal.SIGTERM, None)):
    p = start(ignored, "--log", "log", "--report", "report.json")
    if ignored:
        p.send_signal(ignored)
    p.send_signal(sig)
    _, err = p.communicate()
    assert p.returncode == -sig, (p.returncode, err)
    assert err.count("\n") == 1 and err.startswith("umd-train: stopped by %s at step " % sig.name) and " of 12000; loss " in err, err
    r = json.load(open("report.json"))
    assert r["interrupted"] is True and r["exit_status"] == 128 + sig and r["error"] is None, r
    assert 5 <= r["result"]["steps"] < 12000 and r["result"]["test_accuracy"] is None, r["result"]
    assert ("at step %d of" % r["result"]["steps"]) in err, err
    lines = open("log").read().splitlines()
    assert len(lines) > 5 and all(json.loads(l) for l in lines) and any('"Body":"library ends' in l for l in lines), lines[-2:]
    assert sorted(n for n in os.listdir(".") if n.startswith("report")) == ["report.json"]

# Before the device is there: signals are caught from before the images are made on, and these are many.
p = subprocess.Popen([sys.argv[1], "mlp", "--carrier", sys.argv[2], "--train-size", "1000000"], stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                     text=True)
def catches(pid, sig):
    caught = [l for l in open("/proc/%d/status" % pid) if l.startswith("SigCgt:")][0].split()[1]
    return int(caught, 16) >> (sig - 1) & 1
while not catches(p.pid, signal.SIGINT) and p.poll() is None:
    time.sleep(0.001)
p.send_signal(signal.SIGINT)
_, err = p.communicate()
assert p.returncode == -signal.SIGINT and err == "umd-train: stopped by SIGINT before the device was brought up\n", (p.returncode, err)

# The step under way never ends: the second signal does not wait for it.
p = start(None, "--watchdog-ms", "3600000", "--faults", "hw.cu.hang[nth=89]=fire")
p.send_signal(signal.SIGINT)
p.send_signal(signal.SIGTERM)
_, err = p.communicate()
assert p.returncode == -signal.SIGTERM and err == "", (p.returncode, err)
PY
    ;;
wild)
    run 3 --faults 'hw.cu.wild_access[nth=2]=fire'
    stopped UMD_ERR_HW_PAGE_FAULT mlp_forward1
    says err 'address 0x[0-9a-f]+' ;;
illegal)
    run 3 --faults 'hw.cu.illegal[nth=32]=fire'
    stopped UMD_ERR_HW_ILLEGAL_INSTRUCTION mlp_softmax ;;
busoff)
    run 3 --faults 'hw.bus.off[nth=40]=fire'
    screen
    says err 'stopped by a device error at step [1-3] of 3: UMD_ERR_DEV_LOST_OFF_BUS$' '^  done +the device was given up' '^  next +[A-Z]' ;;
vram)
    run 2 --faults 'kmd.vram.alloc[space=8]=fail'
    not_started UMD_ERR_MEM_ALLOC_FAILED
    says err 'allocating [0-9]+ bytes of device memory for ' 'tried again as their advice says' ;;
# No job was accepted: nothing can have been taken off the device.
refused)
    run 2 --faults 'kmd.ring.full=fail'
    not_started UMD_ERR_SUBMIT_RING_FULL
    says err '^  done +the kernel driver did not accept the job; nothing was trained' 'tried again as their advice says'
    hushes err 'took the job off' 'device error'
    run 3 --faults 'kmd.ring.full[space=40]=fail'
    screen
    says err '^umd-train: stopped at step [1-3] of 3: the kernel driver did not accept a job: UMD_ERR_SUBMIT_RING_FULL$' \
        '^  done +the kernel driver did not accept the job; training stopped'
    hushes err 'took the job off' 'device error' ;;
# What cannot be had: before training starts 2, later 3; once only, and the run goes on to the result of an undisturbed one.
resource)
    run 0
    says out '^3 steps, loss '
    undisturbed=$(sed -n 's/^\(3 steps, .*\), wall .*/\1/p' out)
    # Mappings 1 to 5 are of the set-up, 6 is of the first copy back. Page tables: 1 to 3 are of the context and its first buffers.
    for faults in 'sys.mmap[nth=6]=fail' 'kmd.vm.page_table[nth=2]=fail' 'umd.stream.create[nth=1]=fail' 'sys.thread.create[nth=1]=fail' \
        'hw.fw.boot[nth=1]=fire'; do
        run 0 --faults "$faults"
        silent
        says out '^went on after 1 x UMD_ERR_(MEM|RES|INIT)_[A-Z_]+: .* failed once and worked when tried again, as its advice says$'
        [ "$(sed -n 's/^\(3 steps, .*\), wall .*/\1/p' out)" = "$undisturbed" ] || die "$faults: another result than $undisturbed"
    done
    run 3 --faults 'sys.mmap[space=5]=fail'
    screen
    says err '^umd-train: stopped at step [1-3] of 3: out of a resource: UMD_ERR_MEM_MAP_FAILED$' '^  done +training stopped; all memory was freed$' \
        '1 call\(s\) had been tried again' '^  next +Unmap buffers'
    hushes err 'device error' 'A retry makes sense'
    for faults in 'kmd.vm.page_table=fail' 'kmd.vm.page_table[space=2]=fail'; do
        run 2 --faults "$faults"
        not_started UMD_ERR_MEM_ALLOC_FAILED
    done ;;
# The job fails by its own fault, the reset that follows takes the device with it: both are said, whichever comes first.
lost)
    run 3 --faults 'hw.cu.hang[nth=20]=fire; hw.reset.fail=fire' --report report.json
    screen
    says err '^umd-train: stopped by a device error at step [1-3] of 3: UMD_ERR_(HW_HANG|DEV_LOST_RESET_FAILED)$' 'UMD_ERR_DEV_LOST_RESET_FAILED' 'UMD_ERR_HW_HANG' \
        '(the device is lost, too|device was given up)'
    # Neither a reset that worked nor a context to rebuild is spoken of.
    hushes err 'engine-reset([^-]|$)' '[Rr]ebuild the context'
    says err '^  next +[A-Z].*(The device is lost: )?Destroy everything on it'
    python3 -c 'import json; assert json.load(open("report.json"))["device_lost"] == "UMD_ERR_DEV_LOST_RESET_FAILED"' ||
        die "the report does not have the loss" ;;
# Without --carrier the environment chooses, as for any program.
carrier)
    to=out
    small="mlp --train-size 96 --test-size 32 --batch 32 --hidden 32 --epochs 1"
    # shellcheck disable=SC2086
    PETREL_CARRIER=$carrier tool 0 "$train" $small --log log --report report.json
    says log "library started carrier=$carrier "
    says report.json "\"carrier\": *\"$carrier\""
    # shellcheck disable=SC2086
    PETREL_CARRIER=pigeon tool 1 "$train" $small
    one_line; says err 'UMD_ERR_CONFIG_VALUE: .*pigeon'
    PETREL_CARRIER=pigeon run 0
    run 1 --carrier pigeon; one_line; says err "^umd-train: --carrier is 'pigeon'" ;;
# A compiler or linker that was asked for is used, or nothing is.
compiler)
    to=out
    printf '#!/nonexistent/interpreter\n' >broken
    chmod +x broken
    mkdir folder
    for program in /nonexistent/program no-such-program ./broken "$PWD/folder" 'false --'; do
        for name in PETREL_CLANG PETREL_LLD; do
            tool 2 env "$name=$program" "$source/tools/petrel-cc" -o k.pco "$source/tests/install/outside_kernel.c"
            one_line; says err "^petrel-cc: $name=$program cannot be run\$"
        done
    done
    for name in PETREL_CLANG:clang PETREL_LLD:LLD; do
        tool 2 env "${name%:*}=$(command -v true)" "$source/tools/petrel-cc" -o k.pco "$source/tests/install/outside_kernel.c"
        one_line; says err "^petrel-cc: ${name%:*}=.*true is not ${name#*:}: "
    done
    only broken folder
    # What is read must not be written.
    cp "$source/tests/install/outside_kernel.c" o.c
    cp o.c same.c
    ln o.c hard.c
    for names in '-o o.c o.c' '-o ./o.c o.c' '-o hard.c o.c' '-M o.c o.c' '-c -o o.c o.c'; do
        # shellcheck disable=SC2086
        tool 1 "$source/tools/petrel-cc" $names
        one_line; says err '^petrel-cc: o\.c is also the file of -[oM]: it would be overwritten$'
        cmp -s o.c same.c || die "$names destroyed its source"
    done
    tool 1 "$source/tools/petrel-cc" -c -o two.o o.c same.c
    one_line
    for out in /nonexistent/k folder /dev/full; do
        tool 2 "$source/tools/petrel-cc" -o $out o.c
        one_line; says err "^petrel-cc: cannot write $out: "
    done
    # What cannot be read, before anything is compiled; what cannot be written, whichever output it is.
    for names in 'none.c' 'o.c none.c' 'o.c none.o' '-c none.c'; do
        # shellcheck disable=SC2086
        tool 2 "$source/tools/petrel-cc" -v $names
        one_line; says err '^petrel-cc: none\.[co] cannot be read: No such file or directory$'
    done
    mkdir folder.c
    tool 2 "$source/tools/petrel-cc" folder.c; one_line; says err '^petrel-cc: folder\.c cannot be read: it is a directory$'
    rmdir folder.c
    tool 2 "$source/tools/petrel-cc" -c -o /dev/full o.c
    one_line; says err '^petrel-cc: cannot write /dev/full: No space left on device$'
    tool 2 "$source/tools/petrel-cc" -M /dev/full -o k.pco o.c
    one_line; says err '^petrel-cc: cannot write /dev/full: No space left on device$'
    if unshare -rm mount -t tmpfs none folder 2>err; then
        for names in '-o folder/k.pco' '-c -o folder/k.o' '-o k.pco -M folder/k.d'; do
            # shellcheck disable=SC2016,SC2086
            tool 2 unshare -rm sh -c 'mount -t tmpfs -o ro none folder && "$@"' sh "$source/tools/petrel-cc" $names o.c
            one_line; says err '^petrel-cc: cannot write folder/k\.[a-z]*: Read-only file system$'
        done
    fi
    for option in --help -h --version -V; do
        to=/dev/full
        tool 2 "$source/tools/petrel-cc" $option
        one_line; says err '^petrel-cc: standard output could not be written: No space left on device$'
        to=out
        # shellcheck disable=SC2016
        tool 2 sh -c '"$@" >&-' sh "$source/tools/petrel-cc" $option
        one_line; says err '^petrel-cc: standard output could not be written: Bad file descriptor$'
        tool 0 "$source/tools/petrel-cc" $option; silent
        says out '^(Usage: )?petrel-cc '
    done
    tool 0 "$source/tools/petrel-cc" -h; says out '^Exit status: 0 done, 1 usage'
    rm o.c same.c hard.c
    only broken folder
    PETREL_CLANG='' PETREL_LLD='' tool 0 "$source/tools/petrel-cc" -o k.pco "$source/tests/install/outside_kernel.c"
    silent; only broken folder k.pco ;;
vram-once)
    run 0 --faults 'kmd.vram.alloc[nth=9]=fail'
    silent
    says out '^went on after 1 x UMD_ERR_MEM_ALLOC_FAILED: ' '^3 steps, loss ' ;;
irq)
    run 0 --faults 'hw.irq.lost[space=29]=fire' # all from there on: the next one would tell what the lost one did not
    silent
    says out '^went on after [0-9]+ x UMD_ERR_HW_IRQ_LOST: ' '^3 steps, loss ' ;;
firmware)
    run 2 --faults 'hw.fw.version=fire'
    not_started UMD_ERR_INIT_FW_VERSION
    run 2 --faults 'hw.revision=fire'
    not_started UMD_ERR_INIT_UNSUPPORTED ;;
count)
    run 2 --faults 'kmd.device.count=fire'
    not_started UMD_ERR_INIT_DEVICE_COUNT ;;
ecc)
    run 2 --faults 'hw.ecc.selftest=fire'
    not_started UMD_ERR_INIT_ECC_SELFTEST ;;
file)
    printf '# the third launch\nhw.cu.illegal[nth=3]=fire\n' >faults
    run 3 --faults faults
    stopped UMD_ERR_HW_ILLEGAL_INSTRUCTION mlp_forward1 ;;
report)
    run 0 --verify --report report.json
    silent
    only report.json
    says out '^3 steps, loss [0-9.]+ -> [0-9.]+, test accuracy [0-9.]+ %, wall [0-9.]+ s, simulated [0-9.]+ s, memory high-water mark [0-9.]+ MiB$'
    python3 - <<'PY' || die "the report is not what it should be"
import json
r = json.load(open("report.json"))
assert r["exit_status"] == 0 and r["error"] is None and r["result"]["steps"] == 3 and r["result"]["verified_steps"] == 3
assert r["result"]["verify_worst_deviation"] < 1e-4 and r["result"]["simulated_ns"] > 0 and r["result"]["vram_high_water_B"] > 0
PY
    run 3 --faults 'hw.cu.illegal[nth=4]=fire' --report report.json
    only report.json
    python3 - "$source/docs/training.md" <<'PY' || die "the report of a failed run is not what it should be"
import json, re, sys
r = json.load(open("report.json"))
e = r["error"]
assert r["exit_status"] == 3 and e["name"] == "UMD_ERR_HW_ILLEGAL_INSTRUCTION", e
assert re.fullmatch(r"[0-9a-f]{8}:\d+:\d+", e["record"]) and e["kernel"].startswith("mlp_") and re.match(r"mlp\S*:\d+$", e["source"]), e
assert e["stream"] == 1 and e["submission"] > 0 and e["job"] > 0 and e["done"].startswith("queue-banned") and e["callback"] is None, e
assert r["result"]["loss_first"] is None and r["result"]["loss_last"] is None and r["result"]["history"] == [], r["result"]
assert r["result"]["simulated_ns"] > 0 and r["result"]["resets"] == 1, r["result"]
# Each field is documented, and none that does not exist.
table = open(sys.argv[1]).read().split("| field | meaning;")[1].split("\n\n")[0]
known, last = set(), ""
for cell in re.findall(r"^\| (`.*?`) \|", table, re.M):
    for name in re.findall(r"`([^`]+)`", cell):
        last = last.rsplit(".", 1)[0] + name if name.startswith(".") else name
        known.add(last)
have = set(r) | {k + "." + x for k in ("options", "result", "error") for x in r[k]}
have -= {"options", "result"}
assert known == have, known ^ have
PY
    run 3 --faults 'hw.bus.off[nth=4]=fire' --report report.json
    python3 -c 'import json; r = json.load(open("report.json")); assert r["device_lost"] == "UMD_ERR_DEV_LOST_OFF_BUS" and r["result"]["simulated_ns"] is None, r' ||
        die "the report of a lost device is not what it should be" ;;
plan)
    echo 'hw.cu.hang[nth=20]=fire' >plan
    ln plan hard
    # However the plan is named: "@" means a file wherever a plan is read.
    for path in plan ./plan hard; do
        for option in log report; do
            run 1 --$option $path --faults @plan; one_line; says err "^umd-train: --$option $path and --faults @plan are the same file"
            PETREL_FAULTS=@plan run 1 --$option $path; one_line; says err "^umd-train: --$option $path and PETREL_FAULTS @plan are the same file"
            PETREL_FAULTS=$PWD/plan run 1 --$option $path; one_line; says err 'and PETREL_FAULTS /.* are the same file'
        done
    done
    [ "$(cat plan)" = 'hw.cu.hang[nth=20]=fire' ] || die "the fault file was written to"
    only plan hard
    for faults in plan @plan ./plan "@$PWD/plan" "$PWD/plan"; do
        run 3 --faults "$faults"; says err 'UMD_ERR_HW_HANG'
        to=out
        tool 0 "$built/umd-inject" check "$faults"; says out '/?plan is good$'
    done
    PETREL_FAULTS=@plan run 3 --log plan.log --report plan.json; says err 'UMD_ERR_HW_HANG'
    says plan.json '"faults": *"hw.cu.hang\[nth=20\]=fire'
    PETREL_FAULTS=@plan run 0 --faults 'hw.cu.hang[nth=4000]=fire' --log plan # the option takes its place: the file is nobody's plan
    [ -s plan.1 ] || die "the log should have moved what was there"
    rm -f plan plan.1 hard plan.log plan.json
    run 2 --faults @nowhere; one_line; says err '^umd-train: the fault file nowhere cannot be read: No such file'
    for file in @nowhere /nowhere /etc @/etc; do
        tool 2 "$built/umd-inject" check $file; one_line; says err "RES_FILE.*path=\"${file#@}\""
    done
    tool 1 "$built/umd-inject" check ''; one_line; says err '^umd-inject: the specification is empty; '
    # A mistake in the plan or the levels moves no log away.
    echo kept >log
    run 1 --log log --faults 'hw.cu.hng=fire'; one_line
    run 1 --log log --log-level nonsense; one_line
    [ "$(cat log)" = kept ] || die "an older log was moved away"
    rm log ;;
# Logs of the environment are files, too.
logs)
    UMD_LOG_FILE=same run 1 --log same; one_line; says err '^umd-train: UMD_LOG_FILE same and --log same are the same file'
    UMD_LOG_JSON=same run 1 --report same; one_line; says err 'UMD_LOG_JSON same and --report same are the same file'
    UMD_LOG_FILE=same UMD_LOG_JSON=same run 1; one_line; says err 'UMD_LOG_JSON same and UMD_LOG_FILE same are the same file'
    only
    UMD_LOG_JSON=same run 0 --log same; silent
    rm same
    UMD_LOG_JSON=j1 run 0 --log j2; one_line; says err '^umd-train: --log j2 takes the place of UMD_LOG_JSON j1, which is not written$'
    only j2
    rm j2
    run 2 --log /dev/null --report /dev/null; one_line; says err 'the report /dev/null cannot be written: it is a device'
    mkfifo pipe
    run 2 --log pipe; one_line; says err '^umd-train: the log pipe cannot be written: it is a pipe that nobody reads$'
    exec 9<>pipe 8<pipe # a reader that is there before the run
    cat <&8 >piped 9>&- &
    run 0 --log pipe; silent
    exec 9>&- 8<&-
    wait $!
    says piped 'library started'
    only pipe piped ;;
# The report is of this run, whatever became of it.
stale)
    for bad in "--data nowhere" "--faults hw.cu.hng=fire" "--log /nonexistent/log" "--log-level nonsense" "--faults hw.fw.version=fire"; do
        run 0 --report report.json
        status=0
        # shellcheck disable=SC2086
        "$train" mlp --train-size 96 --test-size 32 --batch 32 --hidden 32 --epochs 1 --carrier "$carrier" --report report.json $bad >out 2>err || status=$?
        [ $status -ne 0 ] || die "$bad should fail"
        python3 -c 'import json, sys; r = json.load(open("report.json")); assert r["exit_status"] == int(sys.argv[1]) and r["error"]["text"], r' $status ||
            die "$bad: the report is not of that run"
    done
    run 0 --report report.json
    cp report.json before.json
    run 1 --report report.json --epochs x # the command line: nothing was touched
    cmp -s report.json before.json || die "a mistake in the command line touched the report"
    rm before.json
    mkdir folder
    mv report.json folder/real.json
    ln -s folder/real.json link
    ln -s folder/new.json dangling
    for name in link dangling; do
        run 0 --report $name
        [ -L $name ] && [ -f "$(readlink $name)" ] || die "$name should stay a link to the report"
    done
    only folder link dangling ;;
# An option goes before its variable, and the report has what was used.
mode)
    PETREL_MODE=stepped run 0 --mode threaded --log log --report report.json
    says log 'mode=threaded'; says report.json '"mode": *"threaded"'
    PETREL_MODE=bogus run 0 --mode functional --report report.json; silent; says report.json '"mode": *"functional"'
    PETREL_MODE=stepped run 0 --log log --report report.json
    says log 'mode=stepped'; says report.json '"mode": *"stepped"'
    for n in 1 2; do
        PETREL_MODE=stepped run 0 --seed 7 --log log
        mkdir $n && mv log $n/
    done
    cmp 1/log 2/log || die "two stepped runs of one seed wrote different logs"
    run 0 --mode stepped,functional --report report.json; says report.json '"mode": *"stepped,functional"'
    PETREL_MODE=bogus run 1; one_line; says err "^umd-train: PETREL_MODE is 'bogus', not one of threaded, stepped, functional"
    for mode in sideways stepped, ,stepped 'stepped functional'; do
        run 1 --mode "$mode"; one_line; says err "^umd-train: --mode is '$mode'"
    done
    PETREL_FAULTS='hw.cu.hang[nth=20]=fire' run 0 --faults 'hw.cu.hang[nth=4000]=fire' ;;
numbers)
    run 1 --train-size 10; one_line; says err '--train-size is less than --batch'
    for option in epochs batch hidden train-size test-size watchdog-ms seed; do
        for value in abc 1.5 -1 '' 99999999999999999999; do
            run 1 "--$option=$value"; one_line; says err "^umd-train: --$option is '$value', not a whole number from [0-9]+ to [0-9]+; "
        done
    done
    for value in abc -1 0 nan inf 101 ''; do
        run 1 "--lr=$value"; one_line; says err "^umd-train: --lr is '$value', not a number above 0 and at most 100; "
    done
    only ;;
files)
    for option in data report log faults log-level; do
        run 1 "--$option" ''; one_line; says err "--$option is empty"
    done
    run 1 --log same --report same; one_line; says err '--log same and --report same are the same file'
    run 1 --log same --report "$PWD/./same"; one_line; says err 'are the same file'
    only
    touch same
    ln -s same alias
    run 1 --log same --report alias; one_line; says err 'are the same file'
    rm same alias
    ln -s new alias # to what does not exist yet
    run 1 --log alias --report new; one_line; says err 'are the same file'
    rm alias
    echo 'hw.cu.hang[nth=20]=fire' >plan
    ln plan hard
    for path in plan ./plan hard; do
        for option in log report; do
            run 1 --$option $path --faults plan; one_line; says err "^umd-train: --$option $path and --faults plan are the same file"
        done
        for name in UMD_LOG_FILE UMD_LOG_JSON; do
            : >err
            status=0
            env "$name=$path" "$train" mlp --faults plan >out 2>err || status=$?
            [ $status -eq 1 ] || die "a log over the fault file must be a usage error"
            one_line; says err "^umd-train: $name $path and --faults plan are the same file"
        done
    done
    [ "$(cat plan)" = 'hw.cu.hang[nth=20]=fire' ] || die "the fault file was written to"
    rm plan hard
    mkdir set
    echo images >set/t10k-images-idx3-ubyte
    for option in log report; do
        for path in set/t10k-images-idx3-ubyte set/train-labels-idx1-ubyte.gz set; do
            run 1 --data set --$option $path; one_line; says err "^umd-train: --$option $path is, or is a file of, --data set"
        done
        touch file
        run 1 --data file --$option ./file; one_line; says err 'is, or is a file of, --data file'
        rm file
    done
    [ "$(cat set/*)" = images ] || die "a data file was written to"
    rm -r set
    mkfifo pipe
    for path in /dev/full pipe; do
        run 2 --report $path; one_line; says err "the report $path cannot be written: it is a device, pipe or socket, not a regular file; name a new file"
        hushes out step
    done
    only pipe
    rm pipe
    to=out
    for console in unset empty; do
        [ $console = unset ] || export UMD_LOG_CONSOLE=
        tool 1 "$built/umd-inject" check BAD; one_line; says err '^umd-inject: UMD_ERR_FAULT_SPEC: position=0 '
        run 1 --faults BAD=fire; one_line
    done
    unset UMD_LOG_CONSOLE
    run 1 --faults hw.cu.hang; one_line; says err UMD_ERR_FAULT_SPEC 'position=10 .*column=11'
    run 2 --faults no/such.file; one_line; says err '^umd-train: the fault file no/such.file cannot be read: No such file'
    for bytes in 'hw.cu.hang=fire\000' 'hw.cu.\033[31mhang=fire\n' '\377\376=fire\n'; do
        # shellcheck disable=SC2059
        printf "$bytes" >faults
        run 2 --faults faults; one_line; says err '^umd-train: the fault file faults is not a text file$'
        to=out
        case $bytes in *000*) want=2 ;; *) want=1 ;; esac # no text file, or a mistake in one
        tool $want "$built/umd-inject" check faults; one_line
        ! LC_ALL=C grep -q "[^ -~]" err || die "raw bytes on stderr"
    done
    printf '# nothing\n\n' >faults
    run 0 --faults faults; silent ;;
# What README shows is what the command prints, but for numbers, and the call that meets the failure first.
readme)
    status=0
    "$train" mlp -q --carrier "$carrier" --faults 'hw.cu.hang[nth=40]=fire' >out 2>err || status=$?
    [ $status -eq 3 ] || die "exit status 3 was expected"
    python3 - "$source/README.md" <<'PY' || die "README does not show what is printed"
import difflib, re, sys
def shape(text):
    text = re.sub(r"\n +while [^\n]*", "", text)
    text = re.sub(r"[0-9a-f]{8}:[0-9]+:[0-9]+", "ID", text)
    text = re.sub(r"0x[0-9a-f]+|[0-9]+", "N", text)
    text = re.sub(r" reached the run through N hop", "", text)
    return re.sub(r"\s+", " ", text).split(" ")
readme = open(sys.argv[1]).read()
shown = "umd-train: stopped" + readme.split("\n```\numd-train: stopped")[1].split("```")[0]
a, b = shape(shown), shape(open("err").read())
if a != b:
    sys.exit("\n".join(difflib.unified_diff(a, b, "README", "printed", n=2, lineterm="")))
PY
    ;;
# Each variable that is read is documented, and no other.
environment)
    { grep -rhoE '"(PETREL|UMD)_[A-Z_]+"' "$source/umd" "$source/kmd_sim" "$source/hw_model" "$source/tools" --include='*.c' --include='*.h' |
        tr -d '"' | grep -Ev '^UMD_(ERR|STATUS|UNKNOWN|SUCCESS)|_$'
      grep -ohE 'PETREL_(CLANG|LLD|INCLUDE|PICOLIBC|LIBGCC)' "$source/tools/petrel-cc"; } | grep -vx 'PETREL_VERSION' | sort -u >read
    grep -E '^\| ' "$source/docs/environment.md" | cut -d'|' -f2 | grep -oE '(PETREL|UMD)_[A-Z_]+' | sort -u >documented
    diff read documented >out 2>err || die "docs/environment.md (>) is not what the sources read (<)"
    "$train" --help >out
    says out PETREL_MODE PETREL_CARRIER PETREL_FAULTS PETREL_WATCHDOG_MS PETREL_PROFILE PETREL_DEVICES docs/environment.md ;;
version)
    version=$(sed -n "s/^ *version: '\([^']*\)'.*/\1/p" "$source/meson.build" | head -n 1)
    to=out
    for command in "$train" "$built/umd-info" "$built/umd-inject" "$source/tools/petrel-cc" "$source/tools/quickstart" "$source/tools/check"; do
        tool 0 "$command" --version
        silent; says out "^$(basename "$command") $version\$"
    done ;;
input)
    run 1 --faults 'hw.cu.hang[nth=x]=fire'; one_line; says err UMD_ERR_FAULT_SPEC 'position=15 .*column=16'
    run 1 --faults 'no.such.site=fire'; one_line; says err UMD_ERR_FAULT_SPEC 'position=[0-9]+ '
    run 1 --batch 33; one_line; says err batch
    run 1 --mode sideways; one_line; says err sideways
    run 1 --no-such-option; one_line; says err no-such-option
    run 1 again; one_line; says err "'again'"
    run 1 --log-level nonsense; one_line
    run 2 --report /nonexistent/report.json; one_line; says err '/nonexistent/report.json'
    run 2 --report .; one_line; says err directory
    run 2 --log /nonexistent/log; one_line; says err '/nonexistent/log'
    run 2 --data .; one_line; says err 'train-images-idx3-ubyte'
    only
    printf '\000\000\010\003\000\000\000\004\000\000\000\034\000\000\000\034' >train-images-idx3-ubyte
    printf '\000\000\010\001\000\000\000\004' >train-labels-idx1-ubyte
    run 2 --data . --report report.json; one_line; says err 'train-images-idx3-ubyte: is truncated'
    says report.json '"exit_status": *2' 'train-images-idx3-ubyte: is truncated'
    only train-images-idx3-ubyte train-labels-idx1-ubyte report.json
    : >train-images-idx3-ubyte
    run 2 --data .; one_line; says err 'is truncated: 16 bytes of header expected, 0 found$'
    # Nobody writes to the pipe, and nobody is waited for.
    rm train-images-idx3-ubyte
    mkfifo train-images-idx3-ubyte
    run 2 --data .; one_line; says err 'train-images-idx3-ubyte: cannot be read: it is a device, pipe or socket, not a regular file$'
    for faults in @train-images-idx3-ubyte /dev/null; do
        run 2 --faults $faults; one_line; says err "^umd-train: the fault file ${faults#@} cannot be read: it is a device, pipe or socket, not a regular file\$"
    done
    run 2 --faults @.; one_line; says err '^umd-train: the fault file \. cannot be read: it is a directory$'
    only train-images-idx3-ubyte train-labels-idx1-ubyte report.json
    status=0; "$train" perceptron >out 2>err || status=$?
    [ "$status" -eq 1 ] || die "an unknown workload must be a usage error"
    one_line; says err "unknown workload 'perceptron'"
    status=0; "$train" >out 2>err || status=$?
    [ "$status" -eq 1 ] || die "no workload must be a usage error"
    one_line ;;
stepped)
    level=trace # DEBUG and TRACE may be compiled out
    for n in 1 2; do
        run 0 --mode stepped --seed 7 --log log --log-level "$level"
        mkdir "$n" && mv log "$n/"
    done
    [ "$(wc -l <1/log)" -gt 5 ] || die "the log is empty"
    cmp 1/log 2/log || { diff 1/log 2/log | head -n 5; die "two stepped runs of one seed wrote different logs"; }
    run 0 --mode stepped --seed 8 --log log --log-level "$level"
    ! cmp -s 1/log log || die "another seed wrote the same log" ;;
stepped-fault)
    for n in 1 2; do
        run 3 --mode stepped --seed 7 --log log --log-level debug --faults 'hw.cu.hang[nth=20]=fire'
        stopped UMD_ERR_HW_HANG mlp_grad_weights1
        mkdir "$n" && mv log "$n/" && cp err "$n/"
    done
    cmp 1/log 2/log || { diff 1/log 2/log | head -n 5; die "two stepped runs of one seed wrote different logs"; }
    cmp 1/err 2/err || die "two stepped runs of one seed printed different reports" ;;
*)
    echo "fault.sh: unknown case $case"
    exit 99 ;;
esac
