# SPDX-License-Identifier: BSD-3-Clause
"""a link between pages leads to a file and a heading that are there, and so does a page that a comment names

Links to other sites are not followed.
"""
import re
import urllib.parse

import _rule

LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
NAMED = re.compile(r"(?<![\w./-])(docs/[\w/-]+(?:\.\w+)?)")
FENCE = re.compile(r"^```.*?^```", re.S | re.M)


def anchors(page):
    """GitHub's: lower case, without punctuation, blanks become hyphens."""
    headings = re.findall(r"^#+ +(.*)$", FENCE.sub("", _rule.text(page)), re.M)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


for path in _rule.files():
    content = _rule.text(path)
    if path.suffix == ".md":
        prose = FENCE.sub(_rule._blank, content)
        for match in LINK.finditer(prose):
            place, _, heading = urllib.parse.unquote(match[1]).partition("#")
            if re.match(r"[a-z]+:", place):
                continue
            target = (path.parent / place).resolve() if place else path
            if not target.exists():
                _rule.finding(path, _rule.line_of(prose, match.start()), f"there is no {place}")
            elif heading and target.suffix == ".md" and heading not in anchors(target):
                _rule.finding(path, _rule.line_of(prose, match.start()), f"{place or 'this page'} has no heading '{heading}'")
    elif path.suffix in (".cpp", ".hpp", ".c", ".cu", ".def"):
        for match in NAMED.finditer(content):
            if not (_rule.ROOT / match[1]).exists():
                _rule.finding(path, _rule.line_of(content, match.start()), f"there is no {match[1]}")
_rule.finish()
