#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# manners.py - help, man page and completion of each tool tell the same options, and the tool answers as all do.
"""usage: manners.py tool NAME PROGRAM COMPLETION [PAGE] | words COMPLETIONS PROGRAM... | selftest NAME PROGRAM COMPLETION [PAGE]"""
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile

OPTION = re.compile(r"(?<![\w-])(--[a-z][a-z-]*|-[A-Za-z])(?![\w-])")


def run(*words, **env):
    return subprocess.run(words, capture_output=True, text=True, check=False, env={**os.environ, "NO_COLOR": "1", **env})


def options_in(lines):
    """Options that lines begin with: those that are described, not those that are spoken of."""
    found = set()
    for line in lines:
        head = re.match(r" {0,10}(-[^\s,]+(?:, -\S+)*)", line)
        found |= set(OPTION.findall(re.sub(r"[=\[].*?(?=,|$)", "", head[1]).replace("...", ""))) if head else set()
    return found


def help_of(program, *command):
    r = run(program, *command, "--help")
    assert r.returncode == 0 and not r.stderr, f"{command} --help: {r}"
    return r.stdout


def options_of_help(text):
    return options_in(text.splitlines())


def plain(roff):
    """A line of a page as it is read."""
    return re.sub(r"\\f\(?[A-Z]{1,2}|\\[,/&]", "", re.sub(r"\\f(\(CW|[A-Z])", "", roff)).replace("\\-", "-")


def sections_of(page):
    """Title -> options that it describes; everything before the first command's section is that of ''."""
    found, title, tag = {"": set()}, "", False
    for line in open(page, encoding="utf-8"):
        if line.startswith(".SH"):
            command = re.match(r'\.SH "?UMD-LOG ([A-Z]+)"?', line)
            title = command[1].lower() if command else ""
            found.setdefault(title, set())
        elif line.startswith((".TP", ".HP")):
            tag = True
        elif tag:
            found[title] |= options_in([plain(line.rstrip("\n"))])
            tag = False
    return found


def complete(completion, program, *words):
    """What bash would offer for the last of the words, by the file that is installed."""
    script = ('source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); '
              'function=$(complete -p "${1##*/}"); function=${function#*-F }; "${function%% *}" "$1" "${COMP_WORDS[-1]}"; '
              '[ ${#COMPREPLY[@]} -eq 0 ] || printf "%s\\n" "${COMPREPLY[@]}"')
    r = run("bash", "-c", script, "bash", completion, program, *words)
    assert r.returncode == 0 and not r.stderr, r
    return r.stdout.split("\n")[:-1]


def commands_of(program):
    """The commands that have options of their own."""
    text = help_of(program)
    if "--help-all" not in text:
        return []
    return re.findall(r"^  ([a-z]+)  +\S", re.search(r"^Commands:\n((?:  .*\n)+)", text, re.M)[1], re.M)


def compare(name, where, told, wanted):
    assert told == wanted, f"{name}: {where} lacks {sorted(wanted - told)} and has {sorted(told - wanted)} that --help has not"


def check_options(name, program, completion, page):
    for command in [[], *([c] for c in commands_of(program))]:
        wanted = options_of_help(help_of(program, *command))
        assert "--help" in wanted, f"{name} {command}: --help does not tell of itself"
        offered = [*complete(completion, program, *command, "-")]
        assert len(offered) == len(set(offered)), f"{name}: offered twice: {offered}"
        compare(name, f"completion of {command}", set(offered), wanted)
        if page:
            compare(name, f"the page's part on {command}", sections_of(page)[command[0] if command else ""],
                    wanted - ({"--help", "--version", "-h", "-V"} if command else set()))


def check_page(name, page):
    text = open(page, encoding="utf-8").read()
    for title in ("NAME", "SYNOPSIS", "DESCRIPTION", "EXAMPLES"):
        assert re.search(rf"^\.SH {title}$", text, re.M), f"{name}: the page has no {title}"
    assert re.search(rf"^{name} \\- [a-z]", text, re.M), f"{name}: NAME does not say what it is for"
    for lint in (["man", "--warnings", "-l"], ["groff", "-man", "-ww", "-Tascii", "-z"], ["mandoc", "-Tlint", "-Wwarning"]):
        if shutil.which(lint[0]):
            r = run(*lint, page, MANPAGER="cat", MANROFFOPT="", LC_ALL="C.UTF-8")
            said = r.stderr + (r.stdout if lint[0] == "mandoc" else "")
            assert r.returncode == 0 and not said, f"{' '.join(lint)}: {said}"


def check_answers(name, program):
    text = help_of(program)
    assert re.match(rf"Usage: {name} ", text), "the usage comes first"
    assert re.search(r"^Examples?:", text, re.M), "no example"
    assert all(len(line) <= 132 for line in text.splitlines()), "lines too long"
    version = run(program, "--version")
    assert version.returncode == 0 and re.fullmatch(rf"{name} \d+\.\d+\.\d+\n", version.stdout) and not version.stderr, version
    bad = run(program, "--no-such-option")
    assert bad.returncode == 1 and not bad.stdout and re.fullmatch(rf"{name}: .*--no-such-option.*{name}(?: \w+)? --help\n", bad.stderr), bad


def check_quiet(name, program, completion):
    """The shell asks while a line is typed: nothing is done, whatever the settings ask for."""
    was = os.getcwd()
    with tempfile.TemporaryDirectory() as folder:
        settings = {"UMD_LOG_FILE": folder + "/log", "UMD_EMERGENCY_FILE": folder + "/ring", "PETREL_STATE_DIR": folder + "/state"}
        os.environ.update(settings)
        os.chdir(folder)
        for words in ([""], ["-"], ["--json", ""], ["x", "y", "--"], ["list", "x"], ["mlp", "--log", ""]):
            complete(completion, program, *words)
        assert not os.listdir(folder), f"{name}: {os.listdir(folder)} came of a question"
        os.chdir(was)
        for key in settings:
            del os.environ[key]


LOOK_AT_OTHERS = ("umd-crash", "umd-explain", "umd-info", "umd-inject", "umd-log")


def check_leaves_alone(name, program):
    """With the settings of the program that one looks for, its emergency file stays what and where it is."""
    if name not in LOOK_AT_OTHERS:
        return
    with tempfile.TemporaryDirectory() as folder:
        ring = os.path.join(folder, "ring")
        with open(ring, "w", encoding="utf-8") as f:
            f.write("theirs")
        run(program, "--version", UMD_EMERGENCY_FILE=ring, UMD_CRASH_DIR=folder + "/crashes")
        assert os.listdir(folder) == ["ring"], f"{name}: {os.listdir(folder)}"
        with open(ring, encoding="utf-8") as f:
            assert f.read() == "theirs", f"{name} has written into the emergency file of another"


def check_words(folder, programs):
    """What the tools themselves list is what is offered."""
    p = {os.path.basename(x): x for x in programs}

    def offered(name, *words):
        return complete(os.path.join(folder, name), p[name], *words)

    def listed(name, *words):
        return json.loads(run(p[name], *words).stdout)

    codes = sorted(x["name"] for x in listed("umd-explain", "--list", "--json"))
    sites = sorted(x["site"] for x in listed("umd-inject", "list", "--json"))
    assert sorted(offered("umd-log", "")) == sorted(commands_of(p["umd-log"])) and "show" in offered("umd-log", "sh")
    assert sorted(offered("umd-explain", "")) == codes and len(codes) > 80
    assert offered("umd-explain", "UMD_ERR_MEM_FRAG") == ["UMD_ERR_MEM_FRAGMENTED"]
    assert sorted(offered("umd-inject", "")) == ["check", "list"] and len(sites) > 20
    was = os.getcwd()
    with tempfile.TemporaryDirectory() as empty:
        os.chdir(empty)
        assert sorted(offered("umd-inject", "check", "")) == sites and offered("umd-inject", "list", "") == []
        assert sorted(offered("umd-train", "mlp", "--faults", "")) == sites
        open("a.log", "w", encoding="utf-8").close()
        assert offered("umd-log", "show", "a") == ["a.log"] and offered("umd-log", "show", "--level", "warn", "") == ["a.log"]
        assert offered("umd-crash", "pack", "-o", "a") == offered("umd-crash", "pack", "--output", "=", "a") == ["a.log"]
        os.chdir(was)
    assert sorted(offered("umd-case", "")) == sorted(["list", *(x["case"] for x in listed("umd-case", "list", "--json"))])
    assert offered("umd-log", "show", "--level", "wa") == offered("umd-log", "show", "--level", "=", "wa") == ["warn"]
    assert "debug" in offered("umd-log", "show", "--level", "=") and "warn" in offered("umd-log", "show", "-jl", "")
    assert offered("umd-log", "errors", "--code", "UMD_ERR_MEM_FRAG") == ["UMD_ERR_MEM_FRAGMENTED"]
    assert offered("umd-log", "errors", "--code", "hw,UMD_ERR_MEM_FRAG") == ["hw,UMD_ERR_MEM_FRAGMENTED"]
    assert "umd.mem" in offered("umd-log", "sites", "--module", "umd.m") and offered("umd-log", "sites", "--module", "zz") == []
    assert sorted(offered("umd-train", "--mode", "")) == ["functional", "stepped", "threaded"] and offered("umd-train", "") == ["mlp"]
    assert offered("umd-train", "mlp", "--mode", "stepped,f") == ["stepped,functional"]
    assert offered("umd-log", "show", "--", "-") == [] and offered("umd-log", "show", "--no-such=", "x") == []


def check_values(programs):
    """One way to say that a value is wrong; of an option that comes again the last counts; a list gathers all."""
    p = {os.path.basename(x): x for x in programs}
    for name, words, option, text in (("umd-crash", ["show", "--timeout=0"], "timeout", "0"), ("umd-crash", ["pack", "--timeout", "1s"], "timeout", "1s"),
                                      ("umd-log", ["show", "--tail", "-1"], "tail", "-1"), ("umd-log", ["sites", "-p", ""], "pid", ""),
                                      ("umd-log", ["level", "info", "--pid=18446744073709551616"], "pid", "18446744073709551616"),
                                      ("umd-train", ["mlp", "--batch", "8", "--batch", "8.5"], "batch", "8.5")):
        r = run(p[name], *words)
        where = name + (" " + words[0] if name == "umd-log" else "")
        assert r.returncode == 1 and not r.stdout and re.fullmatch(
            rf"{name}: --{option} is '{re.escape(text)}', not a whole number from \d+ to \d+; try {where} --help\n", r.stderr), (words, r)
    for words in (["mlp", "--lr", "0"], ["mlp", "--lr=nan"], ["mlp", "--lr", "1e9"]):
        r = run(p["umd-train"], *words)
        assert r.returncode == 1 and re.fullmatch(r"umd-train: --lr is '.*', not a number above 0 and at most 100; try umd-train --help\n", r.stderr), r
    r = run(p["umd-log"], "doctor", "--level", "warn", "--level", "loud")
    assert r.returncode == 1 and r.stderr == "umd-log: --level is 'loud', not error, warn, info, debug or trace; try umd-log doctor --help\n", r
    r = run(p["umd-explain"], "1:2:3", "--log", "/nowhere/a", "-l/nowhere/a")
    assert r.returncode == 2 and len(r.stderr.splitlines()) == 1 and "/nowhere/a" in r.stderr, r


def must_object(what, *arguments):
    try:
        check_options(*arguments)
    except AssertionError:
        return
    sys.exit(f"not noticed: {what}")


def selftest(name, program, completion, page):
    """What would be wrong is seen."""
    with tempfile.TemporaryDirectory() as folder:
        check_options(name, program, completion, page)
        text = open(completion, encoding="utf-8").read()
        for what, old, new in (("an option that completion lacks", "*) COMPREPLY+=", "--json) ;; *) COMPREPLY+="),
                               ("an option that completion makes up", "COMPREPLY=()", "COMPREPLY=(--made-up)")):
            bad = os.path.join(folder, "completion")
            assert old in text
            open(bad, "w", encoding="utf-8").write(text.replace(old, new, 1))
            must_object(what, name, program, bad, page)
        if page:
            text = open(page, encoding="utf-8").read()
            bad = os.path.join(folder, "page")
            open(bad, "w", encoding="utf-8").write(re.sub(r"\.TP\n\\fB\\-j.*\n.*\n", "", text, count=1))
            must_object("an option that the page lacks", name, program, completion, bad)
            open(bad, "w", encoding="utf-8").write(text.replace(".SH OPTIONS", ".SH OPTIONS\n.TP\n\\fB\\-\\-old\\fR\nx", 1))
            must_object("an option that only the page has", name, program, completion, bad)


def main():
    case, rest = sys.argv[1] if len(sys.argv) > 1 else "", sys.argv[2:]
    if case == "words":
        programs = [os.path.abspath(x) for x in rest[1:]]
        check_words(os.path.abspath(rest[0]), programs)
        check_values(programs)
    elif case in ("tool", "selftest") and len(rest) in (3, 4):
        name, program, completion, page = [*rest, None][:4]
        program, completion = os.path.abspath(program), os.path.abspath(completion)
        if case == "selftest":
            selftest(name, program, completion, page)
            return
        check_answers(name, program)
        check_quiet(name, program, completion)
        check_leaves_alone(name, program)
        check_options(name, program, completion, page)
        if page:
            check_page(name, page)
    else:
        sys.exit(__doc__)


try:
    main()
except AssertionError as e:
    sys.exit(f"manners.py: {e}")
