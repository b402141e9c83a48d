#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# gen_status.py - from umd/diag/status.toml: public header, table for status.c, docs page.
"""usage: gen_status.py STATUS.toml {header|table|docs} OUTPUT"""
import sys
import tomllib

SEVERITY = ["info", "warn", "error", "fatal"]
SCOPE = ["call", "stream", "context", "device", "node"]
ACTION = ["none", "retry", "free_retry", "change_argument", "skip", "rebuild_context", "reset_device", "abort"]


def load(path):
    with open(path, "rb") as f:
        t = tomllib.load(f)
    seen_v, seen_n = {}, set()
    for s in t["status"]:
        n, v = s["name"], s["value"]
        if v in seen_v:
            sys.exit(f"{path}: {n} and {seen_v[v]} share the value {v}")
        if n in seen_n:
            sys.exit(f"{path}: {n} stands twice")
        if not any(r["first"] <= v <= r["last"] for r in t["ranges"].values()):
            sys.exit(f"{path}: {n}: value {v} lies in no range")
        for key, allowed in (("severity", SEVERITY), ("scope", SCOPE), ("action", ACTION)):
            if s[key] not in allowed:
                sys.exit(f"{path}: {n}: {key} '{s[key]}' is none of {', '.join(allowed)}")
        seen_v[v] = n
        seen_n.add(n)
    return t


def range_of(t, v):
    return next(k for k, r in t["ranges"].items() if r["first"] <= v <= r["last"])


def enum(name, prefix, words):
    rows = "".join(f"    {prefix}{w.upper()},\n" for w in words)
    return f"typedef enum {name} {{\n{rows}}} {name};\n"


def header(t):
    o = ["/* SPDX-License-Identifier: MIT */",
         "/* umd_status.h - return codes of Petrel. Generated from umd/diag/status.toml by tools/gen/gen_status.py. */",
         "#ifndef UMD_STATUS_H", "#define UMD_STATUS_H", "",
         "/*", " * 0 is success, negative an error, positive a warning or status that only calls which document it return.",
         " * Values are frozen: none changes its meaning or is used again. An unknown code can be classified by its range:", " *"]
    for k, r in t["ranges"].items():
        o.append(f" *   {r['first']:>6} .. {r['last']:>6}  {k:<9} {r['text']}")
    o += [" */", "typedef enum umdStatus {"]
    for s in t["status"]:
        o.append(f"    /** {s['when']} {s['todo']} */")
        o.append(f"    {s['name']} = {s['value']},")
    o += ["} umdStatus;", "",
          "/** Layer of a code, from its number range (B3). */",
          enum("umdStatusRange", "UMD_RANGE_", list(t["ranges"]) + ["unknown"]),
          enum("umdSeverity", "UMD_SEVERITY_", SEVERITY),
          "/** How much is unusable after the code. */",
          enum("umdScope", "UMD_SCOPE_", SCOPE),
          "/** What the caller does next. */",
          enum("umdAction", "UMD_ACTION_", ACTION),
          "#endif /* UMD_STATUS_H */", ""]
    return "\n".join(o)


def cstr(s):
    return '"' + s.replace("\\", "\\\\").replace('"', '\\"') + '"'


def table(t):
    o = ["/* SPDX-License-Identifier: MIT */", "/* Generated from status.toml by gen_status.py; included by status.c. */"]
    o.append("static const struct umd_status_row status_rows[] = {")
    for s in sorted(t["status"], key=lambda s: s["value"]):
        e = s["errno"]
        o.append(f"    {{ .code = {s['name']}, .name = {cstr(s['name'])}, .when = {cstr(s['when'])},\n"
                 f"      .todo = {cstr(s['todo'])}, .since = {cstr(s['since'])}, .vkresult = {cstr(s['vkresult'])},\n"
                 f"      .range = UMD_RANGE_{range_of(t, s['value']).upper()}, .severity = UMD_SEVERITY_{s['severity'].upper()},\n"
                 f"      .scope = UMD_SCOPE_{s['scope'].upper()}, .action = UMD_ACTION_{s['action'].upper()},\n"
                 f"      .sticky = {str(s['sticky']).lower()}, .delay_ms = {s['delay_ms']}, .count = {s['count']}, .err = {e} }},")
    o.append("};")
    o.append("static const struct umd_status_range_row range_rows[] = {")
    for k, r in t["ranges"].items():
        o.append(f"    {{ UMD_RANGE_{k.upper()}, {cstr(k)}, {r['first']}, {r['last']} }},")
    o += ["};", ""]
    return "\n".join(o)


def docs(t):
    o = ["# Status codes", "", "Generated from `umd/diag/status.toml` by `tools/gen/gen_status.py`; edit the table, not this page.", ""]
    for k, r in t["ranges"].items():
        o += [f"## {k}: {r['first']} to {r['last']}", "", r["text"][0].upper() + r["text"][1:] + ".", "",
              "| name | value | severity | scope | sticky | action | errno | VkResult | when | what next |",
              "|---|---|---|---|---|---|---|---|---|---|"]
        for s in t["status"]:
            if not r["first"] <= s["value"] <= r["last"]:
                continue
            act = s["action"] + (f" ({s['count']}x, {s['delay_ms']} ms)" if s["count"] or s["delay_ms"] else "")
            o.append(f"| `{s['name']}` | {s['value']} | {s['severity']} | {s['scope']} | {'yes' if s['sticky'] else 'no'} | {act} "
                     f"| {s['errno']} | {s['vkresult']} | {s['when']} | {s['todo']} |")
        o.append("")
    return "\n".join(o)


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in ("header", "table", "docs"):
        sys.exit(__doc__)
    text = {"header": header, "table": table, "docs": docs}[sys.argv[2]](load(sys.argv[1]))
    with open(sys.argv[3], "w") as f:
        f.write(text)


main()
