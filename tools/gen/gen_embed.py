#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
# gen_embed.py - writes a text file as a C string constant: gen_embed.py INPUT OUTPUT SYMBOL.
import sys


def main():
    if len(sys.argv) != 4:
        sys.exit("usage: gen_embed.py INPUT OUTPUT SYMBOL")
    source, target, symbol = sys.argv[1:]
    with open(source, encoding="utf-8") as f:
        lines = f.read().splitlines()
    with open(target, "w", encoding="utf-8") as f:
        f.write("/* SPDX-License-Identifier: MIT */\n/* Generated from %s by gen_embed.py. */\n" % source.split("/")[-1])
        f.write("extern const char %s[];\nconst char %s[] =\n" % (symbol, symbol))
        for line in lines:
            f.write('    "%s\\n"\n' % line.replace("\\", "\\\\").replace('"', '\\"'))
        f.write("    ;\n")


if __name__ == "__main__":
    main()
