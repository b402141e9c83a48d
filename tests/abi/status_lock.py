#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# status_lock.py - holds status.toml to what status.lock has published: names, values and meanings of codes, numbers of words, ranges (B8, E3).
"""usage: status_lock.py check [--toml FILE] [--gen FILE] [--lock FILE]
       status_lock.py add NAME... [--toml FILE] [--gen FILE] [--lock FILE]
check  compares; exit status 1 and what to do, when something published is not what it was
add    appends the rows of new codes, of words (UMD_ACTION_WAIT) and ranges (range=cloud), and gives a provisional code that is raised
       now the digest of its meaning
Example: tests/abi/status_lock.py add UMD_ERR_MEM_QUOTA"""
import argparse
import hashlib
import importlib.util
import os
import re
import sys

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "../..")
# The meaning: what a program decides by, and the sentence that says when. Suggested delay and count, what to do next, what the driver
# retries, and the counterparts in other interfaces are advice: they may become better.
MEANING = ["when", "severity", "scope", "sticky", "action", "errno", "vkresult"]
PROVISIONAL = "provisional"

RULE = """
Review rule (requirement B8, docs/error-handling.md): programs compare these values and act on these meanings, so a published code keeps its
name, value and meaning for ever. Take the change back, and
  - for another meaning, add a new code: a row at the end of its class in umd/diag/status.toml with the next free value, a case in
    tests/api/codes_*.c, then    tests/abi/status_lock.py add NAME
  - for a code that is not returned any more, set `retired = "VERSION"` and keep both rows.
  - for another action, severity, scope or range, add a word at the end of its list (tools/gen/gen_status.py; [ranges] of the table): built
    programs have the numbers of the others, and the bounds by which they tell the layer of a code that they do not know.
Better words for todo, another delay or count, and counterparts in other interfaces are no change of meaning and are not locked."""


def load_table(args):
    """The codes; and what stands by itself: name -> row of the lock, without the version."""
    spec = importlib.util.spec_from_file_location("gen_status", args.gen)
    gen = importlib.util.module_from_spec(spec)
    sys.dont_write_bytecode = True
    spec.loader.exec_module(gen)
    try:
        t = gen.load(args.toml)
    except gen.Bad as e:
        sys.exit(f"{args.toml}: {e}")
    words = {}
    for enum, names in (("RANGE", gen.range_words(t)), ("SEVERITY", gen.SEVERITY), ("SCOPE", gen.SCOPE), ("ACTION", gen.ACTION)):
        words.update({f"UMD_{enum}_{w.upper()}": f"{number} word" for number, w in enumerate(names)})
    words.update({f"range={k}": f"{r['first']} to {r['last']}" for k, r in t["ranges"].items()})
    return t["status"], words, t["version"]


def digest(s):
    if s.get("provisional"):
        return PROVISIONAL
    return hashlib.sha256("\n".join(f"{k}={s[k]}" for k in MEANING).encode()).hexdigest()[:16]


def load_lock(path):
    """The codes, and of what stands by itself name -> row, without the version."""
    rows, words, bad = [], {}, []
    with open(path) as f:
        for number, line in enumerate(f, 1):
            m = re.fullmatch(r"(UMD_\w+) = (-?\d+) (\w+) since (\S+)\n", line)
            word = re.fullmatch(r"(UMD_\w+|range=\w+) = (\d+ word|-?\d+ to -?\d+) since (\S+)\n", line)
            if word and word[1] in words:
                bad.append(f"{path}:{number}: {word[1]} stands twice")
            elif word:
                words[word[1]] = word[2]
            elif m:
                rows.append((m[1], int(m[2]), m[3]))
            elif line.strip() and not line.startswith("#"):
                bad.append(f"{path}:{number}: not a row: {line.strip()}")
    return rows, words, bad


def compare_words(words, locked):
    bad = [f"{name}: is gone" if name not in words else f"{name}: was {row}, and is {words[name]} now"
           for name, row in locked.items() if words.get(name) != row]
    new = [name for name in words if name not in locked]
    if new:
        bad.append(f"not in the lock yet: run   tests/abi/status_lock.py add {' '.join(new)}")
    return bad


def compare(table, rows):
    by_name, by_value, bad = {s["name"]: s for s in table}, {s["value"]: s for s in table}, []
    seen = set()
    for name, value, locked in rows:
        if name in seen or value in seen:
            bad.append(f"{name}: its row, or another one of value {value}, stands twice in the lock")
        seen |= {name, value}
        s = by_name.get(name)
        if not s and value in by_value:
            bad.append(f"{name}: its value {value} is used again, by {by_value[value]['name']}")
        elif not s:
            bad.append(f"{name}: the row is gone from the table")
        elif s["value"] != value:
            bad.append(f"{name}: renumbered from {value} to {s['value']}")
        elif s.get("provisional") and locked != PROVISIONAL:
            bad.append(f"{name}: published, and now said to be provisional")
        elif locked == PROVISIONAL and not s.get("provisional"):
            bad.append(f"{name}: no longer provisional: lock its meaning with   tests/abi/status_lock.py add {name}")
        elif digest(s) != locked:
            bad.append(f"{name}: the meaning changed (one of: {', '.join(MEANING)})")
    new = [s["name"] for s in table if s["name"] not in {r[0] for r in rows}]
    if new:
        bad.append(f"not in the lock yet: run   tests/abi/status_lock.py add {' '.join(new)}")
    return bad


def check(args):
    rows, locked, bad = load_lock(args.lock)
    table, words, _ = load_table(args)
    bad += compare(table, rows) + compare_words(words, locked)
    for b in bad:
        print(f"status.lock: {b}", file=sys.stderr)
    if bad:
        print(RULE, file=sys.stderr)
    return 1 if bad else 0


def row(s):
    return f"{s['name']} = {s['value']} {digest(s)} since {s['since']}\n"


def add(args):
    codes, words, version = load_table(args)
    table = {s["name"]: s for s in codes}
    with open(args.lock) as f:
        lines = f.readlines()
    rows, locked_words, bad = load_lock(args.lock)
    locked = {name: (value, d) for name, value, d in rows}
    if bad:
        sys.exit(bad[0])
    for name in args.names:
        if name in words and name not in locked_words:
            lines.append(f"{name} = {words[name]} since {version}\n")
            continue
        if name in locked_words:
            sys.exit(f"status_lock.py: {name} is published already.{RULE}")
        s = table.get(name)
        if not s:
            sys.exit(f"status_lock.py: {name} is not in {args.toml}")
        taken = [n for n, (v, _) in locked.items() if v == s["value"] and n != name]
        if taken:
            sys.exit(f"status_lock.py: {name}: the value {s['value']} was published as {taken[0]} and is never used again")
        if name not in locked:
            lines.append(row(s))
        elif locked[name] == (s["value"], PROVISIONAL):
            lines = [row(s) if line.startswith(name + " ") else line for line in lines]
        elif locked[name] != (s["value"], digest(s)):
            sys.exit(f"status_lock.py: {name} is published already.{RULE}")
        locked[name] = (s["value"], digest(s))
    with open(args.lock, "w") as f:
        f.writelines(lines)
    return 0


def main():
    p = argparse.ArgumentParser(usage=__doc__)
    p.add_argument("command", choices=["check", "add"])
    p.add_argument("names", nargs="*")
    p.add_argument("--toml", default=os.path.join(ROOT, "umd/diag/status.toml"))
    p.add_argument("--gen", default=os.path.join(ROOT, "tools/gen/gen_status.py"), help="has the lists of words")
    p.add_argument("--lock", default=os.path.join(ROOT, "tests/abi/status.lock"))
    args = p.parse_args()
    if (args.command == "add") != bool(args.names):
        p.error("add takes names, check takes none")
    sys.exit(add(args) if args.command == "add" else check(args))


main()
