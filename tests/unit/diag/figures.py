#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# figures.py - every format that raises a record, or adds to its figures, obeys the grammar of figures in umd_diag.h.
"""usage: figures.py SOURCE_ROOT [--selftest]"""
import os
import re
import sys

# Macro or function -> which argument is the format.
CALLS = {"UMD_FAIL": 1, "UMD_FAIL_CAUSED": 1, "UMD_FAIL_ERRNO": 1, "UMD_FAIL_FROM": 2, "UMD_FAIL_SEVERITY": 3, "UMD_FAIL_ADVISED": 3, "UMD_FAIL_ADVISED_AT": 4,
         "PETREL_RAISE": 4, "PETREL_RAISE_SEVERITY": 5, "PETREL_RAISE_ADVISED": 5, "KMD_FIELD": 1, "BAD_MODULE": 0,
         "umd_figures_append": 2, "add_figure": 1}
CALL = re.compile(r"\b(" + "|".join(sorted(CALLS, key=len, reverse=True)) + r")\s*\(")
LITERAL = re.compile(r'"((?:[^"\\\n]|\\.)*)"')
CONVERSION = r"%[-+ #0']*(?:\d+|\*)?(?:\.(?:\d+|\*)?)?(?:hh|h|ll|l|j|z|t)?[diouxXeEfFgGaAcs]"
WORD = r'(?:%%|' + CONVERSION + r'|[^\s"%\\=])(?:%%|' + CONVERSION + r'|[^\s"%\\])*'
QUOTED = r'\\"(?:%%|' + CONVERSION + r'|[^"%\\])*\\"'
GLUED = re.compile(r"(?<!%)" + CONVERSION + "%[^%]")
FIGURE = re.compile(r"([a-z][a-z0-9_]*[a-zA-Z0-9]|[a-z])=(?:" + QUOTED + "|" + WORD + r")(?: |$)")


def arguments(text, at):
    """The arguments of the call whose parenthesis opens before `at`; None if it never closes."""
    depth, args, begin, i = 1, [], at, at
    while i < len(text):
        c = text[i]
        if c == '"':
            m = LITERAL.match(text, i)
            if not m:
                return None
            i = m.end()
            continue
        if c == "'":
            i = text.index("'", i + (2 if text[i + 1] == "\\" else 1) + 1) + 1
            continue
        if c in "([{":
            depth += 1
        elif c in ")]}":
            depth -= 1
            if depth == 0:
                args.append(text[begin:i].strip())
                return args
        elif c == "," and depth == 1:
            args.append(text[begin:i].strip())
            begin = i + 1
        i += 1
    return None


def join(arg):
    """The literals of a format as one text; names between them stand for what they are: PRIx64 for llx, others for a word."""
    out, i = "", 0
    while i < len(arg):
        m = LITERAL.match(arg, i)
        if m:
            out += m.group(1)
            i = m.end()
            continue
        m = re.match(r"[A-Za-z_]\w*", arg[i:])
        if m:
            name = m.group(0)
            out += "l" + name[3].lower() if name.startswith("PRI") else "word"
            i += m.end()
        elif arg[i] in " \t\n":
            i += 1
        else:
            return None
    return out


def mistake(fmt):
    """What is wrong with a format, None if nothing is."""
    at, keys = 0, set()
    if fmt.endswith(" %s"): # figures put together before
        fmt = fmt[:-3]
    while at < len(fmt):
        m = FIGURE.match(fmt, at)
        if not m:
            return f"no figure at \"{fmt[at:at + 40]}\""
        if m.group(1) in keys:
            return f"key {m.group(1)} stands twice"
        keys.add(m.group(1))
        if GLUED.search(m.group(0)):
            return f"two conversions without anything between them in \"{m.group(0)}\""
        at = m.end()
    return "it ends in a blank" if fmt.endswith(" ") else None


def strip_comments(text):
    return re.sub(r'"(?:[^"\\\n]|\\.)*"|/\*.*?\*/|//[^\n]*',
                  lambda m: m.group(0) if m.group(0)[0] == '"' else re.sub(r"[^\n]", " ", m.group(0)), text, flags=re.S)


def scan(path, text, errors):
    count = 0
    text = strip_comments(text)
    for m in CALL.finditer(text):
        line = text.count("\n", 0, m.start()) + 1
        begin = text.rfind("\n", 0, m.start()) + 1
        before = text[begin:m.start()]
        if "#" in before or re.match(r"\s*(static|UMD_API|void|umdStatus)\b[^=;]*$", before) or text[:begin].endswith("\\\n"):
            continue # a macro or its body, a declaration
        args = arguments(text, m.end())
        if args is None or len(args) <= CALLS[m.group(1)]:
            errors.append(f"{path}:{line}: cannot read the call of {m.group(1)}")
            continue
        fmt = join(args[CALLS[m.group(1)]])
        if fmt is None:
            errors.append(f"{path}:{line}: the format of {m.group(1)} is not a literal")
            continue
        count += 1
        wrong = mistake(fmt)
        if wrong:
            errors.append(f"{path}:{line}: {wrong}")
    return count


def sources(root):
    for top in ("umd", "kmd_sim", "hw_model", "tools"):
        for d, _, files in os.walk(os.path.join(root, top)):
            for f in sorted(files):
                if f.endswith((".c", ".h")) and f != "record.h":
                    yield os.path.relpath(os.path.join(d, f), root)


def selftest():
    good = [r'UMD_FAIL(A, "size_B=%zu name=\"%s\"", n, s)', r'UMD_FAIL_FROM(A, id, "a=%" PRIu64 " b=0x%x", x, f(1, 2))',
            r'UMD_FAIL_SEVERITY(A, S, id, "queue=%u", q)', 'UMD_FAIL(A, "module=" FILE " reason=version", 1)', 'UMD_FAIL(A, "range=%d..%d", 1, 2)']
    bad = ['UMD_FAIL(A, "the size is too big")', 'UMD_FAIL(A, "a=1  b=2")', 'UMD_FAIL(A, "p=%p", p)', 'UMD_FAIL(A, "%s", figures)',
           r'UMD_FAIL(A, "name=\"%s", s)', 'UMD_FAIL(A, "a=1 a=2")', 'UMD_FAIL(A, "a=1 ")', 'UMD_FAIL(A, "A=1")', 'UMD_FAIL(A, fmt)',
           'UMD_FAIL_CAUSED(A, "a=1 %s b=2", tail)', 'UMD_FAIL(A, "a= b=1")', 'UMD_FAIL(A, "a=%u%s", 1, tail)', 'UMD_FAIL_FROM(A, id, "x:1")']
    for text in good + bad:
        errors = []
        scan("selftest", text, errors)
        if bool(errors) != (text in bad):
            sys.exit(f"selftest: {'accepted' if text in bad else errors[0]}: {text}")
    print(f"selftest: {len(good)} accepted, {len(bad)} refused")


def main():
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    if "--selftest" in sys.argv:
        selftest()
        return
    root, errors, count = sys.argv[1], [], 0
    for path in sources(root):
        count += scan(path, open(os.path.join(root, path), encoding="utf-8").read(), errors)
    if count < 150:
        errors.append(f"only {count} formats found under {root}: wrong folder?")
    print("\n".join(errors) or f"{count} formats obey the grammar of figures")
    sys.exit(1 if errors else 0)


main()
