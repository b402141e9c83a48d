#!/usr/bin/env bash
# SPDX-License-Identifier: MIT
# umd-crash.sh - a program that dies in a known chain, told by umd-crash: functions, lines, builds, bundles, and what goes wrong.
# usage: umd-crash.sh UMD_CRASH CRASH_CHAIN CASE SOURCE_ROOT
set -euo pipefail

tool=$(readlink -f "$1") chain=$(readlink -f "$2") case=$3 root=$(readlink -f "$4")
source=$root/tests/tools/crash_chain.c
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export UMD_CRASH_DIR=$work/crashes PETREL_STATE_DIR=$work/state
export ASAN_OPTIONS=handle_segv=0:handle_abort=0:detect_leaks=0 TSAN_OPTIONS=handle_segv=0:handle_abort=0
unset PETREL_CRASH_COMMAND
ulimit -c 0
cd "$work"

fail() { echo "FAILED: $1"; [ -f out ] && cat out; [ -f err ] && cat err; exit 1; }

# crash HOW SIGNAL: runs the program; its snapshot is then the only one.
crash() {
    local status=0
    rm -rf "$UMD_CRASH_DIR"
    "$chain" "$1" >/dev/null 2>err || status=$?
    [ $status -eq $((128 + $2)) ] || fail "the program ended with $status"
    ls "$UMD_CRASH_DIR"/crash.* >/dev/null
}

# run STATUS ARGUMENT...: the tool, its exit status and its output.
run() {
    local want=$1 status=0
    shift
    "$tool" "$@" >out 2>err || status=$?
    [ $status -eq "$want" ] || fail "umd-crash $* ended with $status instead of $want"
}

# A copy of the program elsewhere finds the libraries of the original.
copied() {
    LD_LIBRARY_PATH=$(ldd "$chain" | sed -n 's|.*=> \(.*\)/libumd.*|\1|p' | sort -u | paste -sd:)
    export LD_LIBRARY_PATH
    cp "$chain" "$1"
    chain=$work/$1
}

line_of() { grep -n "$1" "$source" | cut -d: -f1; }

# The chain is in the backtrace in this order, whatever stands between.
expect_chain() {
    python3 - "$1" "$(line_of "$2")" "$(line_of 'calls the end')" "$(line_of 'calls the library')" "$(line_of 'calls the chain')" <<'END'
import json, sys
frames = json.load(open("out"))["backtrace"]
first, *lines = sys.argv[1:]
want = [("chain_end", lines[0]), ("chain_state", lines[1]), ("umd_state_format", None), ("chain_outer", lines[2]), ("main", lines[3])]
at = 0
for f in frames:
    name, line = want[at]
    if f.get("function", "").split(".")[0] == name: # a compiler may clone it: chain_outer.constprop.0
        assert line is None or f["line"] == int(line), f"{name} is at line {f['line']}, not {line}"
        assert f["file"].endswith("crash_chain.c" if line else "snapshot.c"), f
        at += 1
        if at == len(want):
            break
assert at == len(want), f"{want[at][0]} is missing in {[f.get('function') for f in frames]}"
assert first != "fault" or frames[0]["function"] == "chain_end", frames[0]
END
}

case $case in
show)
    crash stack 11
    run 0 show
    grep -q "^crash_chain (pid [0-9]*) died of SIGSEGV at address 0x10: nothing is mapped there$" out || fail "what happened"
    grep -q "#0  chain_end at .*crash_chain.c:$(line_of 'crashes here')  \[crash_chain+0x" out || fail "where"
    grep -q "  umdInit(desc=NULL) -> UMD_SUCCESS, " out || fail "API calls"
    grep -q "library started carrier=direct" out || fail "emergency records"
    grep -q "  kmd.device index=0 ready=1 lost=\"UMD_SUCCESS\"" out || fail "state"
    grep -q "  rip=0x" out || fail "registers"
    [ ! -s err ] || fail "said something"
    ;;
json)
    crash fault 11
    run 0 show --json "$UMD_CRASH_DIR"
    expect_chain fault 'crashes here'
    python3 -c 'import json; d = json.load(open("out")); assert d["whole"] and d["name"] == "SIGSEGV" and d["backtrace_by"] == "frame-information"'
    ;;
abort) # through the C library, which keeps no frame pointers
    crash abort 6
    run 0 show --json "$UMD_CRASH_DIR"
    expect_chain abort 'ends here'
    ;;
cut)
    crash fault 11
    sed '/^\[emergency\]/q' "$UMD_CRASH_DIR"/crash.* >cut
    run 0 show cut
    grep -q 'CUT SHORT in section \[emergency\]' out || fail "not told"
    grep -q '#0  chain_end' out || fail "what is there is shown"
    printf 'petrel-crash 1\n[crash]\npid=x signal="\n[stack]\nzz\n0xffffffffffffffff: 00\n[backtrace]\n\n[modules]\npath=\n[calls]\nfmt="%%s%%n%%999999d" args=ffff\n' >garbage
    run 0 show garbage
    run 0 show --json garbage
    ;;
build) # the file on disk is another build: no wrong names
    copied mine
    printf 'int main(void) { return 0; }\n' >other.c
    crash fault 11
    ${CC:-cc} -g -Wl,--build-id=sha1 -o mine other.c
    run 0 show
    grep -q "note: .*/mine on this machine is another build than the one that crashed (build-id [0-9a-f]*): no names from it" out || fail "not told"
    ! grep -q "chain_end" out || fail "names from nowhere"
    rm mine
    run 0 show
    grep -q "note: .*/mine .* is not on this machine" out || fail "missing file not told"
    ;;
debug) # stripped, with its debug file elsewhere
    mkdir -p prefix/bin
    copied prefix/bin/crash_chain
    "$root/tools/separate-debug" prefix >out 2>err
    ! readelf -S prefix/bin/crash_chain | grep -q '\.debug_line' || fail "not stripped"
    ls prefix/lib/debug/.build-id/*/*.debug >/dev/null
    crash fault 11
    run 0 show --json
    ! grep -q '"function":"chain_end"' out || fail "names without debug files"
    run 0 show --json --debug-dir "$work/prefix/lib/debug"
    expect_chain fault 'crashes here'
    "$root/tools/separate-debug" prefix >out 2>err # again: nothing to do
    run 0 show --json --debug-dir "$work/prefix/lib/debug"
    expect_chain fault 'crashes here'
    ;;
pack)
    crash fault 11
    name=$(basename "$UMD_CRASH_DIR"/crash.*)
    echo hello >a.log
    mkdir sub
    echo other >sub/a.log
    run 0 pack --log a.log --log sub/a.log
    [ "$(cat out)" = "$name.tar.gz" ] || fail "its name"
    tar xzf "$name.tar.gz"
    cmp "$name/snapshot" "$UMD_CRASH_DIR/$name"
    grep -q chain_end "$name/story.txt" || fail "story"
    grep -q "^[0-9a-f]* /.*crash_chain$" "$name/build-ids.txt" || fail "build-ids"
    ls "$name"/emergency.* >/dev/null || fail "emergency file"
    [ "$(cat "$name/a.log" "$name/1-a.log")" = "$(printf 'hello\nother')" ] || fail "logs"
    # Without the program's state directory there is no emergency file to be found; that is said, and it can be named.
    ring=$(ls "$PETREL_STATE_DIR"/emergency.*)
    (export PETREL_STATE_DIR="$work/elsewhere"; run 0 pack --output none.tar.gz) || exit 1
    grep -q 'the bundle is without an emergency file' err || fail "what is missing is not told"
    ! tar tzf none.tar.gz | grep -q '/emergency\.' || fail "whose is it?"
    (export PETREL_STATE_DIR="$work/elsewhere"; run 0 pack --output named.tar.gz --emergency "$ring") || exit 1
    tar tzf named.tar.gz | grep -q '/emergency\.' || fail "it was named"
    # One that fails leaves what was there.
    cp named.tar.gz before
    run 2 pack --output named.tar.gz --emergency a.log
    run 2 pack --output named.tar.gz --log nosuch.log
    cmp named.tar.gz before || fail "a bundle that was there is gone"
    mkfifo ff
    status=0; timeout 100 "$tool" show ff >out 2>err || status=$?
    [ $status -eq 2 ] || fail "a pipe is no snapshot"
    cp "$name.tar.gz" first
    run 0 pack --json --log a.log --log sub/a.log --output second.tar.gz "$UMD_CRASH_DIR/$name"
    cmp first second.tar.gz || fail "the same goes in, other bytes come out"
    python3 -c 'import json; d = json.load(open("out")); assert d["bundle"] == "second.tar.gz" and len(d["files"]) == 6, d'
    # The tool has the program's settings before it, and leaves alone what they name.
    export UMD_EMERGENCY_FILE=$work/ring
    crash fault 11
    cp ring ring.before
    run 0 show
    run 0 pack --output third.tar.gz --command 'test "$UMD_EMERGENCY_FILE" = "$PWD/ring" && test "${PETREL_CONFIG-none}" = none && true'
    cmp ring ring.before || fail "the ring of the program that died is another"
    [ ! -e ring.1 ] || fail "the ring of the program that died was put aside"
    ;;
command)
    crash fault 11
    mkdir taken
    run 0 pack -o b.tar.gz --command 'cp -t taken'
    cmp b.tar.gz taken/b.tar.gz
    PETREL_CRASH_COMMAND='cp -v -t taken' run 0 pack -o c.tar.gz
    cmp c.tar.gz taken/c.tar.gz
    run 2 pack -o b.tar.gz --command 'exit 7;'
    grep -q '^umd-crash: the command failed (exit status 7); the bundle is b.tar.gz$' err || fail "failure not told"
    begin=$(date +%s)
    run 2 pack -o b.tar.gz --timeout 1 --command 'sleep 600;'
    [ $(($(date +%s) - begin)) -lt 300 ] || fail "not ended"
    grep -q 'took more than 1 s' err || fail "time-out not told"
    run 2 pack -o b.tar.gz --timeout 1 --command '(trap "" TERM; sh -c "echo \$PPID >deaf"; while :; do sleep 1; done) & sleep 600;'
    for _ in $(seq 300); do kill -0 "$(cat deaf)" 2>/dev/null || break; sleep 0.1; done
    ! kill -0 "$(cat deaf)" 2>/dev/null || fail "what the command has started is left"
    # It ends with the tool; where there is a terminal it may ask on it.
    "$tool" pack -o b.tar.gz --command 'echo $$ >shell; exec sleep 600;' >out 2>err &
    pid=$!
    for _ in $(seq 600); do [ -s shell ] && break; sleep 0.1; done
    kill -TERM $pid; status=0; wait $pid || status=$?
    [ $status -eq 2 ] || fail "status $status after SIGTERM"
    grep -q 'the command was ended by signal 15; the bundle is b.tar.gz$' err || fail "the signal is not told"
    ! kill -0 "$(cat shell)" 2>/dev/null || fail "the command is left"
    python3 - "$tool" <<'END' || fail "the command cannot ask on the terminal"
import os, pty, sys
pid, tty = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], ["umd-crash", "pack", "-o", "t.tar.gz", "--timeout", "100", "--command", 'read -r x </dev/tty && test "$x" = yes && true'])
os.write(tty, b"yes\n")
try:
    while os.read(tty, 4096):
        pass
except OSError:
    pass
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
END
    ;;
input)
    run 1
    run 1 nonsense
    run 1 show a b
    run 1 show --output x
    run 1 pack --timeout 0
    run 2 show /nonexistent
    run 2 show "$source"
    grep -q 'no crash snapshot; one begins with' err || fail "what it is"
    printf 'petrel-crash 9\n' >newer
    run 2 show newer
    grep -q 'another version' err || fail "version"
    mkdir empty
    run 2 show empty
    grep -q 'no crash snapshot in empty' err || fail "empty directory"
    crash fault 11
    run 2 pack --output /nonexistent/x
    run 2 pack --log /nonexistent/log -o y.tar.gz
    ! ls y.tar.gz* 2>/dev/null || fail "a torso is left"
    # shellcheck disable=SC2046
    run 1 pack $(seq 61 | sed 's/.*/--log l&/') -o y.tar.gz
    long=a-name-of-a-log-that-is-longer-than-most-names-of-logs-are.log
    echo hello >$long
    run 0 pack --json --log $long -o y.tar.gz
    tar tzf y.tar.gz | grep -q "that-is-longer-than-most-names-of-logs-are.log$" || fail "the end of a name is lost"
    cp y.tar.gz before
    run 2 pack --log /nonexistent/log -o y.tar.gz
    cmp y.tar.gz before || fail "the bundle that was there is gone"
    [ "$(echo y.tar.gz*)" = y.tar.gz ] && [ "$(stat -c %a y.tar.gz)" = 600 ] || fail "a torso is left, or all may read the stack"
    # A log is not held in memory; where the limit below leaves a tool its start (a sanitizer's would not).
    truncate -s 600M big.log
    if (ulimit -v 400000 && "$tool" --version) >out 2>&1; then
        (ulimit -v 400000; run 0 pack --log big.log -o big.tar.gz) || exit 1
        [ "$(tar tvzf big.tar.gz | sed -n 's/.* \([0-9]*\) [0-9-]* [0-9:]* .*big\.log$/\1/p')" = $((600 << 20)) ] || fail "the size of a log"
    fi
    run 0 --help
    grep -q 'umd-crash pack' out
    run 0 --version
    ;;
forged) # a snapshot says what it likes
    python3 - <<'END'
import struct
text = b"\x1b]0;pwn\x07\xff"
args = (struct.pack("<H", len(text)) + text).hex()
def snapshot(name, stack, registers):
    with open(name, "wb") as f:
        f.write(b'petrel-crash 1\n[crash]\n signal=11 code=1 name="SIGSEGV" pid=1 tid=1 real_ns=1795974840000000000 arch="x86_64" program="x"\n[registers]\n'
                + registers + b"[backtrace]\n0x10\n[stack]\n" + stack + b": " + b"00" * 32 + b'\n[calls]\n tid=1 start_ns=1 end_ns=0 name="umdX" fmt="name=%s" args='
                + args.encode() + b"\n[state]\nkmd x=\x1b]0;pwn\x07 \xff\n[odd\x1b[31m\xff]\n")
snapshot("escapes", b"0x0", b"rip=0x1234\nrsp=0x20\nrbp=0xfffffffffffffff0\nrax=\x1b[31mred\n")
snapshot("edge", b"0x0", b"rip=0x1234\nrsp=0xfffffffffffffff8\nrbp=0xfffffffffffffff8\n") # the last word there is, then the first
END
    for name in escapes edge; do
        run 0 show $name
        ! LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" out || fail "control characters are printed"
        grep -q 'umdX(name=?\]0;pwn??) -> under way' out || fail "the arguments of a call"
        run 0 show --json $name
        python3 -c 'import json; json.load(open("out", encoding="utf-8"))' || fail "no JSON"
        run 0 pack -o $name.tar.gz $name
        ! tar xzOf $name.tar.gz $name/story.txt | LC_ALL=C grep -q "$(printf '[\001-\010\013-\037\177]')" || fail "control characters in the bundle"
    done
    # Very many modules and mappings: each is looked at once.
    python3 - <<'END'
n = 100000
with open("many", "w") as f:
    f.write('petrel-crash 1\n[crash]\n signal=11 code=1 name="SIGSEGV" pid=1 tid=1 real_ns=1 arch="x86_64" program="x"\n[backtrace]\n%#x\n[maps]\n' % (1 << 44))
    for i in range(n):
        f.write("%x-%x r-xp 00000000 00:00 0 /nowhere/a\n" % ((1 << 40) + i * 4096, (1 << 40) + (i + 1) * 4096))
    f.write("[modules]\n")
    for i in range(n):
        f.write(' start=%#x build_id=x path="/nowhere/a"\n' % ((1 << 40) + i * 4096))
    f.write("[end]\n")
END
    run 0 show --json many
    python3 -c 'import json; d = json.load(open("out")); assert len(d["modules"]) == 100000 and d["whole"]' || fail "modules"
    ;;
*) fail "unknown case $case" ;;
esac
