# SPDX-License-Identifier: BSD-3-Clause
"""nothing unfinished, no two sides of a merge, no path or host of one developer's machine, no file over 500 lines

Unfinished work is an issue, not a word in the code. Paths and hosts of one machine break on every other.
"""
import re

import _rule

# Put together here, so that this file does not find itself.
UNFINISHED = r"\b(" + "|".join(("TO" + "DO", "FIX" + "ME", "X" + "XX", "HA" + "CK")) + r")\b"
MACHINE = (r"(?<![\w.])/(work|roo" + r"t|home/\w+|Users/\w+)/|/tmp/gan" + r"try"
           r"|deb\.deb" + r"ian\.org|pypi\.o" + r"rg|files\.python" + r"hosted|registry\.np" + r"mjs")
MERGE = r"^(<{7}|>{7}) "
TEXT = (".cpp", ".hpp", ".h", ".c", ".cu", ".def", ".py", ".cmake", ".txt", ".toml", ".in", ".md", ".json", ".sh", ".yml", "")
SOURCE = (".cpp", ".hpp", ".h", ".c", ".cu", ".py", ".cmake", "")

for path in _rule.files():
    if path.suffix not in TEXT:
        continue
    content = _rule.text(path)
    if "\0" in content:
        continue
    lines = content.splitlines()
    for number, line in enumerate(lines, 1):
        if path.suffix in SOURCE and re.search(UNFINISHED, line):
            _rule.finding(path, number, "an unfinished-work word: finish it, or file an issue and name it without the word")
        if re.search(MERGE, line):
            _rule.finding(path, number, "both sides of a merge: decide for one")
        if re.search(MACHINE, line):
            _rule.finding(path, number, "a path or host of one machine")
    if path.suffix in SOURCE and len(lines) > 500:
        _rule.finding(path, len(lines), f"{len(lines)} lines: which two ideas are inside?")
_rule.finish()
