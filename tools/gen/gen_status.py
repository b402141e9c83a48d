#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# gen_status.py - checks umd/diag/status.toml row by row, and makes of it: public header, tables, docs pages, list of cases.
"""usage: gen_status.py STATUS.toml {header|table|docs|mapping|cases|vkcheck} OUTPUT
  header   include/umd/umd_status.h       docs     docs/status-codes.md       mapping  docs/status-mapping.md
  table    rows for umd/diag/status.c     cases    the codes that tests/api/codes.c must provoke
  vkcheck  C that only compiles where vulkan_core.h has every VkResult of the table"""
import errno
import re
import sys
import tomllib

SEVERITY = ["info", "warn", "error", "fatal"]
SCOPE = ["call", "stream", "context", "device", "node"]
ACTION = ["none", "retry", "free_retry", "change_argument", "skip", "rebuild_context", "reset_device", "abort"]
NEEDED = {"name": str, "value": int, "since": str, "severity": str, "scope": str, "sticky": bool, "action": str, "errno": str,
          "vkresult": str, "when": str, "todo": str}
OPTIONAL = {"provisional": bool, "retired": str, "delay_ms": int, "count": int, "driver_delay_ms": int, "driver_count": int,
            "cuda": (str, list), "hip": (str, list), "ze": (str, list)}
FOREIGN = {"cuda": ("CUDA", r"cuda(Success|Error[A-Z]\w*)"), "hip": ("HIP", r"hip(Success|Error[A-Z]\w*)"),
           "ze": ("Level Zero", r"ZE_RESULT_[A-Z_]+")}


class Bad(Exception):
    """A mistake in the table."""


def need(ok, row, text):
    if not ok:
        raise Bad(f"{row.get('name', 'a row without a name')}: {text}")


def foreign(s, key):
    v = s.get(key, [])
    return [v] if isinstance(v, str) else v


def check_types(s):
    for key, kind in NEEDED.items():
        need(key in s, s, f"no {key}")
        need(type(s[key]) is kind, s, f"{key} must be of type {kind.__name__}")
    for key in s:
        need(key in NEEDED or key in OPTIONAL, s, f"unknown field {key}")
        need(key in NEEDED or isinstance(s[key], OPTIONAL[key]), s, f"{key} is of a wrong type")


def check_row(t, s):
    check_types(s)
    v, name = s["value"], s["name"]
    need(re.fullmatch(r"UMD_(SUCCESS|STATUS(_[A-Z0-9]+)+|ERR(_[A-Z0-9]+)+)", name), s, "no name of a code")
    need(v == 0 if name == "UMD_SUCCESS" else v > 0 if name.startswith("UMD_STATUS_") else v < 0, s, f"the value {v} has the wrong sign")
    need(any(r["first"] <= v <= r["last"] for r in t["ranges"].values()), s, f"value {v} lies in no range")
    if v < 0:
        need(name.split("_")[2] in t["classes"], s, f"class {name.split('_')[2]} is none of [classes]")
    for key, allowed in (("severity", SEVERITY), ("scope", SCOPE), ("action", ACTION)):
        need(s[key] in allowed, s, f"{key} '{s[key]}' is none of {', '.join(allowed)}")
    need(s["errno"] == "0" if v == 0 else hasattr(errno, s["errno"]), s, f"errno '{s['errno']}' does not exist")
    need(re.fullmatch(r"VK_[A-Z0-9_]+", s["vkresult"]), s, f"'{s['vkresult']}' is no VkResult")
    retry = s["action"] in ("retry", "free_retry")
    need(retry or not s["delay_ms"] and not s["count"], s, "delay_ms and count are for the actions retry and free_retry")
    need(not retry or s["count"] or v > 0, s, "a retry without a count has no end")
    need(not s["driver_delay_ms"] or s["driver_count"], s, "driver_delay_ms without driver_count")
    need(not (s["sticky"] and s["scope"] == "call"), s, "a call has nothing that could stay unusable")
    need(not (s.get("provisional") and s.get("retired")), s, "what was never returned cannot be retired")
    for key in ("when", "todo"):
        need(len(s[key]) > 4 and s[key][0].isupper() and s[key].endswith("."), s, f"{key} must be a sentence")
        need(s[key].isprintable() and s[key].isascii() and "|" not in s[key], s, f"{key} must be plain text")
    for key, (_, pattern) in FOREIGN.items():
        for f in foreign(s, key):
            need(re.fullmatch(pattern, f), s, f"{key}: '{f}' is no such name")


def check(t):
    seen_v, seen_n = {}, set()
    for s in t["status"]:
        for key in ("delay_ms", "count", "driver_delay_ms", "driver_count"):
            s.setdefault(key, 0)
        check_row(t, s)
        need(s["value"] not in seen_v, s, f"shares the value {s['value']} with {seen_v.get(s['value'])}")
        need(s["name"] not in seen_n, s, "stands twice")
        seen_v[s["value"]] = s["name"]
        seen_n.add(s["name"])
    used = {s["name"].split("_")[2] for s in t["status"] if s["value"] < 0}
    for c in t["classes"]:
        if c not in used:
            raise Bad(f"[classes]: {c} has no code")


def load(path):
    with open(path, "rb") as f:
        t = tomllib.load(f)
    check(t)
    return t


def range_of(t, v):
    return next(k for k, r in t["ranges"].items() if r["first"] <= v <= r["last"])


def in_range(t, k):
    r = t["ranges"][k]
    return [s for s in t["status"] if r["first"] <= s["value"] <= r["last"]]


def range_words(t):
    """umdStatusRange in its order."""
    return list(t["ranges"]) + ["unknown"]


def is_live(s):
    return not s.get("provisional") and not s.get("retired")


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
    o += [" *", " * \"Provisional\": reserved for a mechanism to come; this version does not return it.", " */", "typedef enum umdStatus {"]
    for s in t["status"]:
        mark = "Provisional. " if s.get("provisional") else f"Retired since {s['retired']}. " if s.get("retired") else ""
        o.append(f"    /** {mark}{s['when']} {s['todo']} */")
        o.append(f"    {s['name']} = {s['value']},")
    o += ["} umdStatus;", "",
          "/** Layer of a code, from its number range (B3). */",
          enum("umdStatusRange", "UMD_RANGE_", range_words(t)),
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
    o.append("static const struct umd_status_info status_rows[] = {")
    for s in sorted(t["status"], key=lambda s: s["value"]):
        name = s["name"].split("_")
        cls = name[2] if s["value"] < 0 else "STATUS"
        o.append(f"    {{ .code = {s['name']}, .name = {cstr(s['name'])}, .class_name = {cstr(cls)}, .when = {cstr(s['when'])},\n"
                 f"      .todo = {cstr(s['todo'])}, .since = {cstr(s['since'])}, .retired = {cstr(s.get('retired', ''))},\n"
                 f"      .errno_name = {cstr(s['errno'])}, .vkresult = {cstr(s['vkresult'])},\n"
                 + "".join(f"      .{k} = {cstr(' '.join(foreign(s, k)))},\n" for k in FOREIGN) +
                 f"      .range = UMD_RANGE_{range_of(t, s['value']).upper()}, .severity = UMD_SEVERITY_{s['severity'].upper()},\n"
                 f"      .scope = UMD_SCOPE_{s['scope'].upper()}, .action = UMD_ACTION_{s['action'].upper()},\n"
                 f"      .sticky = {str(s['sticky']).lower()}, .provisional = {str(bool(s.get('provisional'))).lower()},\n"
                 f"      .delay_ms = {s['delay_ms']}, .count = {s['count']}, .driver_delay_ms = {s['driver_delay_ms']},\n"
                 f"      .driver_count = {s['driver_count']}, .err = {s['errno']} }},")
    o += ["};", "static const struct umd_status_range_info range_rows[] = {"]
    for k, r in t["ranges"].items():
        o.append(f"    {{ UMD_RANGE_{k.upper()}, {cstr(k)}, {cstr(r['text'])}, {r['first']}, {r['last']} }},")
    o += ["};", "static const char *const class_rows[][2] = {", f"    {{ \"STATUS\", {cstr(t['ranges']['warning']['text'])} }},"]
    o += [f"    {{ {cstr(c)}, {cstr(text)} }}," for c, text in t["classes"].items()]
    o += ["};"]
    for array, words in (("severity_words", SEVERITY), ("scope_words", SCOPE), ("action_words", ACTION)):
        o.append(f"static const char *const {array}[] = {{ {', '.join(cstr(w) for w in words)} }};")
    return "\n".join(o + [""])


def retry_text(s):
    if s["count"]:
        return f" ({s['count']}x, {s['delay_ms']} ms)"
    return f" ({s['delay_ms']} ms)" if s["delay_ms"] else ""


def docs(t):
    live = sum(map(is_live, t["status"]))
    o = ["# Status codes", "", "Generated from `umd/diag/status.toml` by `tools/gen/gen_status.py`; edit the table, not this page.",
         "`umd-explain NAME` prints one of them with all that is known about it; [status-mapping.md](status-mapping.md) has their",
         "counterparts in CUDA, HIP, Level Zero and Vulkan, [error-handling.md](error-handling.md) the contract.", "",
         f"{len(t['status'])} codes, {live} of which this version returns; the others are *provisional*: reserved for mechanisms to come, with name",
         "and value fixed. A code's class is the second part of its name.", ""]
    for k, r in t["ranges"].items():
        rows = in_range(t, k)
        o += [f"## {k}: {r['first']} to {r['last']}", "", r["text"][0].upper() + r["text"][1:] + ".", ""]
        classes = [c for c in t["classes"] if any(s["value"] < 0 and s["name"].split("_")[2] == c for s in rows)]
        o += [f"- `{c}`: {t['classes'][c]}" for c in classes] + ([""] if classes else [])
        o += ["| name | value | since | severity | scope | sticky | action | errno | VkResult | when | what next |",
              "|---|---|---|---|---|---|---|---|---|---|---|"]
        for s in rows:
            since = "provisional" if s.get("provisional") else f"{s['since']}, retired {s['retired']}" if s.get("retired") else s["since"]
            own = f" The driver has retried {s['driver_count']} times itself." if s["driver_count"] else ""
            o.append(f"| `{s['name']}` | {s['value']} | {since} | {s['severity']} | {s['scope']} | {'yes' if s['sticky'] else 'no'} "
                     f"| {s['action']}{retry_text(s)} | {s['errno']} | {s['vkresult']} | {s['when']}{own} | {s['todo']} |")
        o.append("")
    return "\n".join(o)


def mapping(t):
    o = ["# Status codes for users of CUDA, HIP, Level Zero and Vulkan", "",
         "Generated from `umd/diag/status.toml` by `tools/gen/gen_status.py`; edit the table, not this page.", "",
         "The counterparts are the nearest there are, for people who know one of the others and for layers that translate. Where several of",
         "ours stand beside one of theirs, ours tell apart what theirs does not: look at the record. The Vulkan column is what a Vulkan driver",
         "over this library returns, and is compiled against `vulkan_core.h`. *Italic*: provisional.", "",
         "## From Petrel", "", "| Petrel | CUDA | HIP | Level Zero | Vulkan |", "|---|---|---|---|---|"]
    name = lambda s: f"*{s['name']}*" if s.get("provisional") else f"`{s['name']}`"
    for s in t["status"]:
        cells = ["<br>".join(f"`{f}`" for f in foreign(s, k)) or "none" for k in FOREIGN]
        o.append(f"| {name(s)} | {' | '.join(cells)} | `{s['vkresult']}` |")
    for k, title in [(k, v[0]) for k, v in FOREIGN.items()] + [("vkresult", "Vulkan")]:
        back = {}
        for s in t["status"]:
            for f in foreign(s, k):
                back.setdefault(f, []).append(s)
        o += ["", f"## From {title}", "", f"| {title} | Petrel |", "|---|---|"]
        o += [f"| `{f}` | {'<br>'.join(name(s) for s in back[f])} |" for f in sorted(back)]
    return "\n".join(o + [""])


def cases(t):
    o = ["/* SPDX-License-Identifier: MIT */", "/* Generated from status.toml by gen_status.py: each code here needs a case, case_NAME, in tests/api/codes_*.c. */",
         "#define UMD_STATUS_CASES(X) \\"]
    o += [f"    X({s['name']}) \\" for s in t["status"] if is_live(s)]
    return "\n".join(o + ["    /* end */", ""])


def vkcheck(t):
    o = ["/* SPDX-License-Identifier: MIT */", "/* Generated from status.toml by gen_status.py: compiles only where Vulkan has every VkResult of the table. */",
         "#include <vulkan/vulkan_core.h>", "", "static const struct { umdStatus code; VkResult result; const char *name; } vk_rows[] = {"]
    o += [f"    {{ {s['name']}, {s['vkresult']}, {cstr(s['vkresult'])} }}," for s in t["status"]]
    o.append("};")
    for s in t["status"]: # what is no failure of ours must be none of Vulkan's, and nothing that failed may look done
        if s["value"] >= 0:
            o.append(f"_Static_assert({s['vkresult']} >= 0, \"{s['name']} is no failure\");")
        elif s["severity"] in ("error", "fatal") and s["vkresult"] == "VK_SUCCESS" and s["action"] != "none":
            raise Bad(f"{s['name']}: VK_SUCCESS for a failure that needs an action")
    return "\n".join(o + [""])


KINDS = {"header": header, "table": table, "docs": docs, "mapping": mapping, "cases": cases, "vkcheck": vkcheck}


def main():
    if len(sys.argv) != 4 or sys.argv[2] not in KINDS:
        sys.exit(__doc__)
    try:
        text = KINDS[sys.argv[2]](load(sys.argv[1]))
    except (Bad, tomllib.TOMLDecodeError) as e:
        sys.exit(f"{sys.argv[1]}: {e}")
    with open(sys.argv[3], "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
