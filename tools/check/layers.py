# SPDX-License-Identifier: BSD-3-Clause
"""a layer includes only layers below it, and siblings do not include each other

The levels of ARCHITECTURE.md. `plan` decides from plain data, so of `device` and `transport` it may include facts.hpp only.
"""
import re

import _rule

LEVEL = {"base": 0, "model": 0, "layout": 1, "job": 1, "device": 2, "transport": 2, "plan": 3, "transfer": 4, "p2p": 5,
         "coll": 6, "faults": 6, "rma": 7, "io": 8, "mpi": 9, "abi": 10}
# Two layers of one level that may be used by the other: the cost model is built from base's units and status.
ALLOWED_SIBLINGS = {("model", "base")}

for path in _rule.below("src"):
    layer = path.relative_to(_rule.ROOT / "src").parts[0]
    if layer not in LEVEL:
        _rule.finding(path, 1, f"src/{layer} is no layer of ARCHITECTURE.md")
        continue
    for number, line in enumerate(_rule.text(path).splitlines(), 1):
        include = re.match(r'\s*#\s*include\s+"([a-z0-9_]+)/([^"]+)"', line)
        if not include or include[1] not in LEVEL or include[1] == layer:
            continue
        other, file = include[1], include[2]
        if LEVEL[other] > LEVEL[layer]:
            _rule.finding(path, number, f"{layer} (level {LEVEL[layer]}) includes {other} (level {LEVEL[other]}) above it")
        elif LEVEL[other] == LEVEL[layer] and (layer, other) not in ALLOWED_SIBLINGS:
            _rule.finding(path, number, f"{layer} includes its sibling {other}")
        elif layer == "plan" and LEVEL[other] >= 1 and not file.endswith("facts.hpp"):
            _rule.finding(path, number, f"plan includes {other}/{file}; only facts.hpp of other layers is plain data")
_rule.finish()
