#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# codes.py - status codes in the sources: what is provisional or retired is raised nowhere, the table's checks can fail, retries
# follow the table.
"""usage: codes.py SOURCE_ROOT"""
import importlib.util
import os
import re
import subprocess
import sys
import tempfile

root = sys.argv[1]
sys.dont_write_bytecode = True
spec = importlib.util.spec_from_file_location("gen_status", os.path.join(root, "tools/gen/gen_status.py"))
gen = importlib.util.module_from_spec(spec)
spec.loader.exec_module(gen)
toml = os.path.join(root, "umd/diag/status.toml")
table = gen.load(toml)
bad = 0


def complain(text):
    global bad
    print(text, file=sys.stderr)
    bad = 1


def sources(*folders):
    for folder in folders:
        for path, _, names in os.walk(os.path.join(root, folder)):
            for n in names:
                if n.endswith((".c", ".h")):
                    p = os.path.join(path, n)
                    yield os.path.relpath(p, root), open(p).read()


# The fault register has a number for ECC that no model writes; the kernel driver's table of faults is complete all the same.
translated = {("kmd_sim/reset.c", "UMD_ERR_HW_ECC_UNCORRECTED")}
dead = {s["name"] for s in table["status"] if not gen.is_live(s)}
known = {s["name"] for s in table["status"]} | {"UMD_STATUS_H"}
for path, text in sources("umd", "kmd_sim", "hw_model"):
    for name in sorted(dead & set(re.findall(r"\bUMD_[A-Z0-9_]+\b", text))):
        if (path, name) not in translated:
            complain(f"{path}: {name} is provisional or retired, and is used: make it a code with a case first (docs/error-handling.md)")
for path, text in sources("hw_model"):
    if "PETREL_FAULT_ECC" in text:
        complain(f"{path}: the model reports ECC faults now: UMD_ERR_HW_ECC_UNCORRECTED is no longer provisional")
for path, text in sources("umd", "kmd_sim", "hw_model", "tools", "include"):
    for name in set(re.findall(r"\bUMD_(?:ERR|STATUS)_[A-Z0-9_]*[A-Z0-9]\b(?!_?\*)", text)) - known:
        if not re.search(rf"\b{name}_?\*|\b{name}_\b", text):
            complain(f"{path}: {name} is no code of the table")

# Whoever pauses may be retrying: each place is known, and what is a retry takes delay and count from the table.
pauses = {
    ("umd/diag/snapshot_signal.c", "pause_step"), # waits for another thread's snapshot
    ("umd/diag/scene.c", "hold_patiently"),     # no retry: waits for the thread that holds the scene of a record
    ("umd/stream.c", "pause_host"),             # retries, by umd_status_driver_retry
    ("umd/device.c", "event_main"),             # no retry: the event thread's pace where nothing comes
    ("umd/library.c", "await_calls"),           # no retry: the end waits for the calls that are under way
    ("tools/train/trouble.c", "trouble_retry"), # retries, by the advice of the code or record
}
for path, text in sources("umd", "tools/train"):
    function = None
    for line in text.splitlines():
        m = re.match(r"[a-z].*?\b(\w+)\([^;]*$", line)
        function = m[1] if m else function
        if re.search(r"\b(clock_nanosleep|nanosleep|usleep|sleep)\(", line) and (path, function) not in pauses:
            complain(f"{path}: {function} pauses: if it is a retry, take delay and count from the table of codes; then name it in codes.py")

# A row that is wrong is refused, with its name.
head, *rows = open(toml).read().split("[[status]]\n")
around = [r for r in rows if r.startswith(('name = "UMD_ERR_RES_DESCRIPTORS"', 'name = "UMD_ERR_RES_FILE"'))]
row = next(r for r in rows if r.startswith('name = "UMD_ERR_RES_THREADS"'))
for old, new, want in (
    ("UMD_ERR_RES_THREADS", "UMD_ERR_THREADS", "class THREADS"), ("UMD_ERR_RES_THREADS", "UMD_STATUS_THREADS", "wrong sign"),
    ("-2021", "-7021", "lies in no range"), ("-2021", "-2020", "shares the value"), ("UMD_ERR_RES_THREADS", "UMD_ERR_RES_FILE", "stands twice"),
    ('"error"', '"bad"', "severity 'bad'"), ('"call"', '"world"', "scope 'world'"), ('"EAGAIN"', '"EWRONG"', "errno 'EWRONG'"),
    ('"free_retry"', '"abort"', "delay_ms and count"), ("count = 3", "count = 0", "has no end"), ('"VK_ERROR', '"ERROR', "no VkResult"),
    ('when = "The', 'when = "the', "must be a sentence"), ("todo = ", "tipp = ", "no todo"), ('cuda = "cuda', 'cuda = "kuda', "no such name"),
    ("sticky = false", "sticky = true", "nothing that could stay unusable"), ("delay_ms = 100", "delay_mss = 100", "unknown field delay_mss"),
    ("value = -2021", 'value = "-2021"', "must be of type int"),
):
    assert old in row, old
    with tempfile.TemporaryDirectory() as d:
        copy = os.path.join(d, "status.toml")
        open(copy, "w").write(head + "".join("[[status]]\n" + r for r in around + [row.replace(old, new, 1)]))
        p = subprocess.run([sys.executable, "-B", os.path.join(root, "tools/gen/gen_status.py"), copy, "header", os.path.join(d, "out")],
                           capture_output=True, text=True)
    if p.returncode == 0 or want not in p.stderr or p.stderr.count("\n") != 1:
        complain(f"{old} -> {new}: expected one line with '{want}', got {p.returncode}: {p.stderr}")
sys.exit(bad)
