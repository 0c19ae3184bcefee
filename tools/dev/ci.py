# SPDX-License-Identifier: BSD-3-Clause
"""`.ci/run`: what CI runs on a clean checkout: the README's commands, the checks, others' programs, then the sanitizers.

Every step runs even when one before it failed, so one run shows everything. The last line counts all tests and checks of
all steps; a step that ends badly without counting, or for which no time is left, is one failure, and one that says "not run" is one skipped.
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

BEGIN = time.monotonic()

NOT_RUN = 77

# Tests that no mechanism touches, or that switch on what they are about.
SAME_WITHOUT = (r"^world_tests\.(Resident|Claims|Window|WireCounts|MessageCost|PutFlags|ReadyToReceive|LargePools|FreshMemory|Scale|Published)"
                r"|FlaggedSlots|FlagsOfTheDevice|^mpi\.(deaths\.|more_than_two)|_persistent_kernel_")

# All steps together, in seconds.
MOST_SECONDS = 5100

# (name, command, seconds it may take)
STEPS = [
    ("tests", [DEV, "test"], 3000),
    ("demo", [DEV, "demo"], 300),
    ("checks", [DEV, "check"], 600),
    ("mpi4py from its source release", [str(ROOT / "tests/mpi4py/run")], 600),
    ("one binary on MPICH and on Gantry", [str(ROOT / "tests/abi/swap")], 300),
    ("both applications on MPICH and on Gantry", [str(ROOT / "apps/tests/wheel")], 300),
    ("programs of MPICH and Open MPI as they are", [str(ROOT / "tests/personality/wheels")], 300),
    # Mechanisms change how fast messages are, not what comes out. Tests that count what a mechanism does switch it on themselves.
    ("behaviour without mechanisms", ["env", "GANTRY_MECHANISMS=none", DEV, "test", r"^world_tests\.|^mpi\.", "--exclude", SAME_WITHOUT],
     900),
    # What fails here and passes the second time is shown and counts as passed: the same tests ran above without retry. Left out
    # are tests of what programs print, which start hundreds of processes; what they start is tested in other ways here, too. So are
    # the cases of tests/mpi once more over the network of this machine and with a progress thread (net.CASE, thread.CASE): of these,
    # unit_transport, net.namespaces, net.faults and mpi.progress run here, and thread.CASE with the thread sanitizer. And so are
    # figures of published tables, for which messages of other tests are timed, what waits until kernels come late (two of unit_device),
    # and what is Python alone (cli.Checks, cli.Progress).
    ("address and undefined-behaviour sanitizers",
     [DEV, "test", "--preset", "asan", "--retry", "--exclude",
      r"^cli\.(Tune|Checks|Progress|Packages|Site)|^unit_device\.(CudaCutThrough\.WhatComesTooLate|CudaResidentReduce\.EveryPair)"
      r"|^bench\.(options|reproduce|plot)|^world_tests\.(Published|Scale)|^thread\.|^net\.[a-z0-9_]+$"], 3000),
    # The simulated driver and the progress thread are where the threads are.
    ("thread sanitizer",
     [DEV, "test", "--preset", "tsan", *(f"--target={name}" for name in ("simgpu_tests", "mpi_tests", "mpiexec", "mpi_abi", "cuda_sim")),
      r"^simgpu|^thread\.|^mpi\.progress"], 1800),
]


def run(name, command, limit):
    """(passed, failed, skipped) of one step, from its closing line."""
    print(f"\n==== {name}: {' '.join(word.removeprefix(f'{ROOT}/') for word in command)} ====", flush=True)
    start = time.monotonic()
    limit = min(limit, BEGIN + MOST_SECONDS - start)
    if limit <= 0:
        print(f"ci: failed: no time is left, all steps together may take {MOST_SECONDS} s", flush=True)
        return 0, 1, 0
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
    print(f"ci: {name}: exit {status} after {time.monotonic() - start:.0f} s (may take {limit:.0f} s)", flush=True)
    passed, failed, skipped = (int(number or 0) for number in closing.groups()) if closing else (int(status == 0), 0, 0)
    if status == NOT_RUN and failed == 0:
        return passed, 0, skipped + 1
    if status != 0 and failed == 0:
        failed = 1
    return passed, failed, skipped


def main():
    totals = [sum(column) for column in zip(*(run(*step) for step in STEPS))]
    print(f"\n{totals[0]} passed, {totals[1]} failed" + (f", {totals[2]} skipped" if totals[2] else ""), flush=True)
    return 1 if totals[1] or not totals[0] else 0


if __name__ == "__main__":
    sys.exit(main())
