# SPDX-License-Identifier: BSD-3-Clause
"""The version, which CMake and the Python package both state, and when the sources were written: what all packages are named and dated by."""
import os
import re
import subprocess

from console import ROOT, Failure

PLACES = {"CMakeLists.txt": r"^project\(gantry VERSION ([\d.]+)", "pyproject.toml": r'^version = "([\d.]+)"'}


def version(root=ROOT):
    stated = {name: re.search(pattern, (root / name).read_text(encoding="utf-8"), re.M)[1] for name, pattern in PLACES.items()}
    if len(set(stated.values())) != 1:
        raise Failure("the version differs: " + ", ".join(f"{number} in {name}" for name, number in stated.items()))
    return stated["CMakeLists.txt"]


def git(*words):
    """What git says of this folder, or None: it is not a checkout."""
    if not (ROOT / ".git").exists():
        return None
    done = subprocess.run(["git", "-C", ROOT, *words], text=True, capture_output=True)
    return done.stdout.strip() if done.returncode == 0 else None


def written():
    """Seconds since 1970: SOURCE_DATE_EPOCH, else the time of the last commit, else that of the change log."""
    return int(os.environ.get("SOURCE_DATE_EPOCH") or git("log", "-1", "--format=%ct") or (ROOT / "CHANGELOG.md").stat().st_mtime)
