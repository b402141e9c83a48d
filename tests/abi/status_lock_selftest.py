#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# status_lock_selftest.py - the lock of status codes can fail: each kind of change to a published code is found and named.
"""usage: status_lock_selftest.py SOURCE_ROOT"""
import os
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
            "".join(line for line in lock if line.startswith("#") or line.split(" ")[0] in KEPT))


toml, lock = some_rows()
assert toml.count("[[status]]") == len(KEPT) == lock.count("\nUMD_")


def block(name):
    start = toml.index(f'[[status]]\nname = "{name}"\n')
    end = toml.find("\n[[status]]", start)
    return toml[start:] if end < 0 else toml[start:end + 1]


def edit(name, old, new):
    b = block(name)
    assert old in b, (name, old)
    return toml.replace(b, b.replace(old, new, 1))


def run(what, table, rows, want_status, want_text, *command):
    global bad
    with tempfile.TemporaryDirectory() as d:
        t, l = os.path.join(d, "status.toml"), os.path.join(d, "status.lock")
        open(t, "w").write(table)
        open(l, "w").write(rows)
        p = subprocess.run([sys.executable, "-B", os.path.join(root, "tests/abi/status_lock.py"), *(command or ("check",)), "--toml", t, "--lock", l],
                           capture_output=True, text=True)
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
sys.exit(bad)
