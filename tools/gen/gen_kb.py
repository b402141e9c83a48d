#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# gen_kb.py - which pages of docs/knowledge-base tell about which status code, for umd-explain.
"""usage: gen_kb.py DOCS_FOLDER OUTPUT DEPFILE"""
import os
import re
import sys

docs, output, depfile = sys.argv[1:]
folder = os.path.join(docs, "knowledge-base")
pages = sorted(f for f in os.listdir(folder) if f.endswith(".md")) if os.path.isdir(folder) else []
rows = []
for page in pages:
    text = open(os.path.join(folder, page)).read()
    title = re.search(r"^# (.+)$", text, re.M)
    counts = {}
    for name in re.findall(r"\bUMD_(?:ERR|STATUS)_[A-Z0-9_]*[A-Z0-9]\b", text):
        counts[name] = counts.get(name, 0) + 1
    # A code that stands in the page's first lines or table is what the page is about; one that is mentioned once comes after.
    rows += [(name, -n, page, title[1] if title else page) for name, n in counts.items()]
rows.sort()


def cstr(s):
    return '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'


with open(output, "w") as f:
    f.write("/* SPDX-License-Identifier: MIT */\n/* Generated from docs/knowledge-base by gen_kb.py: code, page, title; by code, the page that says most of it first. */\n")
    f.write("static const char *const kb_rows[][3] = {\n")
    f.writelines(f"    {{ {cstr(name)}, {cstr('docs/knowledge-base/' + page)}, {cstr(title)} }},\n" for name, _, page, title in rows)
    f.write("    { \"\", \"\", \"\" },\n};\n")
with open(depfile, "w") as f:
    deps = [folder if os.path.isdir(folder) else docs] + [os.path.join(folder, p) for p in pages]
    f.write(f"{output}: {' '.join(d.replace(' ', chr(92) + ' ') for d in deps)}\n")
