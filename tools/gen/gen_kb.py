#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# gen_kb.py - which pages of docs/knowledge-base tell about which status code, for umd-explain.
"""usage: gen_kb.py DOCS_FOLDER OUTPUT DEPFILE

The section "Codes" of a page says which codes it is about, and behind the line "Related:" which a reader may have in their place."""
import os
import re
import sys


def codes_of(text):
    """The codes of a page, and the related ones, each in the order of the page."""
    part = re.search(r"^## Codes\n(.*?)(?=^## |\Z)", text, re.M | re.S)
    shown, _, related = (part[1] if part else "").partition("\nRelated:\n")
    bullets = [re.findall(r"^- .+$", t, re.M) for t in (shown, related)]
    return tuple([name for line in lines for name in re.findall(r"\[(UMD_[A-Z0-9_]+)\]", line)] for lines in bullets)


def cstr(s):
    return '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'


def main(docs, output, depfile):
    folder = os.path.join(docs, "knowledge-base")
    pages = sorted(f for f in os.listdir(folder) if f.endswith(".md") and f not in ("README.md", "TEMPLATE.md"))
    rows = []
    for page in pages:
        with open(os.path.join(folder, page)) as f:
            text = f.read()
        title = re.search(r"^# (.+)$", text, re.M)[1]
        shown, related = codes_of(text)
        rows += [(name, place, page, title) for place, name in enumerate(shown)]
        rows += [(name, 1000 + place, page, title) for place, name in enumerate(related)]
    rows.sort()
    with open(output, "w") as f:
        f.write("/* SPDX-License-Identifier: MIT */\n/* Generated from docs/knowledge-base by gen_kb.py: code, page, title; by code, the page that is about it first. */\n")
        f.write("static const char *const kb_rows[][3] = {\n")
        f.writelines(f"    {{ {cstr(name)}, {cstr('docs/knowledge-base/' + page)}, {cstr(title)} }},\n" for name, _, page, title in rows)
        f.write("    { \"\", \"\", \"\" },\n};\n")
    with open(depfile, "w") as f:
        deps = [folder] + [os.path.join(folder, p) for p in pages]
        f.write(f"{output}: {' '.join(d.replace(' ', chr(92) + ' ') for d in deps)}\n")


if __name__ == "__main__":
    if len(sys.argv) != 4:
        sys.exit(__doc__)
    main(*sys.argv[1:])
