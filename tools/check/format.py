# SPDX-License-Identifier: BSD-3-Clause
"""the sources are as clang-format 14 writes them (dev fmt)"""
import re
import subprocess
import sys

import _rule
import fmt
import setup

formatter = setup.formatter_path()
if formatter is None:
    print("clang-format 14 was not found (dev setup gets it)")
    sys.exit(1)
paths = fmt.targets([])
for start in range(0, len(paths), 100):
    done = subprocess.run([formatter, "--dry-run", *map(str, paths[start:start + 100])], text=True, capture_output=True)
    for line in done.stderr.splitlines():
        place = re.match(r"(.*?):(\d+):\d+: ", line)
        if place:
            path = next(path for path in paths if str(path) == place[1])
            _rule.finding(path, 1, "not as clang-format writes it: ./dev fmt")
_rule.finish()
