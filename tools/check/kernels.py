# SPDX-License-Identifier: BSD-3-Clause
"""the committed PTX is what clang-19 makes of the kernels today"""
import itertools
import sys

import _rule
import ptx
import setup
from console import Failure

NOT_RUN = 77


def first_difference(old, new):
    pairs = itertools.zip_longest(old.splitlines(), new.splitlines())
    return next((number for number, (left, right) in enumerate(pairs, 1) if left != right), 1)


if setup.kernel_compiler() is None:
    print("not run: there is no clang-19 (Debian's package of that name)")
    sys.exit(NOT_RUN)
for orphan in {file for folder in ptx.FOLDERS for file in folder.glob("ptx/*.ptx")} - {ptx.committed(source) for source in ptx.sources()}:
    _rule.finding(orphan, 1, "no source beside it makes this file")
for source in ptx.sources():
    target = ptx.committed(source)
    old = target.read_text() if target.exists() else ""
    try:
        new = ptx.text_of(source)
    except Failure as failure:
        _rule.finding(source, 1, str(failure))
        continue
    if old != new:
        _rule.finding(target, first_difference(old, new), f"not what clang-19 makes of {source.name}: ./dev ptx writes it")
_rule.finish()
