# SPDX-License-Identifier: BSD-3-Clause
"""README has at most 150 lines, and its table and chart of speed show the figures of bench/results

`bench/speed_chart` writes the chart and prints the table.
"""
import json
import re
import runpy

import _rule

LINES = 150
readme = _rule.ROOT / "README.md"
maker = _rule.ROOT / "bench" / "speed_chart"
text = _rule.text(readme) if readme.exists() else ""
if text.count("\n") > LINES:
    _rule.finding(readme, LINES + 1, f"{text.count(chr(10))} lines: a newcomer reads {LINES} at most")
if text and maker.exists():
    made = runpy.run_path(str(maker))
    columns = made["figures"]()
    rows = re.sub(r"-{3,}", "---", re.sub(r" *\| *", "|", text))
    for row in made["table"](columns).splitlines():
        if re.sub(r" *\| *", "|", row) not in rows:
            _rule.finding(readme, 1, f"the table lacks '{row}', which bench/speed_chart prints")
    chart = made["CHART"]
    shown = re.search(r"<desc>(.*)</desc>", _rule.text(chart)) if chart.exists() else None
    if not shown or json.loads(shown[1]) != columns:
        _rule.finding(chart, 1, "not the figures of bench/results: run bench/speed_chart")
_rule.finish()
