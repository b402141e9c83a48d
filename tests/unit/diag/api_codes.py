#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# api_codes.py - the list of codes of each public call against the comment above it; docs/api-codes.md against the lists.
"""usage: api_codes.py SOURCE_ROOT"""
import os
import re
import subprocess
import sys
import tempfile

sys.dont_write_bytecode = True
root = sys.argv[1]
sys.path.insert(0, os.path.join(root, "tools/gen"))
import gen_api_codes  # noqa: E402

STATUS, LISTS = (os.path.join(root, "umd/diag", f) for f in ("status.toml", "api_codes.toml"))
lists, status, quiet, _ = gen_api_codes.load(STATUS, LISTS)
live = {s["name"] for s in status["status"] if gen_api_codes.gen_status.is_live(s)}
everything = {s["name"] for s in status["status"]}


def comments(path):
    """(function, comment) of each call that returns umdStatus and records what it returns."""
    text = open(path).read()
    for m in re.finditer(r"^UMD_API UMD_MUST_CHECK umdStatus (umd\w+)\([^;]*;([^\n]*)", text, re.M):
        before = re.search(r"/\*\*(?!<)((?:(?!\*/).)*)\*/\s*$", text[:m.start()], re.S)
        own = re.search(r"/\*\*<(.*?)\*/", m[2])
        yield m[1], (before[1] if before else "") + " " + (own[1] if own else "")


def named(text, said, where, whole):
    """Codes that a comment names: after "Codes:", or all of it where `whole`; _DETAIL goes on with the class before it; * is a wildcard."""
    if "Codes:" in text:
        text, whole = text.split("Codes:")[1], False
    elif not whole:
        return set(), []
    out, wild, cls = set(), [], None
    for m in re.finditer((r"\bAs" if whole else r"\bthose of") + r" (umd[A-Z]\w+)|(UMD_(?:ERR|STATUS)_[A-Z0-9_]*[A-Z0-9_])(\*?)|(?<![A-Z0-9])(_[A-Z][A-Z0-9_]*)", text):
        if m[1] in said:
            out |= said[m[1]][0]
            wild += said[m[1]][1]
        elif m[2] and m[3]:
            wild.append(m[2])
        elif m[2] and m[2] in everything:
            out.add(m[2])
            cls = re.match(r"UMD_ERR_[A-Z]+", m[2])
        elif m[2]:
            raise SystemExit(f"{where}: {m[2]} is no code")
        elif m[4] and cls:
            out.add(cls[0] + m[4])
    return out, wild


def compare(header, whole):
    found = []
    said = {}
    for name, text in comments(os.path.join(root, "include/umd", header)):
        found.append(name)
        said[name] = named(text, said, f"{header}: {name}", whole)
        if name not in lists:
            bad.append(f"{header}: {name} has no list in umd/diag/api_codes.toml: add [calls.{name}] with the codes that it may return")
            continue
        codes, wild = said[name]
        listed = set(lists[name])
        for c in sorted(codes - listed):
            bad.append(f"{header}: the comment of {name} names {c}, its list in umd/diag/api_codes.toml does not have it")
        for w in wild:
            if not any(c.startswith(w) for c in listed):
                bad.append(f"{header}: the comment of {name} names {w}*, its list has none of them")
        for c in sorted(listed - codes - quiet):
            if not any(c.startswith(w) for w in wild):
                bad.append(f"{header}: {name} may return {c}, its comment does not say so after \"Codes:\"")
    return found


bad = []
found = compare("umd.h", False) + compare("umd_log.h", True) + compare("umd_diag.h", True)
for name in lists:
    if name not in found:
        bad.append(f"umd/diag/api_codes.toml: {name} is declared in no public header")
if len(found) < 30:
    bad.append("the headers could not be read")
# The rules at the head of umd.h promise for any call what comments leave out.
rules = re.search(r"/\*\n \* Rules for every call(.*?)\*/", open(os.path.join(root, "include/umd/umd.h")).read(), re.S)[1]
codes, wild = named(rules.replace("Codes:", "codes"), {}, "umd.h: rules", True)
for c in sorted(quiet - codes):
    if not any(c.startswith(w) for w in wild):
        bad.append(f"umd.h: the rules for every call do not name {c}, which comments may leave out")
with tempfile.NamedTemporaryFile("r") as f:
    subprocess.run([sys.executable, "-B", os.path.join(root, "tools/gen/gen_api_codes.py"), STATUS, LISTS, "docs", f.name], check=True)
    if f.read() != open(os.path.join(root, "docs/api-codes.md")).read():
        bad.append("docs/api-codes.md is not what the table makes: run tools/gen/gen_api_codes.py umd/diag/status.toml umd/diag/api_codes.toml docs docs/api-codes.md")
for b in bad:
    print(b, file=sys.stderr)
sys.exit(1 if bad else 0)
