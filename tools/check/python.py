# SPDX-License-Identifier: BSD-3-Clause
"""every Python program is one that Python can read"""
import ast

import _rule

for path in _rule.files():
    text = _rule.text(path)
    if path.suffix == ".py" or (not path.suffix and text.startswith("#!") and "python3" in text.splitlines()[0]):
        try:
            ast.parse(text)
        except SyntaxError as error:
            _rule.finding(path, error.lineno or 1, error.msg)
_rule.finish()
