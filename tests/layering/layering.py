#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# layering.py - includes follow docs/architecture.md section 1; no cycles; no getenv in libraries; each file has its SPDX line and opening comment.
"""usage: layering.py SOURCE_ROOT"""
import os
import re
import sys

# Room of the includer -> rooms it may include from ("include/x" are folders of public headers). Most specific first.
ALLOWED = [
    ("umd/diag", {"umd/diag", "include/umd-diag"}),
    ("hw_model", {"hw_model", "hw_model/hw.h", "include/hw", "umd/diag", "include/umd-diag"}),
    ("kmd_sim/drm", {"kmd_sim/drm", "umd/diag", "include/umd-diag", "kmd_sim/usercopy"}),
    ("kmd_sim", {"kmd_sim", "kmd_sim/kmd.h", "kmd_sim/drm", "kmd_sim/usercopy", "include/hw", "include/uapi", "hw_model/hw.h", "umd/diag", "include/umd-diag"}),
    ("umd", {"umd", "umd/winsys", "umd/diag", "include/umd", "include/umd-diag", "include/uapi", "include/hw", "kmd_sim/kmd.h"}),
    ("include/device", {"include/device", "include/hw"}),
    ("include", {"include/umd", "include/umd-diag", "include/uapi", "include/hw"}),
    ("tools/sim", {"tools", "tools/sim", "hw_model", "include/umd", "include/umd-diag", "include/hw", "umd/diag"}),
    ("tools", {"tools", "include/umd", "include/umd-diag", "include/uapi", "include/hw", "include/device", "umd/diag"}),
]
# Only the carriers load the kernel driver.
ONLY = {"kmd_sim/kmd.h": re.compile(r"^(kmd_sim/|umd/winsys/winsys_(direct|loopback|carrier))")}
# The compute unit without a driver is for the tools that simulate, hw-run and umd-bench sim, and its test.
ONLY_ROOM = {"tools/sim": re.compile(r"^(tools/(sim/|hw-run|umd-bench/bench_sim)|tests/unit/sim/)")}
# Diagnosis code cannot read the fault plan: these must not include it.
NO_FAULT_PLAN = re.compile(r"^kmd_sim/(watchdog|reset|irq|event)\.c$|^umd/error\.c$")
DIAG_PUBLIC = {"umd/umd_status.h", "umd/umd_diag.h", "umd/umd_log.h"}
# Libraries of ours may be in a setuid program, whose environment is another's. How a terminal is coloured is no matter of trust.
LIBRARY = re.compile(r"^(umd|kmd_sim|hw_model)/")
GETENV = re.compile(r'(?<!\w)getenv\((?!"(?:TERM|NO_COLOR)"\))')
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^>"]+)[>"]', re.M)


def room(path):
    if path in ("hw_model/hw.h", "kmd_sim/kmd.h"):
        return path
    for r in ("kmd_sim/usercopy", "tools/sim"):
        if path.startswith(r):
            return r
    if path.startswith("include/"):
        return "include/umd-diag" if path[len("include/"):] in DIAG_PUBLIC else "/".join(path.split("/")[:2])
    for r in ("umd/diag", "umd/winsys", "kmd_sim/drm", "kmd_sim", "hw_model", "umd", "tools", "tests"):
        if path.startswith(r + "/"):
            return r
    return None


def resolve(root, includer, kind, name):
    """Path of an included file of ours, None for the system's."""
    tries = [os.path.join("include", name), os.path.join("umd/diag", name)]
    if kind == '"':
        tries.insert(0, os.path.join(os.path.dirname(includer), name))
    top = includer.split("/")[0]
    tries += [os.path.join(top, name), os.path.join("umd/winsys", name), name]
    for t in tries:
        t = os.path.normpath(t)
        if os.path.isfile(os.path.join(root, t)):
            return t
    return None


def sources(root):
    for top in ("include", "umd", "kmd_sim", "hw_model", "tools", "tests"):
        for d, _, files in os.walk(os.path.join(root, top)):
            for f in files:
                if f.endswith((".c", ".h", ".def")):
                    yield os.path.relpath(os.path.join(d, f), root)


def check_edge(path, target, errors):
    if target in ONLY and not ONLY[target].match(path):
        errors.append(f"{path}: only {ONLY[target].pattern} may include {target}")
    only = ONLY_ROOM.get(room(target))
    if only:
        if not only.match(path):
            errors.append(f"{path}: only {only.pattern} may include {target}")
        return
    if target == "umd/diag/fault_plan.h" and NO_FAULT_PLAN.match(path):
        errors.append(f"{path}: diagnosis code may not read the fault plan")
    for prefix, rooms in ALLOWED:
        if path.startswith(prefix + "/"):
            if room(target) not in rooms and target not in rooms:
                errors.append(f"{path}: includes {target}; {prefix} may include only {', '.join(sorted(rooms))}")
            return


def find_cycle(graph):
    state, stack = {}, []

    def visit(n):
        state[n] = 1
        stack.append(n)
        for m in graph.get(n, ()):
            if state.get(m) == 1:
                return stack[stack.index(m):] + [m]
            if m not in state:
                c = visit(m)
                if c:
                    return c
        stack.pop()
        state[n] = 2
        return None

    for n in list(graph):
        if n not in state:
            c = visit(n)
            if c:
                return c
    return None


def main():
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    root, errors, graph, count = sys.argv[1], [], {}, 0
    for path in sorted(sources(root)):
        count += 1
        text = open(os.path.join(root, path), encoding="utf-8").read()
        lines = text.split("\n")
        if "SPDX-License-Identifier: MIT" not in lines[0]:
            errors.append(f"{path}: first line has no SPDX identifier")
        if os.path.basename(path) not in "\n".join(lines[:3]):
            errors.append(f"{path}: no opening comment that names the file and says what it is for")
        if LIBRARY.match(path) and GETENV.search(text):
            errors.append(f"{path}: getenv in a library; secure_getenv heeds no environment in a setuid program")
        for kind, name in INCLUDE.findall(text):
            target = resolve(root, path, kind, name)
            if target is None or target == path:
                continue
            graph.setdefault(path, set()).add(target)
            if not path.startswith("tests/"):
                check_edge(path, target, errors)
    cycle = find_cycle({k: v for k, v in graph.items() if k.endswith(".h")})
    if cycle:
        errors.append("include cycle: " + " -> ".join(cycle))
    if count < 10:
        errors.append(f"only {count} source files found under {root}: wrong folder?")
    print("\n".join(errors) or f"{count} files follow the layering")
    sys.exit(1 if errors else 0)


main()
