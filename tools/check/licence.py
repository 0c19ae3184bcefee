# SPDX-License-Identifier: BSD-3-Clause
"""every source file says its licence in one SPDX line near its top"""
import _rule

SUFFIXES = (".cpp", ".hpp", ".h", ".c", ".cu", ".def", ".py", ".cmake", ".toml", ".in")
for path in _rule.files():
    named = path.suffix in SUFFIXES or path.name == "CMakeLists.txt"
    script = not path.suffix and _rule.text(path).startswith("#!")
    if (named or script) and not path.name.endswith(".pc.in"):
        if "SPDX-License-Identifier: BSD-3-Clause" not in "\n".join(_rule.text(path).splitlines()[:3]):
            _rule.finding(path, 1, "no line 'SPDX-License-Identifier: BSD-3-Clause' among its first three")
_rule.finish()
