# SPDX-License-Identifier: BSD-3-Clause
"""`dev check`: every tools/check/*.py is one rule of CONTRIBUTING.md; each prints what breaks it and exits 1, or 0.

A check that lacks what it needs says "not run", exits 77 and is counted as skipped.
"""
import re
import subprocess
import sys

import build
import setup
from console import ROOT, Failure, note, step
from environment import for_tools

NOT_RUN = 77
WORDS = {0: "ok  ", NOT_RUN: "SKIP"}


def title(script):
    """The first line of the script's docstring."""
    found = re.search(r'"""(.*?)[\n"]', script.read_text())
    return found[1].strip() if found else script.stem


def check(preset, names):
    setup.ensure(formatter=True)
    scripts = sorted(path for path in (ROOT / "tools" / "check").glob("*.py") if not path.name.startswith("_"))
    if names:
        scripts = [path for path in scripts if path.stem in names]
        if len(scripts) != len(set(names)):
            raise Failure("no such check; there are: " + " ".join(
                sorted(path.stem for path in (ROOT / "tools" / "check").glob("[!_]*.py"))))
    if any(script.stem in ("globals", "message_cost") for script in scripts):
        build.build(preset)  # These read or run the built libraries.
    if any(script.stem == "kernels" for script in scripts):
        try:
            setup.ensure_kernel_compiler()
        except Failure as failure:
            note(str(failure))  # The check itself says "not run".
    step("checking")
    results = []
    for script in scripts:
        done = subprocess.run([sys.executable, str(script), "--preset", preset], cwd=ROOT, env=for_tools(), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        results.append(done.returncode)
        note(f"{WORDS.get(done.returncode, 'FAIL')} {script.stem}: {title(script)}")
        for line in done.stdout.splitlines():
            print(f"            {line}")
    passed, skipped = results.count(0), results.count(NOT_RUN)
    failed = len(results) - passed - skipped
    print(f"{passed} passed, {failed} failed" + (f", {skipped} skipped" if skipped else ""), flush=True)
    return 1 if failed else 0
