# SPDX-License-Identifier: BSD-3-Clause
"""each figure of bench/results/h200-device.jsonl is there once, with all that says where it is from

A line that a newer one replaces moves to h200-device-earlier.jsonl. Fields are explained in the folder's README.
"""
import json
import re

import _rule

FOLDER = _rule.ROOT / "bench" / "results"
KEY = ("test", "placement", "bytes", "progress")
NEEDED = ("test", "placement", "bytes", "value", "unit", "floor", "page", "section", "date", "device", "gpus", "driver", "command", "commit")
NEEDED_EARLIER = ("test", "placement", "bytes", "value", "unit")


def lines_of(path):
    """(number, fields) of each line; what is no JSON object is a finding."""
    for number, text in enumerate(_rule.text(path).splitlines(), 1):
        try:
            fields = json.loads(text)
        except ValueError:
            fields = None
        if isinstance(fields, dict):
            yield number, fields
        else:
            _rule.finding(path, number, "no JSON object")


def explained():
    readme = FOLDER / "README.md"
    return set(re.findall(r"`([^`]+)`", _rule.text(readme))) if readme.exists() else set()


def check_fields(path, number, fields, needed, known):
    for name in needed:
        if name not in fields:
            _rule.finding(path, number, f"no field '{name}'")
    for name in fields:
        if name not in known:
            _rule.finding(path, number, f"field '{name}' is not explained in README.md")


known = explained()
current = FOLDER / "h200-device.jsonl"
if current.exists():
    seen = {}
    for number, fields in lines_of(current):
        check_fields(current, number, fields, NEEDED, known)
        key = tuple(fields.get(name) for name in KEY)
        if key in seen:
            _rule.finding(current, number, f"the figure of line {seen[key]} again: the older one belongs in h200-device-earlier.jsonl")
        seen.setdefault(key, number)
        page = fields.get("page")
        if page is not None and not (FOLDER / page).exists():
            _rule.finding(current, number, f"there is no page {page}")
earlier = FOLDER / "h200-device-earlier.jsonl"
if earlier.exists():
    for number, fields in lines_of(earlier):
        check_fields(earlier, number, fields, NEEDED_EARLIER, known)
_rule.finish()
