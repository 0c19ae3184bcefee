# SPDX-License-Identifier: BSD-3-Clause
"""`.ci/run`: what CI runs on a clean checkout: the README's commands, then the sanitizers, then the checks.

Every step runs even when one before it failed, so one run shows everything. The last line counts all tests and checks of
all steps; a step that ends badly without counting is one failure.
"""
import os
import re
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DEV = str(ROOT / "dev")

# (name, command, seconds it may take)
STEPS = [
    ("tests", [DEV, "test"], 2400),
    ("demo", [DEV, "demo"], 300),
    ("programs from outside", [sys.executable, str(ROOT / "tests" / "outside" / "run")], 1500),
    # What cli and abi test is how things are built and linked, which a sanitizer does not change.
    ("address and undefined-behaviour sanitizers", [DEV, "test", "--preset", "asan", "--exclude", "^(cli|abi)"], 2400),
    # The simulated driver is where the threads are.
    ("thread sanitizer, simulated GPU", [DEV, "test", "--preset", "tsan", "--target", "simgpu_tests", "^simgpu"], 900),
    ("checks", [DEV, "check"], 600),
]


def run(name, command, limit):
    """(passed, failed, skipped) of one step, from its closing line."""
    print(f"\n==== {name}: {' '.join(word.removeprefix(f'{ROOT}/') for word in command)} ====", flush=True)
    start = time.monotonic()
    process = subprocess.Popen(command, cwd=ROOT, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace", start_new_session=True)
    too_late = threading.Timer(limit, os.killpg, (process.pid, signal.SIGKILL))
    too_late.start()
    closing = None
    for line in process.stdout:
        print(line, end="", flush=True)
        closing = re.match(r"(\d+) passed, (\d+) failed(?:, (\d+) skipped)?$", line.strip()) or closing
    status = process.wait()
    too_late.cancel()
    print(f"ci: {name}: exit {status} after {time.monotonic() - start:.0f} s (may take {limit} s)", flush=True)
    passed, failed, skipped = (int(number or 0) for number in closing.groups()) if closing else (int(status == 0), 0, 0)
    if status != 0 and failed == 0:
        failed = 1
    return passed, failed, skipped


def main():
    totals = [sum(column) for column in zip(*(run(*step) for step in STEPS))]
    print(f"\n{totals[0]} passed, {totals[1]} failed" + (f", {totals[2]} skipped" if totals[2] else ""), flush=True)
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())
