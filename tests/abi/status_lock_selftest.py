#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# status_lock_selftest.py - the lock of status codes can fail: each kind of change to a published code is found and named.
"""usage: status_lock_selftest.py SOURCE_ROOT"""
import os
import re
import subprocess
import sys
import tempfile

root = sys.argv[1]
NULL, RANGE, PLANNED = "UMD_ERR_PARAM_NULL", "UMD_ERR_PARAM_RANGE", "UMD_ERR_MEM_QUOTA"
KEPT = [NULL, RANGE, PLANNED, "UMD_ERR_CTX_BANNED", "UMD_ERR_RES_THREADS"]
bad = 0


def some_rows():
    """Table and lock of a few codes: the whole of them takes a while to parse."""
    toml = open(os.path.join(root, "umd/diag/status.toml")).read()
    head, *rows = toml.split("[[status]]\n")
    before, classes = head.split("[classes]\n")
    classes = "".join(line for line in classes.splitlines(True) if line.split(" ")[0] in {k.split("_")[2] for k in KEPT})
    rows = [r for r in rows if any(r.startswith(f'name = "{k}"') for k in KEPT)]
    lock = open(os.path.join(root, "tests/abi/status.lock")).read().splitlines(True)
    return (before + "[classes]\n" + classes + "\n" + "".join("[[status]]\n" + r for r in rows),
            "".join(line for line in lock if line.startswith("#") or line.split(" ")[0] in KEPT or re.match(r"range=|UMD_\w+ = \d+ word ", line)))


toml, lock = some_rows()
assert toml.count("[[status]]") == len(KEPT) == lock.count("\nUMD_") - lock.count(" word since ")
gen = open(os.path.join(root, "tools/gen/gen_status.py")).read()


def block(name):
    start = toml.index(f'[[status]]\nname = "{name}"\n')
    end = toml.find("\n[[status]]", start)
    return toml[start:] if end < 0 else toml[start:end + 1]


def edit(name, old, new):
    b = block(name)
    assert old in b, (name, old)
    return toml.replace(b, b.replace(old, new, 1))


def run(what, table, rows, want_status, want_text, *command, words=gen):
    global bad
    with tempfile.TemporaryDirectory() as d:
        t, l, g = os.path.join(d, "status.toml"), os.path.join(d, "status.lock"), os.path.join(d, "gen_status.py")
        open(t, "w").write(table)
        open(l, "w").write(rows)
        open(g, "w").write(words)
        p = subprocess.run([sys.executable, "-B", os.path.join(root, "tests/abi/status_lock.py"), *(command or ("check",)), "--toml", t, "--lock", l,
                            "--gen", g], capture_output=True, text=True)
        after = open(l).read()
    if p.returncode != want_status or want_text not in p.stderr:
        print(f"{what}: exit status {p.returncode}, expected {want_status} and '{want_text}' in:\n{p.stderr}", file=sys.stderr)
        bad = 1
    return after


fresh = block(RANGE).replace(RANGE, "UMD_ERR_PARAM_FRESH").replace("-1001", "-1009")
run("unchanged", toml, lock, 0, "")
run("another sentence", edit(NULL, 'when = "A pointer', 'when = "Some pointer'), lock, 1, f"{NULL}: the meaning changed")
run("another severity", edit(NULL, '"error"', '"warn"'), lock, 1, f"{NULL}: the meaning changed")
run("another action", edit(NULL, '"change_argument"', '"abort"'), lock, 1, f"{NULL}: the meaning changed")
run("another errno", edit(NULL, '"EINVAL"', '"EFAULT"'), lock, 1, f"{NULL}: the meaning changed")
run("sticky", edit("UMD_ERR_CTX_BANNED", "sticky = true", "sticky = false"), lock, 1, "UMD_ERR_CTX_BANNED: the meaning changed")
run("the rule is told", edit(NULL, '"error"', '"warn"'), lock, 1, "Review rule (requirement B8")
run("better advice", edit(NULL, 'todo = "Pass', 'todo = "Please pass'), lock, 0, "")
run("another delay", edit("UMD_ERR_RES_THREADS", "delay_ms = 100", "delay_ms = 200"), lock, 0, "")
run("renumbered", edit(NULL, "-1000", "-1009"), lock, 1, f"{NULL}: renumbered from -1000 to -1009")
run("removed", toml.replace(block(NULL), ""), lock, 1, f"{NULL}: the row is gone")
run("used again", toml.replace(block(NULL), fresh.replace("-1009", "-1000")), lock, 1, f"{NULL}: its value -1000 is used again, by UMD_ERR_PARAM_FRESH")
run("renamed", edit(NULL, NULL, "UMD_ERR_PARAM_NIL"), lock, 1, "is used again, by UMD_ERR_PARAM_NIL")
run("retired", edit(NULL, "since = ", 'retired = "0.2"\nsince = '), lock, 0, "")
run("made provisional", edit(NULL, "severity", "provisional = true\nseverity"), lock, 1, f"{NULL}: published, and now said to be provisional")
run("a planned code's words", edit(PLANNED, 'when = "', 'when = "Often '), lock, 0, "")
run("a planned code's number", edit(PLANNED, "-2016", "-2049"), lock, 1, f"{PLANNED}: renumbered")
run("a planned code comes", edit(PLANNED, "provisional = true\n", ""), lock, 1, f"add {PLANNED}")
run("a new code", toml + "\n" + fresh, lock, 1, "status_lock.py add UMD_ERR_PARAM_FRESH")
run("a lock that is no lock", toml, lock + "UMD_ERR_PARAM_NULL -1000\n", 1, "not a row")

after = run("add", toml + "\n" + fresh, lock, 0, "", "add", "UMD_ERR_PARAM_FRESH")
if not after.startswith(lock) or "UMD_ERR_PARAM_FRESH = -1009 " not in after[len(lock):]:
    print("add: the row was not appended, or others were touched", file=sys.stderr)
    bad = 1
run("checked after add", toml + "\n" + fresh, after, 0, "")
run("add a published one with another meaning", edit(NULL, '"error"', '"warn"'), lock, 1, "is published already", "add", NULL)
run("add of a used value", toml.replace(block(NULL), fresh.replace("-1009", "-1000")), lock, 1, "never used again", "add", "UMD_ERR_PARAM_FRESH")
after = run("add of a planned one", edit(PLANNED, "provisional = true\n", ""), lock, 0, "", "add", PLANNED)
run("checked after that", edit(PLANNED, "provisional = true\n", ""), after, 0, "")


def other_words(old, new):
    assert gen.count(old) == 1, old
    return gen.replace(old, new)


def other_range(old, new):
    assert toml.count(old) == 1, old
    return toml.replace(old, new)


run("actions in another order", toml, lock, 1, "UMD_ACTION_RETRY: was 1 word, and is 2 word now",
    words=other_words('"none", "retry", "free_retry"', '"none", "free_retry", "retry"'))
run("a severity in between", toml, lock, 1, "UMD_SEVERITY_FATAL: was 3 word, and is 4 word now", words=other_words('"warn", "error", "fatal"', '"warn", "error", "bad", "fatal"'))
run("a scope goes", toml, lock, 1, "UMD_SCOPE_NODE: is gone", words=other_words('"device", "node"', '"device"'))
grown = other_words('"reset_device", "abort"', '"reset_device", "abort", "wait"')
run("a new action", toml, lock, 1, "status_lock.py add UMD_ACTION_WAIT", words=grown)
after = run("add of an action", toml, lock, 0, "", "add", "UMD_ACTION_WAIT", words=grown)
if after[len(lock):] != "UMD_ACTION_WAIT = 8 word since 0.1\n":
    print("add of an action: the row was not appended", file=sys.stderr)
    bad = 1
run("checked after add of an action", toml, after, 0, "", words=grown)
run("add of a published word", toml, lock, 1, "is published already", "add", "UMD_ACTION_ABORT")
run("another bound", other_range("first = -1999", "first = -1899"), lock, 1, "range=param: was -1999 to -1000, and is -1899 to -1000 now")
run("ranges in another order", other_range("[ranges]\n", "[ranges]\nfirst_of_all = { first = 9000, last = 9999, text = \"new\" }\n"), lock, 1,
    "UMD_RANGE_SUCCESS: was 0 word, and is 1 word now")
run("a word that stands twice", toml, lock + "UMD_SCOPE_CALL = 0 word since 0.1\n", 1, "UMD_SCOPE_CALL stands twice")
sys.exit(bad)
