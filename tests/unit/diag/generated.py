#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# generated.py - the committed status header and docs pages are what the generator makes; docs/faults.md has all fault sites, docs/logging.md all settings.
"""usage: generated.py SOURCE_ROOT"""
import os
import re
import subprocess
import sys
import tempfile

root = sys.argv[1]
bad = 0
for kind, path in (("header", "include/umd/umd_status.h"), ("docs", "docs/status-codes.md"), ("mapping", "docs/status-mapping.md")):
    with tempfile.NamedTemporaryFile("r") as f:
        subprocess.run([sys.executable, f"{root}/tools/gen/gen_status.py", f"{root}/umd/diag/status.toml", kind, f.name], check=True)
        if f.read() != open(os.path.join(root, path)).read():
            print(f"{path} is not what status.toml makes: run tools/gen/gen_status.py umd/diag/status.toml {kind} {path}", file=sys.stderr)
            bad = 1
page = open(os.path.join(root, "docs/faults.md")).read()
in_docs = re.findall(r"^\| `([a-z_.]+)` \| ([a-z, ]+) \| (?:`(\w+)`|the log) \| (.+) \|$", page, re.M)
in_code = re.findall(r'^FAULT_SITE\(\w+, "([^"]+)", "([^"]+)", (\w+), "([^"]+)"\)', open(os.path.join(root, "umd/diag/fault_sites.def")).read(), re.M)
if [(n, a.replace(", ", ","), c or "UMD_SUCCESS", t) for n, a, c, t in in_docs] != in_code or not in_code:
    print("docs/faults.md and umd/diag/fault_sites.def do not have the same sites", file=sys.stderr)
    bad = 1
page = open(os.path.join(root, "docs/logging.md")).read()
table = re.search(r"settings\[\] = \{\n(.*?)\n\};", open(os.path.join(root, "umd/diag/log_settings.c")).read(), re.S).group(1)
for key in re.findall(r'\{ "([A-Z_]+)"', table):
    if f"| `{key}` |" not in page:
        print(f"docs/logging.md does not list the setting {key} of umd/diag/log_settings.c", file=sys.stderr)
        bad = 1
sys.exit(bad)
