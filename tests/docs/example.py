# SPDX-License-Identifier: MIT
"""example.py - the assembly of docs/isa.md is the first part of the kernels that the tests run. usage: example.py ISA.MD NOTE_KERNELS.S"""
import re
import sys


def main():
    page, source = (open(path, encoding='utf-8').read() for path in sys.argv[1:3])
    shown = re.findall(r'^```asm\n(.*?)^```$', page, re.M | re.S)
    ran = re.findall(r'^/\* begin: isa\.md \*/\n(.*?)^/\* end: isa\.md \*/$', source, re.M | re.S)
    if len(shown) == 1 and shown == ran:
        return 0
    print(f'{sys.argv[1]}: its example ({len(shown)} found) is not what stands between the marks of {sys.argv[2]} ({len(ran)} found)', file=sys.stderr)
    return 1


sys.exit(main())
