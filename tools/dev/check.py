# SPDX-License-Identifier: BSD-3-Clause
"""`dev check`: every tools/check/*.py is one rule of CONTRIBUTING.md; each prints what breaks it and exits 1, or 0."""
import re
import subprocess
import sys

import build
import setup
from console import ROOT, Failure, note, step
from environment import for_tools


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
    if any(script.stem == "globals" for script in scripts):
        build.build(preset)  # This check reads the built libraries.
    step("checking")
    failed = 0
    for script in scripts:
        done = subprocess.run([sys.executable, str(script), "--preset", preset], cwd=ROOT, env=for_tools(), text=True,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        failed += done.returncode != 0
        note(f"{'ok  ' if done.returncode == 0 else 'FAIL'} {script.stem}: {title(script)}")
        for line in done.stdout.splitlines():
            print(f"            {line}")
    print(f"{len(scripts) - failed} passed, {failed} failed", flush=True)
    return 1 if failed else 0
