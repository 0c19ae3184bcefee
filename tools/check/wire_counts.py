# SPDX-License-Identifier: BSD-3-Clause
"""the table of docs/wire.md section 5 shows the rows of tests/world/wire_count_test.cpp

The test holds the numbers. `python3 tools/check/wire_counts.py --write` puts its rows into the page.
"""
import re
import sys

import _rule

PAGE = _rule.ROOT / "docs" / "wire.md"
TEST = _rule.ROOT / "tests" / "world" / "wire_count_test.cpp"
WAYS = {"self": "to oneself", "exposed": "network, exposed from 64 KiB", "one gpu": "node, one GPU (H200)", "gpudirect": "GPUDirect",
        "gpudirect at the sender": "GPUDirect at the sender"}
HEAD = "| way | ends | size | protocol | data | control | chunks | registrations |"


def size(expression):
    """'17 * kKiB + 1' as the page says it: '17 KiB + 1'."""
    text = re.sub(r"(?<!\* )k([KM]iB)", r"1 * k\1", expression).replace("* k", "")
    return text if "iB" in text else f"{text} B"


def rows_of_the_test():
    for way, source, sink, count, travels in re.findall(r'^ *\{"([^"]+)", ([HD]), ([HD]), ([^,"]+),\s*"([^"]+)"\},$', _rule.text(TEST), re.M):
        cells = " | ".join(cell.replace(", ", " / ").replace(" -> ", " then ") for cell in travels.split(" | "))
        yield f"| {WAYS.get(way, way)} | {source} to {sink} | {size(count)} | {cells} |"


if PAGE.exists() and TEST.exists():
    lines = _rule.text(PAGE).splitlines()
    begin = lines.index(HEAD) + 2 if HEAD in lines else len(lines)
    end = next((at for at in range(begin, len(lines)) if not lines[at].startswith("|")), len(lines))
    wanted = list(rows_of_the_test())
    if "--write" in sys.argv and HEAD in lines:
        PAGE.write_text("\n".join(lines[:begin] + wanted + lines[end:]) + "\n")
    elif lines[begin:end] != wanted or not wanted:
        shown = lines[begin:end]
        at = next((i for i, row in enumerate(wanted) if shown[i:i + 1] != [row]), len(wanted))
        row = f"'{wanted[at]}'" if at < len(wanted) else "no further row"
        _rule.finding(PAGE, min(begin + at + 1, len(lines)), f"the test has here {row}: run tools/check/wire_counts.py --write")
_rule.finish()
