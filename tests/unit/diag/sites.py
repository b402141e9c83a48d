#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# sites.py - umd-log sites lists every place that logs, raises or absorbs, as many as the sources have; and for the first error of each there is room.
"""usage: sites.py SOURCE_ROOT UMD_LOG"""
import collections
import json
import os
import re
import subprocess
import sys

FOLDERS = ("umd", "kmd_sim", "hw_model")
KINDS = {
    "log": re.compile(r"\b(?:UMD_LOG|UMD_LIFECYCLE|UMD_RECORD_NOTE)\s*\("),
    "raise": re.compile(r"\b(?:UMD_FAIL(?:_CAUSED|_ERRNO|_FROM|_SEVERITY|_ADVISED|_ADVISED_AT)?|PETREL_RAISE(?:_SEVERITY|_ADVISED)?|umd_alloc)\s*\("),
    "absorb": re.compile(r"\bUMD_ABSORB\s*\("),
}
DEFINE = re.compile(r"^[ \t]*#[ \t]*define[ \t]+(\w+)(?:.*\\\n)*.*\n?", re.M)


def strip(text):
    """The text without comments and the contents of literals; line ends stay."""
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*',
                  lambda m: '""' if m.group(0)[0] == '"' else re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)


def in_sources(root):
    """Kind and file name -> number of sites, macros of a file (KMD_FIELD, BAD) counted where they are used."""
    count = collections.Counter()
    texts = {}
    for top in FOLDERS:
        for d, _, names in os.walk(os.path.join(root, top)):
            for n in names:
                if n.endswith((".c", ".h")):
                    with open(os.path.join(d, n), encoding="utf-8") as f:
                        texts[os.path.join(d, n)] = strip(f.read())
    wrappers = {kind: set() for kind in KINDS}
    for text in texts.values():
        for m in DEFINE.finditer(text):
            for kind, use in KINDS.items():
                if not any(k.match(m.group(1) + "(") for k in KINDS.values()) and use.search(m.group(0)):
                    wrappers[kind].add(m.group(1))
    for path, text in texts.items():
        body = DEFINE.sub("", text)
        for kind, use in KINDS.items():
            n = len(use.findall(body))
            n += sum(len(re.findall(r"\b" + w + r"\s*\(", body)) for w in wrappers[kind])
            if n:
                count[kind, os.path.basename(path)] += n
    return count


def main():
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    want = in_sources(sys.argv[1])
    sites = json.loads(subprocess.run([sys.argv[2], "sites", "--json"], stdout=subprocess.PIPE, check=True).stdout)
    own = {"umd_record_raise_bare", "umd_api_exit"} # sites that stand in functions, without a macro of theirs
    have = collections.Counter((s["kind"], s["file"]) for s in sites if s["module"] != "umd.api" and s["function"] not in own)
    wrong = [f"{file}: {want[kind, file]} places in the sources that {kind}, {have[kind, file]} sites listed"
             for kind, file in sorted(set(want) | set(have)) if want[kind, file] != have[kind, file]]
    with open(os.path.join(sys.argv[1], "umd/diag/log_fold.h"), encoding="utf-8") as f:
        slots = int(re.search(r"#define UMD_FOLD_SLOTS (\d+)u", f.read()).group(1))
    errors = sum(s.get("level", "ERROR") == "ERROR" for s in sites) # one whose level is chosen at run time may be an error, too
    if errors + 256 > slots:
        wrong.append(f"{errors} sites may log an error, and UMD_FOLD_SLOTS (log_fold.h) has {slots} places: not each first one could be kept")
    if sum(want.values()) < 300:
        wrong.append(f"only {sum(want.values())} places found in the sources: wrong folder?")
    print("\n".join(wrong) or f"all {sum(have.values())} places are listed")
    sys.exit(1 if wrong else 0)


main()
