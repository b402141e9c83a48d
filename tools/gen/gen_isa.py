#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# gen_isa.py - from rv64.def and insn.h: the instruction list docs/isa-instructions.md; checks that the docs are whole.
"""usage: gen_isa.py RV64.DEF INSN.H page OUTPUT
       gen_isa.py RV64.DEF INSN.H check PAGE ISA.MD PETREL_CSR.H"""
import re
import sys

ROW = re.compile(r'RV\((\w+),\s*"([^"]+)",\s*0x([0-9a-f]{8}),\s*0x([0-9a-f]{8}),\s*(\w+),\s*(\w+),\s*(\w+)\)$')
SECTION = re.compile(r"/\* (.+) \*/$")
FORMAT = re.compile(r"\s*CU_FMT_(\w+),\s*/\*\*< (.+) \*/$")
LATENCIES = re.compile(r"enum cu_latency \{([^}]*)\}")


def read(path):
    with open(path, encoding="utf-8") as f:
        return f.read()


def load_formats(path):
    """Operand text by format, and the latency classes, as insn.h declares them."""
    text = read(path)
    formats = dict(m.groups() for m in map(FORMAT.match, text.splitlines()) if m)
    latencies = LATENCIES.search(text)
    if not formats or not latencies:
        sys.exit(f"{path}: formats or latency classes not found")
    return formats, {w.strip()[len("CU_LAT_"):] for w in latencies.group(1).split(",")} - {"COUNT"}


def load(path, formats, latencies):
    """Sections in order: (title, rows); a row is (mnemonic, match, mask, format, latency)."""
    sections, seen = [], set()
    for number, line in enumerate(read(path).splitlines(), 1):
        where = f"{path}:{number}"
        title = SECTION.match(line)
        if title and number > 2: # behind the licence and what the file is for
            sections.append((title.group(1), []))
        if not line.startswith("RV("):
            continue
        row = ROW.match(line)
        if not row or not sections:
            sys.exit(f"{where}: not a row under a section: {line}")
        _, mnemonic, match, mask, fmt, _, latency = row.groups()
        match, mask = int(match, 16), int(mask, 16)
        if mnemonic in seen:
            sys.exit(f"{where}: {mnemonic} stands twice")
        if match & ~mask:
            sys.exit(f"{where}: {mnemonic}: match has bits outside of mask")
        if fmt not in formats or latency not in latencies:
            sys.exit(f"{where}: {mnemonic}: format {fmt} or latency {latency} is not in insn.h")
        seen.add(mnemonic)
        sections[-1][1].append((mnemonic, match, mask, fmt, latency))
    return [s for s in sections if s[1]]


def fixed_fields(match, mask):
    """The fields that tell the operation from others of its opcode."""
    if mask == 0xffffffff:
        return "all bits"
    fields = [f"op {match & 0x7f:#04x}"]
    if mask & 0x7000 == 0x7000:
        fields.append(f"f3 {match >> 12 & 7}")
    top, width = mask >> 25, bin(mask >> 25).count("1")
    if top == 0x7f:
        fields.append(f"f7 {match >> 25:#04x}")
    elif top == 0x7e:
        fields.append(f"f6 {match >> 26:#04x}")
    elif top == 0x7c:
        fields.append(f"f5 {match >> 27:#04x}")
    elif top == 0x03:
        fields.append(f"fmt {match >> 25 & 3}")
    elif width:
        sys.exit(f"mask {mask:#010x}: upper bits follow no known pattern")
    if mask & 0x01f00000:
        fields.append(f"rs2 {match >> 20 & 31}")
    return ", ".join(fields)


def page(sections, formats):
    count = sum(len(rows) for _, rows in sections)
    o = ["# Instructions", "",
         "Generated from `hw_model/cu/rv64.def` and `hw_model/cu/insn.h` by `tools/gen/gen_isa.py`; edit the table,",
         "not this page. What the instructions mean is told in [isa.md](isa.md).", "",
         f"{count} instructions of 32 bits. An instruction word w is this one when `w & mask == match`. *Fields* say",
         "the same in terms of the encoding: op is bits 6 to 0, f3 bits 14 to 12; f7, f6 and f5 are the upper bits",
         "from 25, 26 and 27, fmt is bits 26 and 25. `rm` stands where f3 holds a rounding mode. *Class* is the",
         "latency class, see [isa.md](isa.md#time).", ""]
    for title, rows in sections:
        o += [f"## {title[0].upper()}{title[1:]}", "",
              "| mnemonic | operands | match | mask | fields | format | class |", "|---|---|---|---|---|---|---|"]
        for mnemonic, match, mask, fmt, latency in rows:
            operands, fields = formats[fmt].split(", "), fixed_fields(match, mask)
            if any(f.startswith("f ") for f in operands) and not mask & 0x7000:
                fields += ", rm"
            operands = ", ".join(f for f in operands if not (f.endswith(" rs2") and mask & 0x01f00000))
            o.append(f"| `{mnemonic}` | {operands} | `{match:#010x}` | `{mask:#010x}` | {fields} | {fmt} | {latency} |")
        o.append("")
    return "\n".join(o)


def missing_rows(def_path, text):
    """Rows of the table that the page lacks, found without the parser above: by the words of each line."""
    rows = [set(re.findall(r"`([^`]+)`", line)) for line in text.splitlines() if line.startswith("| `")]
    lines = [line for line in read(def_path).splitlines() if line.startswith("RV(")]
    wanted = [[line.split('"')[1]] + line.split('"')[2].replace(" ", "").split(",")[1:3] for line in lines]
    errors = [f"row {' '.join(w)} is not on the page" for w in wanted if not any(set(w) <= row for row in rows)]
    if len(rows) != len(lines):
        errors.append(f"{len(lines)} rows in the table, {len(rows)} on the page")
    return errors


def check(sections, formats, def_path, page_path, isa_path, csr_path):
    text, isa, errors = read(page_path), read(isa_path), []
    if text != page(sections, formats):
        errors.append(f"{page_path} is not what gen_isa.py makes of the table; generate it again")
    errors += missing_rows(def_path, text)
    for title, rows in sections:
        if title.startswith("custom-0"):
            errors += [f"{isa_path}: {m} is not explained" for m, *_ in rows if f"`{m}`" not in isa]
    csrs = re.findall(r"#define (PETREL_CSR_\w+)\s+(0x[0-9a-f]+)", read(csr_path))
    if not csrs:
        errors.append(f"{csr_path}: no registers found")
    for name, number in csrs:
        if not any(number in line and f"`{name[len('PETREL_CSR_'):]}`" in line for line in isa.splitlines()):
            errors.append(f"{isa_path}: {name} {number} is not explained")
    if errors:
        sys.exit("\n".join(errors))


def main():
    a = sys.argv[1:]
    if not (len(a) == 4 and a[2] == "page" or len(a) == 6 and a[2] == "check"):
        sys.exit(__doc__)
    formats, latencies = load_formats(a[1])
    sections = load(a[0], formats, latencies)
    if a[2] == "check":
        check(sections, formats, a[0], *a[3:])
        return
    with open(a[3], "w", encoding="utf-8") as f:
        f.write(page(sections, formats))


main()
