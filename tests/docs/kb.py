#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# kb.py - holds the pages of the knowledge base to what they show: runs their commands, looks for their codes and log lines.
"""usage: kb.py run --build DIR PAGE...     take the commands from the pages, run them, compare
       kb.py static                       sections, codes, index and links of docs/
       kb.py cases --build DIR            each case of umd-case is on some page
       kb.py index                        print the index by code, for README.md of the knowledge base
       kb.py selftest --build DIR         pages that are wrong are found out
Example: tests/docs/kb.py run --build build/debug docs/knowledge-base/hang.md"""
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import tomllib

sys.dont_write_bytecode = True

ROOT = pathlib.Path(__file__).resolve().parents[2]
KB = ROOT / "docs" / "knowledge-base"
sys.path.insert(0, str(ROOT / "tools" / "gen"))
from gen_kb import codes_of  # the one reader of what a page is about

CODE = re.compile(r"\bUMD_(?:(?:ERR|STATUS)_[A-Z0-9_]*[A-Z0-9]|SUCCESS)\b")
SECTIONS = ["What people see", "Codes", "In the log", "Usual causes", "Line of reasoning", "The fix", "Reproduce it here"]
RANGES = ("hw", "exec", "init", "resource")  # whose codes have to be explained somewhere
INDEX = ("<!-- by code: kb.py index -->", "<!-- end -->")
SECONDS = float(os.environ.get("KB_TIMEOUT", "300"))


class Wrong(Exception):
    pass


def table():
    with open(ROOT / "umd" / "diag" / "status.toml", "rb") as f:
        return tomllib.load(f)


# ---- A page ----

class Page:
    def __init__(self, path):
        self.path = pathlib.Path(path)
        self.text = self.path.read_text()
        self.name = self.path.name
        title = re.match(r"# (.+)\n", self.text)
        if not title:
            raise Wrong("it does not begin with a title")
        self.title = title[1]
        parts = re.split(r"^## (.+)\n", self.text, flags=re.M)
        if parts[1::2] != SECTIONS:
            raise Wrong(f"its sections are {parts[1::2]}, not {SECTIONS}")
        self.part = dict(zip(parts[1::2], parts[2::2]))
        self.codes, self.related = codes_of(self.text)
        for line in re.findall(r"^- .+$", self.part["Codes"], flags=re.M):
            if not re.search(r"\[UMD_\w+\]\(\.\./status-codes\.md\)", line):
                raise Wrong(f"no linked code in: {line}")
        if not self.codes:
            raise Wrong("it names no code")
        self.commands = [c for block in self.blocks("Reproduce it here", "sh") for c in block.splitlines() if c.strip()]
        if not self.commands:
            raise Wrong("it has no command")
        self.quotes = [q for block in self.blocks("In the log", "log") for q in block.splitlines() if q.strip()]
        if not self.quotes:
            raise Wrong("it shows no line of a log")

    def blocks(self, section, language):
        return re.findall(r"^```" + language + r"\n(.*?)^```$", self.part[section], flags=re.M | re.S)

    def check_codes(self):
        known = {s["name"]: s for s in table()["status"]}
        for name in CODE.findall(self.text):
            if name not in known:
                raise Wrong(f"{name} is no code")
        for name in self.codes + self.related:
            if known[name].get("provisional"):
                raise Wrong(f"{name} is provisional: nothing returns it")


def pages():
    return [p for p in sorted(KB.glob("*.md")) if p.name not in ("README.md", "TEMPLATE.md")]


# ---- Running a page ----

def stable(text):
    """Without what differs from run to run, and from build to build: numbers, ids of records, how text is wrapped."""
    text = re.sub(r"\b[0-9a-f]{8}:\d+:\d+", "#", text)
    text = re.sub(r"0x[0-9a-fA-F]+|\d+", "#", text)
    text = re.sub(r"#(?:[.:x]#)+", "#", text)
    return re.sub(r"\s+", " ", text)


def found(quote, seen):
    """The quote's parts occur in order, close to each other."""
    parts = [p for p in (stable(p).strip() for p in quote.split("…")) if p]
    at = seen.find(parts[0])
    while at >= 0:
        end = at + len(parts[0])
        for part in parts[1:]:
            next_at = seen.find(part, end, end + 1500)
            if next_at < 0:
                break
            end = next_at + len(part)
        else:
            return True
        at = seen.find(parts[0], at + 1)
    return False


def environment(build, folder):
    env = {k: v for k, v in os.environ.items() if not k.startswith(("UMD_", "PETREL_")) or k == "PETREL_CARRIER"}
    tools = pathlib.Path(build).resolve() / "tools"
    env["PATH"] = os.pathsep.join([str(tools), *(str(p) for p in tools.iterdir() if p.is_dir() and p.suffix != ".p"), env["PATH"]])
    env["PETREL_STATE_DIR"] = str(folder / "state")
    return env


def run_commands(page, build):
    with tempfile.TemporaryDirectory(prefix="kb.") as tmp:
        folder = pathlib.Path(tmp)
        env = environment(build, folder)
        out = ""
        for command in page.commands:
            want = int((re.search(r"#\s*exit (\d+)\s*$", command) or [0, "0"])[1])
            r = subprocess.run(["bash", "-c", command], cwd=folder, env=env, timeout=SECONDS, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, errors="replace")
            out += r.stdout + "\n"
            status = r.returncode if r.returncode >= 0 else 128 - r.returncode
            if status != want:
                raise Wrong(f"exit status {status}, not {want}, of: {command}\n{r.stdout[-4000:]}")
        for log in sorted(folder.glob("*.log*")):
            out += log.read_text(errors="replace") + "\n"
        return out


def run_page(path, build):
    page = Page(path)
    page.check_codes()
    out = run_commands(page, build)
    seen = stable(out)
    for name in page.codes:
        if not re.search(rf"\b{name}\b", out) and name != "UMD_SUCCESS":
            raise Wrong(f"{name} does not come out of its commands\n{out[-6000:]}")
    for quote in page.quotes:
        if not found(quote, seen):
            raise Wrong(f"this is not what comes out: {quote}")
    print(f"{page.name}: {len(page.commands)} commands, {len(page.codes)} codes, {len(page.quotes)} lines")


# ---- What can be checked without a run ----

def index():
    """By code: value, and the pages that show it or name it as related."""
    by_code = {}
    for path in pages():
        page = Page(path)
        for name in page.codes:
            by_code.setdefault(name, []).insert(0, f"[{page.path.stem}]({page.name})")
        for name in page.related:
            by_code.setdefault(name, []).append(f"[{page.path.stem}]({page.name})")
    rows = [s for s in table()["status"] if s["name"] in by_code]
    rows.sort(key=lambda s: (s["value"] < 0, abs(s["value"])))
    lines = ["| code | value | pages |", "|---|---|---|"]
    lines += [f"| `{s['name']}` | {s['value']} | {', '.join(by_code[s['name']])} |" for s in rows]
    return "\n".join(lines) + "\n", set(by_code)


def check_index():
    readme = (KB / "README.md").read_text()
    text, named = index()
    begin, end = readme.find(INDEX[0]), readme.find(INDEX[1])
    if begin < 0 or end < 0 or readme[begin + len(INDEX[0]):end].strip() != text.strip():
        raise Wrong("README.md: the index by code is not what the pages say; put in what kb.py index prints")
    for path in pages():
        if f"({path.name})" not in readme[:begin]:
            raise Wrong(f"README.md: {path.name} is not in the index by symptom")
    answered = set(CODE.findall(readme[end:]))
    t = table()
    bounds = {name: (r["first"], r["last"]) for name, r in t["ranges"].items()}
    for s in t["status"]:
        inside = any(bounds[r][0] <= s["value"] <= bounds[r][1] for r in RANGES)
        if inside and not s.get("provisional") and not s.get("retired") and s["name"] not in named | answered:
            raise Wrong(f"{s['name']} is on no page, and has no answer in README.md")
    known = {s["name"] for s in t["status"]}
    for name in CODE.findall(readme):
        if name not in known:
            raise Wrong(f"README.md: {name} is no code")


def slug(heading):
    heading = re.sub(r"\[([^]]*)\]\([^)]*\)", r"\1", heading).strip().lower()
    return re.sub(r"[^\w\- ]", "", heading).replace(" ", "-")


def prose(path):
    return re.sub(r"^```.*?^```$|`[^`\n]*`", "", path.read_text(), flags=re.M | re.S)


def check_links(paths):
    for path in paths:
        for target in re.findall(r"\]\(([^)\s]+)\)", prose(path)):
            if re.match(r"[a-z]+:", target):
                continue
            name, _, anchor = target.partition("#")
            there = (path.parent / name).resolve() if name else path
            if not there.exists():
                raise Wrong(f"{path.relative_to(ROOT) if path.is_relative_to(ROOT) else path}: {target} leads nowhere")
            if anchor and anchor not in {slug(h) for h in re.findall(r"^#+ (.+)$", there.read_text(), flags=re.M)}:
                raise Wrong(f"{path.name}: {target}: no such heading")


def check_static():
    tests = (ROOT / "tests" / "docs" / "meson.build").read_text()
    for path in pages():
        if f"'{path.stem}'" not in tests:
            raise Wrong(f"{path.name} has no row in tests/docs/meson.build")
        try:
            Page(path).check_codes()
        except Wrong as w:
            raise Wrong(f"{path.name}: {w}") from None
    check_index()
    check_links([ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))])


def check_cases(build):
    listed = subprocess.run(["umd-case", "list", "--json"], env=environment(build, pathlib.Path("/nonexistent")), check=True,
                            stdout=subprocess.PIPE).stdout
    text = "\n".join(c for path in pages() for c in Page(path).commands)
    for case in json.loads(listed):
        if not re.search(rf"umd-case {case['case']}\b(?!-)", text):
            raise Wrong(f"umd-case {case['case']} is on no page")


# ---- That mistakes are found ----

def selftest(build):
    good = (KB / "fork.md").read_text()
    mistakes = {
        "a code that does not come out": ("- [UMD_ERR_CTX_FORKED]", "- [UMD_ERR_HW_SPIN](../status-codes.md): x\n- [UMD_ERR_CTX_FORKED]"),
        "an unknown code": ("UMD_ERR_CTX_FORKED", "UMD_ERR_CTX_FORKD"),
        "a provisional code": ("- [UMD_ERR_CTX_FORKED]", "- [UMD_ERR_HW_POISON](../status-codes.md): x\n- [UMD_ERR_CTX_FORKED]"),
        "another word in a log line": ("used in a forked child", "used in a spoon"),
        "another figure in a log line": ("started_by_pid=", "begun_by_pid="),
        "another module in a log line": ("umd.library", "kmd.library"),
        "a command that fails": ("umd-case fork", "umd-case spoon"),
        "another exit status": ("umd-case fork\n", "umd-case fork # exit 3\n"),
        "no command": ("```sh\n", "```text\n"),
        "a section that is missing": ("## The fix\n", ""),
    }
    with tempfile.TemporaryDirectory(prefix="kb.") as tmp:
        path = pathlib.Path(tmp) / "fork.md"
        path.write_text(re.sub(r"\b1\d+\b", "77", good))
        run_page(path, build)
        for what, (old, new) in mistakes.items():
            assert old in good, what
            path.write_text(good.replace(old, new))
            try:
                run_page(path, build)
            except Wrong:
                continue
            raise Wrong(f"not found out: {what}")
        for link in ("nowhere.md", "fork.md#nowhere"):
            path.write_text(good + f"\n[x]({link})\n")
            try:
                check_links([path])
            except Wrong:
                continue
            raise Wrong(f"not found out: a link to {link}")


def main(args):
    build = args[args.index("--build") + 1] if "--build" in args[:-1] else None
    rest = [a for i, a in enumerate(args) if a != "--build" and (i == 0 or args[i - 1] != "--build")]
    what, names = (rest[0] if rest else ""), rest[1:]
    if what in ("--help", "-h"):
        print(__doc__)
        return 0
    if what == "static":
        check_static()
    elif what == "index":
        print(index()[0], end="")
    elif what in ("cases", "selftest") and build:
        check_cases(build) if what == "cases" else selftest(build)
    elif what == "run" and build and names:
        for name in names:
            try:
                run_page(name, build)
            except Wrong as w:
                raise Wrong(f"{os.path.basename(name)}: {w}") from None
    else:
        print(__doc__, file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1:]))
    except (Wrong, subprocess.TimeoutExpired) as error:
        sys.exit(f"kb.py: {error}")
