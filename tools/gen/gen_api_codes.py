#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# gen_api_codes.py - from umd/diag/api_codes.toml: the table that exits of public calls are checked against, and docs/api-codes.md.
"""usage: gen_api_codes.py STATUS.toml API_CODES.toml {table|docs} OUTPUT"""
import os
import sys
import tomllib

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
import gen_status  # noqa: E402


class Bad(Exception):
    """A mistake in the lists."""


def expand(t, known, words, where):
    out = []
    for w in words:
        if w.startswith("@"):
            if w[1:] not in t["sets"]:
                raise Bad(f"{where}: there is no set {w}")
            out += expand(t, known, t["sets"][w[1:]], w)
        elif w not in known:
            raise Bad(f"{where}: {w} is no code")
        elif not gen_status.is_live(known[w]):
            raise Bad(f"{where}: {w} is provisional or retired")
        else:
            out.append(w)
    return out


def load(status_path, path):
    """Codes by function, in the order of status.toml; the status table; the quiet codes; the lists as they stand in the file."""
    status = gen_status.load(status_path)
    known = {s["name"]: s for s in status["status"]}
    with open(path, "rb") as f:
        t = tomllib.load(f)
    for name in t["sets"]:
        expand(t, known, t["sets"][name], f"set {name}")
    lists = {}
    for name, call in t["calls"].items():
        for key in call:
            if key not in ("codes", "library"):
                raise Bad(f"{name}: unknown field {key}")
        for w in call["codes"]:
            if call["codes"].count(w) > 1:
                raise Bad(f"{name}: {w} stands twice")
        words = expand(t, known, call["codes"] + (t["always"] if call.get("library") else []), name)
        lists[name] = [s["name"] for s in status["status"] if s["name"] in words]
        if "UMD_SUCCESS" in words:
            raise Bad(f"{name}: success needs no place in a list")
    return lists, status, set(expand(t, known, t["quiet"], "quiet")), t


def table(lists, status, *_):
    by_value = sorted(status["status"], key=lambda s: s["value"])
    index = {s["name"]: i for i, s in enumerate(by_value)}
    words = (len(by_value) + 63) // 64
    o = ["/* SPDX-License-Identifier: MIT */", "/* Generated from api_codes.toml by gen_api_codes.py: by name; a bit per row of the status table. */",
         f"#define CODE_WORDS {words}", f"#define CODE_ROWS {len(by_value)}u",
         "static const struct { const char *name; uint64_t codes[CODE_WORDS]; } api_rows[] = {"]
    for name in sorted(lists):
        bits = [0] * words
        for code in lists[name]:
            bits[index[code] // 64] |= 1 << index[code] % 64
        o.append(f"    {{ \"{name}\", {{ {', '.join(f'0x{b:016x}ull' for b in bits)} }} }},")
    return "\n".join(o + ["};", ""])


def docs(lists, status, quiet, t):
    known = {s["name"]: s for s in status["status"]}
    cell = lambda words: ", ".join(f"*{w[1:]}*" if w.startswith("@") else f"`{w}`" for w in words) or "none"
    o = ["# What each call returns", "", "Generated from `umd/diag/api_codes.toml` by `tools/gen/gen_api_codes.py`; edit the table, not this page.", "",
         "Beside `UMD_SUCCESS` a call returns the codes of its row and no other: its exit checks that, and anything else leaves as",
         "`UMD_ERR_INTERNAL_CODE` with the raw value in the record. Positive codes, which are no failures, come only from the calls that list them.",
         "What a code means and what to do about it: [status-codes.md](status-codes.md), or `umd-explain NAME`.", "",
         "Where a call needs a healthy context (*alive*), the failure of a job of that context comes from the first call that meets it, with the",
         "job's code (*failure*); calls after it return `UMD_ERR_CTX_BANNED`.", "", "## Sets", "", "| set | codes |", "|---|---|"]
    o += [f"| *{name}* | {cell(words)} |" for name, words in t["sets"].items()]
    o += ["", "## By call", "", "| call | no failure | failures |", "|---|---|---|"]
    for name, call in t["calls"].items():
        positive = [c for c in lists[name] if known[c]["value"] > 0]
        words = [w for w in call["codes"] + (t["always"] if call.get("library") else []) if w not in positive]
        o.append(f"| `{name}` | {cell(positive)} | {cell(words)} |")
    o += ["", "## By code", "", "| codes | come from |", "|---|---|"]
    rows = {}
    for s in status["status"]:
        if gen_status.is_live(s) and s["value"]:
            rows.setdefault(tuple(name for name, codes in lists.items() if s["name"] in codes), []).append(s["name"])
    for callers, codes in rows.items():
        rest = [n for n in lists if n not in callers]
        where = "records, callbacks and the kernel driver's own interface; no call returns them" if not callers else cell(callers)
        o.append(f"| {cell(codes)} | {'all but ' + cell(rest) if len(rest) < len(callers) else where} |")
    return "\n".join(o + [""])


def main():
    kinds = {"table": table, "docs": docs}
    if len(sys.argv) != 5 or sys.argv[3] not in kinds:
        sys.exit(__doc__)
    try:
        text = kinds[sys.argv[3]](*load(sys.argv[1], sys.argv[2]))
    except (Bad, gen_status.Bad, tomllib.TOMLDecodeError) as e:
        sys.exit(f"{sys.argv[2]}: {e}")
    with open(sys.argv[4], "w") as f:
        f.write(text)


if __name__ == "__main__":
    main()
