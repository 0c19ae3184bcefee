# SPDX-License-Identifier: BSD-3-Clause
"""coroutines keep to the forms that GCC 12 compiles correctly

Each form below was seen to miscompile or to dangle: a lambda's captures die with the lambda while its frame lives on; a
co_await inside a condition, or beside a braced temporary, puts a temporary into the wrong frame.
"""
import re

import _rule


def body_after(code, offset):
    """The text of the braces that open at or after offset."""
    start = code.find("{", offset)
    depth = 0
    for position in range(start, len(code)):
        depth += {"{": 1, "}": -1}.get(code[position], 0)
        if depth == 0:
            return code[start:position + 1]
    return code[start:]


def lambdas_with_captures(code):
    for match in re.finditer(r"(?<![\w)\]\[])\[([^\[\]]+)\]\s*(?:\([^()]*(?:\([^()]*\)[^()]*)*\))?[^;{}()]*\{", code):
        if match[1].strip() and not re.match(r"\[", code[match.start() + 1:match.start() + 2]):
            yield match.start(), body_after(code, match.end() - 1)


def statements(code):
    """(offset, text) between ; { and }, so a statement with a braced temporary falls apart where the brace is."""
    for match in re.finditer(r"[^;{}]*co_await[^;]*;", code):
        yield match.start(), match[0]


for path in _rule.below("src", "simgpu", "tests", "bench", suffixes=(".cpp", ".hpp")):
    code = _rule.without_comments(_rule.text(path))
    if "co_await" not in code and "co_return" not in code:
        continue
    for offset, body in lambdas_with_captures(code):
        if re.search(r"\bco_(await|return|yield)\b", body):
            _rule.finding(path, _rule.line_of(code, offset), "a capturing lambda is a coroutine: pass what it needs as parameters")
    for offset, statement in statements(code):
        line = _rule.line_of(code, offset + len(statement) - len(statement.lstrip()))
        if re.match(r"\s*#\s*define", statement):
            continue
        if re.search(r"\bswitch\s*\([^{]*co_await", statement):
            _rule.finding(path, line, "co_await in a switch condition: await into a variable first")
        if re.search(r"\?[^:?]*co_await|co_await[^;?]*\?[^:]*:(?!:)", statement):
            _rule.finding(path, line, "co_await in a conditional expression: use if and else")
        if re.search(r"\(\{[^}]*co_await", statement):
            _rule.finding(path, line, "co_await in a statement expression")
        awaited = statement[statement.index("co_await"):]
        if re.search(r"[\w>(,]\s*\{(?!\s*\})[^{}]*\}\s*[,)]", awaited) or re.search(r"[(,]\s*\{[^{}]*\}", awaited):
            _rule.finding(path, line, "a braced temporary in an awaiting expression: name it first")
        if re.search(r"(=\s*|return\s*|\w)\{[^{}]*$", statement[:statement.index("co_await")]) and re.search(
                r"\{[^{};]*co_await[^{};]*\}", statement):
            _rule.finding(path, line, "co_await in an initialiser list: await into a variable first")
    for match in re.finditer(r"\bTask<[^;={}]*>\s+\w+\s*=[^;{}]*\?[^;{}]*;", code):
        _rule.finding(path, _rule.line_of(code, match.start()), "a task made in a conditional expression: its arguments go wrong; use if and else")
_rule.finish()
