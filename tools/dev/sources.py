# SPDX-License-Identifier: BSD-3-Clause
"""Which files are ours: what git tracks or would track, or, without git, everything outside build and hidden folders."""
import subprocess

from console import ROOT

CODE = (".cpp", ".hpp", ".h", ".c", ".cu", ".def")


def files():
    done = subprocess.run(["git", "-c", "safe.directory=*", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
                          cwd=ROOT, capture_output=True, text=True) if (ROOT / ".git").exists() else None
    if done is not None and done.returncode == 0:
        paths = [ROOT / name for name in done.stdout.split("\0") if name]
    else:
        paths = [path for path in ROOT.rglob("*") if not any(
            part.startswith(".") or part == "build" for part in path.relative_to(ROOT).parts[:-1])]
    return sorted(path for path in set(paths) if path.is_file() and not path.is_symlink())


def code(suffixes=CODE):
    return [path for path in files() if path.suffix in suffixes]
