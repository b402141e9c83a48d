#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# gen_isa.py - from rv64.def, csr.def and insn.h: the instruction list inside docs/isa.md; checks that the page is whole.
"""usage: gen_isa.py RV64.DEF CSR.DEF INSN.H ISA.MD write
       gen_isa.py RV64.DEF CSR.DEF INSN.H ISA.MD check PETREL_CSR.H PETREL_DEVICE_OPS.H OPS_CASES.H KERNELS_OPS.C"""
import re
import sys

ROW = re.compile(r'RV\((\w+),\s*"([^"]+)",\s*0x([0-9a-f]{8}),\s*0x([0-9a-f]{8}),\s*(\w+),\s*(\w+),\s*(\w+)\)$')
RVC = re.compile(r'RVC\((\w+),\s*"([^"]+)",\s*0x([0-9a-f]{4}),\s*0x([0-9a-f]{4}),\s*(\w+),\s*"([^"]{3})",\s*"([^"]*)",\s*"([^"]*)",\s*(\w+)\)$')
CSR = re.compile(r'CSR\((\w+),\s*(0x[0-9a-f]{3}),\s*"(\w+)",\s*(\w+)\)$')
INSN = re.compile(r"\.insn r 0x0b, (\d+), (?:(\d+),|\" #f7_ \")")
WRAPPER = re.compile(r"#define (PETREL_\w+_)\(f7_")
FUNCTION = re.compile(r"^PETREL_(?:INLINE|CONVERGENT)_ .*?\b(petrel_\w+)\(|^PETREL_ID_\((petrel_\w+),", re.M)
SECTION = re.compile(r"/\* (.+) \*/$")
FORMAT = re.compile(r"\s*CU_FMT_(\w+),\s*/\*\*< (.+) \*/$")
LATENCIES = re.compile(r"enum cu_latency \{([^}]*)\}")
BEGIN, END = "<!-- begin: gen_isa.py instructions -->", "<!-- end: gen_isa.py instructions -->"
REGISTERS = {"d": "11:7", "D": "8 + 9:7", "s": "6:2", "S": "8 + 4:2", "0": "x0", "1": "x1", "2": "x2"}
RULES = {"i": "immediate not 0", "d": "11:7 not 0", "t": "6:2 not 0"}


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
    """Sections in order: (title, rows, compressed rows)."""
    sections, seen, ids = [], set(), {}
    for number, line in enumerate(read(path).splitlines(), 1):
        where = f"{path}:{number}"
        title = SECTION.match(line)
        if title and number > 2: # behind the licence and what the file is for
            sections.append((title.group(1), [], []))
        if not line.startswith(("RV(", "RVC(")):
            continue
        row = ROW.match(line) or RVC.match(line)
        if not row or not sections:
            sys.exit(f"{where}: not a row under a section: {line}")
        ident, mnemonic, match, mask, *rest = row.groups()
        match, mask = int(match, 16), int(mask, 16)
        if mnemonic in seen:
            sys.exit(f"{where}: {mnemonic} stands twice")
        if match & ~mask:
            sys.exit(f"{where}: {mnemonic}: match has bits outside of mask")
        seen.add(mnemonic)
        if line.startswith("RVC("):
            if rest[4] not in ids:
                sys.exit(f"{where}: {mnemonic} stands for {rest[4]}, which is no row")
            sections[-1][2].append((mnemonic, match, mask, *rest[:4], ids[rest[4]]))
            continue
        fmt, _, latency = rest
        if fmt not in formats or latency not in latencies:
            sys.exit(f"{where}: {mnemonic}: format {fmt} or latency {latency} is not in insn.h")
        ids[ident] = mnemonic
        sections[-1][1].append((mnemonic, match, mask, fmt, latency))
    return [s for s in sections if s[1] or s[2]]


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


def full_rows(rows, formats):
    o = ["| mnemonic | operands | match | mask | fields | format | class |", "|---|---|---|---|---|---|---|"]
    for mnemonic, match, mask, fmt, latency in rows:
        operands, fields = formats[fmt].split(", "), fixed_fields(match, mask)
        if any(f.startswith("f ") for f in operands) and not mask & 0x7000:
            fields += ", rm"
        operands = ", ".join(f for f in operands if not (f.endswith(" rs2") and mask & 0x01f00000))
        o.append(f"| `{mnemonic}` | {operands} | `{match:#010x}` | `{mask:#010x}` | {fields} | {fmt} | {latency} |")
    return o


def compressed_rows(rows):
    o = ["| mnemonic | match | mask | stands for | rd | rs1 | rs2 | immediate | not where |", "|---|---|---|---|---|---|---|---|---|"]
    for mnemonic, match, mask, fmt, registers, immediate, rules, full in rows:
        regs = " | ".join(REGISTERS.get(r, "") for r in registers)
        imm = f"{fmt} {immediate}{' signed' if 's' in rules else ''}".replace("|", "\\|") if immediate else ""
        never = "; ".join(RULES[r].replace(" not", "") for r in rules if r in RULES)
        o.append(f"| `{mnemonic}` | `{match:#06x}` | `{mask:#06x}` | `{full}` | {regs} | {imm} | {never} |")
    return o


def page(sections, formats):
    count, compressed = (sum(len(s[k]) for s in sections) for k in (1, 2))
    o = [f"Made by `tools/gen/gen_isa.py` from `hw_model/cu/rv64.def`: {count} instructions of 32 bits, {compressed} of 16.", "",
         "An instruction word w is the first one with `w & mask == match`. *Fields* say the same in terms of the encoding: op",
         "is bits 6 to 0, f3 bits 14 to 12; f7, f6 and f5 are the upper bits from 25, 26 and 27, fmt is bits 26 and 25. `rm`",
         "stands where f3 holds a rounding mode. *Class* is the latency class, see [time](#time).", "",
         "A compressed instruction is carried out as the one it *stands for*. Its columns say which bits are the number of a",
         "register (11:7; 8 + 9:7 names x8 to x15), and which bits of the immediate lie where its format (CI, CL and so on, as",
         "in the manual) has them, from the highest down. *Not where*: these encodings are another instruction or none.", ""]
    for title, rows, short in sections:
        o += [f"### {title[0].upper()}{title[1:]}", ""]
        o += full_rows(rows, formats) if rows else []
        o += compressed_rows(short) if short else []
        o.append("")
    return "\n".join(o)


def split(path):
    """The page before, between and behind the markers."""
    text = read(path)
    if text.count(BEGIN) != 1 or text.count(END) != 1 or text.index(BEGIN) > text.index(END):
        sys.exit(f"{path}: needs `{BEGIN}` and `{END}`, once each")
    head, rest = text.split(BEGIN)
    middle, tail = rest.split(END)
    return head, middle, tail


def missing_rows(def_path, text):
    """Rows of the table that the page lacks, found without the parser above: by the words of each line."""
    rows = [set(re.findall(r"`([^`]+)`", line)) for line in text.splitlines() if line.startswith("| `")]
    lines = [line for line in read(def_path).splitlines() if line.startswith(("RV(", "RVC("))]
    wanted = [[line.split('"')[1]] + line.split('"')[2].replace(" ", "").split(",")[1:3] for line in lines]
    errors = [f"row {' '.join(w)} is not on the page" for w in wanted if not any(set(w) <= row for row in rows)]
    if len(rows) != len(lines):
        errors.append(f"{len(lines)} rows in the table, {len(rows)} on the page")
    return errors


def check_registers(csr_path, header_path, isa_path, isa):
    rows = [CSR.match(line) for line in read(csr_path).splitlines() if line.startswith("CSR(")]
    header = dict(re.findall(r"#define PETREL_CSR_(\w+)\s+(0x[0-9a-f]+)", read(header_path)))
    if not rows or None in rows or not header:
        return [f"{csr_path} or {header_path}: no registers found, or a row that is none"]
    items = {m.group(1): m.group(2) for m in rows if m.group(4) == "ITEM"}
    errors = [f"{csr_path} and {header_path} differ in {', '.join(sorted(n for n, _ in set(items.items()) ^ set(header.items())))}"]
    errors = errors if items != header else []
    for ident, number, name, kind in (m.groups() for m in rows):
        shown = ident if kind == "ITEM" else name
        if kind != "BARE" and not any(number in line and f"`{shown}`" in line for line in isa.splitlines()):
            errors.append(f"{isa_path}: {shown} {number} is not explained")
    return errors


def check_functions(sections, ops_path, test_paths):
    """The header's functions make the custom-0 instructions that the table has, all of them; the test's kernel calls each function."""
    text = read(ops_path)
    rows = {(match >> 12 & 7, match >> 25): m for title, full, _ in sections if title.startswith("custom-0") for m, match, *_ in full}
    made, groups, wrapper = {}, {}, None
    for line in text.splitlines():
        define, insn = WRAPPER.match(line), INSN.search(line)
        wrapper = define.group(1) if define else wrapper
        if insn and insn.group(2) is None:
            groups[wrapper] = int(insn.group(1))
        elif insn:
            made[int(insn.group(1)), int(insn.group(2))] = line
    for name, f3 in groups.items():
        made.update({(f3, int(f7)): name for f7 in re.findall(name + r"\((\d+)", text)})
    errors = [f"{ops_path}: f3 {f3}, f7 {f7} is no instruction of the table" for f3, f7 in sorted(set(made) - set(rows))]
    errors += [f"{ops_path}: no function makes {rows[key]}" for key in sorted(set(rows) - set(made))]
    functions = [a or b for a, b in FUNCTION.findall(text)]
    called = "".join(map(read, test_paths))
    errors += [f"{test_paths[0]}: {name} is not called" for name in functions if not re.search(rf"\b{name}\(", called)]
    return errors if functions and rows else [f"{ops_path}: no functions found"]


def check(sections, formats, def_path, csr_path, isa_path, header_path, ops_path, *test_paths):
    head, middle, tail = split(isa_path)
    errors = []
    if middle != "\n" + page(sections, formats):
        errors.append(f"{isa_path}: the list is not what gen_isa.py makes of the table; run it with `write`")
    errors += missing_rows(def_path, middle)
    for title, rows, _ in sections:
        if title.startswith("custom-0"):
            errors += [f"{isa_path}: {m} is not explained" for m, *_ in rows if f"`{m}`" not in head + tail]
    errors += check_registers(csr_path, header_path, isa_path, head + tail)
    errors += check_functions(sections, ops_path, test_paths)
    if errors:
        sys.exit("\n".join(errors))


def main():
    a = sys.argv[1:]
    if not (len(a) == 5 and a[4] == "write" or len(a) == 9 and a[4] == "check"):
        sys.exit(__doc__)
    formats, latencies = load_formats(a[2])
    sections = load(a[0], formats, latencies)
    if a[4] == "check":
        check(sections, formats, a[0], a[1], a[3], *a[5:])
        return
    head, _, tail = split(a[3])
    with open(a[3], "w", encoding="utf-8") as f:
        f.write(head + BEGIN + "\n" + page(sections, formats) + END + tail)


main()
