#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# generated.py - the committed status header and docs page are what the generator makes of status.toml.
"""usage: generated.py SOURCE_ROOT"""
import os
import subprocess
import sys
import tempfile

root = sys.argv[1]
bad = 0
for kind, path in (("header", "include/umd/umd_status.h"), ("docs", "docs/status-codes.md")):
    with tempfile.NamedTemporaryFile("r") as f:
        subprocess.run([sys.executable, f"{root}/tools/gen/gen_status.py", f"{root}/umd/diag/status.toml", kind, f.name], check=True)
        if f.read() != open(os.path.join(root, path)).read():
            print(f"{path} is not what status.toml makes: run tools/gen/gen_status.py umd/diag/status.toml {kind} {path}", file=sys.stderr)
            bad = 1
sys.exit(bad)
