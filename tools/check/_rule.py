# SPDX-License-Identifier: BSD-3-Clause
"""What the checks share: the list of our files, code without comments and strings, and how a finding is printed."""
import argparse
import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / "tools" / "dev"))
import sources  # noqa: E402

_findings = []


def arguments():
    parser = argparse.ArgumentParser()
    parser.add_argument("--preset", default="release")
    return parser.parse_args()


def files():
    return sources.files()


def below(*folders, suffixes=sources.CODE):
    """Our code below the named folders."""
    roots = [ROOT / folder for folder in folders]
    return [path for path in sources.code(suffixes) if any(root in path.parents for root in roots)]


def text(path):
    return path.read_text(errors="replace")


def _blank(match):
    """Same number of lines and columns, so that findings point at the right place."""
    return re.sub(r"[^\n]", " ", match[0])


def without_comments(code):
    """Comments and the insides of strings blanked out."""
    pattern = r'//[^\n]*|/\*.*?\*/|R"\((?:.|\n)*?\)"|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])\''
    return re.sub(pattern, _blank, code, flags=re.S)


def line_of(code, offset):
    return code.count("\n", 0, offset) + 1


def finding(path, line, sentence):
    _findings.append(f"{path.relative_to(ROOT)}:{line}: {sentence}")


def forbid(paths, pattern, sentence, strip=True, flags=0):
    """Each match of the pattern in the files is a finding."""
    for path in paths:
        code = without_comments(text(path)) if strip else text(path)
        for match in re.finditer(pattern, code, flags):
            finding(path, line_of(code, match.start()), sentence)


def finish():
    for line in sorted(set(_findings)):
        print(line)
    sys.exit(1 if _findings else 0)
