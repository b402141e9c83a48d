#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# gen_man.py - the man page of a tool out of its own --help, by help2man; of a tool with commands, out of its --help-all.
"""usage: gen_man.py HELP2MAN VERSION TOOL OUTPUT"""
import os
import re
import subprocess
import sys
import tempfile
import time

RULE = re.compile(r"^---- (.+) ----\n", re.M)      # as umd-log --help-all parts its commands


def ask(tool, option):
    return subprocess.run([tool, option], check=True, capture_output=True, text=True, env={**os.environ, "NO_COLOR": "1"}).stdout


def purpose(text):
    """The first sentence after the usage, as the page's NAME has it."""
    body = re.split(r"\n\s*\n", re.sub(r"^Usage:.*(?:\n[ \t]+\S.*)*\n", "", text).lstrip("\n"))
    sentence = re.match(r"(.*?)\.(?:\s|$)", " ".join(body[0].split()) + " ")
    name = re.sub(r" \(see .*?\)", "", sentence[1] if sentence else body[0])
    return name[0].lower() + name[1:]


def examples(text):
    """Command lines stand as they are: help2man takes lines that begin with a prompt for such."""
    return re.sub(r"^(Examples?:\n)((?:  .*\n)+)", lambda m: m[1] + re.sub(r"^  ", "  $ ", m[2], flags=re.M), text, flags=re.M)


def sections(text):
    """Paragraphs of the help that are sections of a page."""
    text = re.sub(r"^Exit status: ", "*Exit status*\n", examples(text), flags=re.M)
    text = re.sub(r"^Environment: ", "Environment:\n", text, flags=re.M)
    return re.sub(r"^Example: (.*)", r"Examples:\n  $ \1", text, flags=re.M)


def command(name, text):
    """A command's help as one section: its options stay in it, and what is the same for all is left out."""
    usage, rest = re.match(r"Usage: (.*)\n((?:.|\n)*)", text).groups()
    rest = re.sub(r"^Options:\n", "", rest, flags=re.M)
    rest = re.sub(r"^Help:\n(?:  .*\n)+\n?", "", rest, flags=re.M)
    rest = re.sub(r"^Examples?: *\n", "For example:\n", examples(rest), flags=re.M)
    return f"*{name.replace(' ', '*')}*\n{usage}\n\n{rest}"


def page(tool):
    text = ask(tool, "--help")
    if "--help-all" not in text:
        return text, sections(text)
    parts = RULE.split(ask(tool, "--help-all"))
    return text, sections(parts[0]) + "\n" + "\n".join(command(n, t.strip("\n") + "\n") for n, t in zip(parts[1::2], parts[2::2]))


def main():
    if len(sys.argv) != 5:
        sys.exit(__doc__)
    help2man, version, tool, output = sys.argv[1:]
    name = os.path.basename(tool)
    text, shown = page(tool)
    with tempfile.TemporaryDirectory() as folder:
        teller = os.path.join(folder, name)        # help2man asks a program: one that tells what was prepared
        with open(os.path.join(folder, "text"), "w", encoding="utf-8") as f:
            f.write(shown)
        with open(teller, "w", encoding="utf-8") as f:
            f.write(f"#!/bin/sh\ncat '{folder}/text'\n")
        os.chmod(teller, 0o755)
        made = subprocess.run([help2man, "--no-info", "--section=1", "--name=" + purpose(text), "--version-string=" + version,
                               "--manual=Petrel", "--source=Petrel " + version, "--output=" + output, teller],
                              capture_output=True, text=True, check=False)
    if made.returncode:
        sys.exit(f"gen_man.py: {name}: {made.stderr.strip()}")
    day = time.strftime("%Y-%m-%d", time.gmtime(int(os.environ.get("SOURCE_DATE_EPOCH", time.time()))))
    with open(output, encoding="utf-8") as f:
        made_page = re.sub(r'^(\.TH \S+ "1") "[^"]*"', rf'\1 "{day}"', f.read(), count=1, flags=re.M)
    with open(output, "w", encoding="utf-8") as f:
        f.write(made_page)


main()
