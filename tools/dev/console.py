# SPDX-License-Identifier: BSD-3-Clause
"""How `dev` talks and runs programs: one line per step, and a sentence when something fails."""
import os
import shlex
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


class Failure(Exception):
    """Ends `dev` with a sentence for the user instead of a traceback."""


def step(text):
    """A progress line: what happens next."""
    print(f"dev: {text}", flush=True)


def note(text):
    """A line that belongs to the step before it."""
    print(f"     {text}", flush=True)


def cores():
    return len(os.sched_getaffinity(0))


def run(command, what, env=None, cwd=ROOT):
    """Run a program with its output shown; its failure ends `dev`."""
    command = [str(word) for word in command]
    sys.stdout.flush()
    status = subprocess.run(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL).returncode
    if status != 0:
        raise Failure(f"{what} failed (exit {status}): {shlex.join(command)}")


def follow(command, see, env=None, cwd=ROOT):
    """Run a program and give each line that it says to `see`; returns the exit status."""
    process = subprocess.Popen([str(word) for word in command], env=env, cwd=cwd, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                               stderr=subprocess.STDOUT, text=True, errors="replace")
    for line in process.stdout:
        see(line.rstrip("\n"))
    return process.wait()


def run_quiet(command, what, env=None, cwd=ROOT):
    """Run a program whose output matters only when it fails; returns that output."""
    command = [str(word) for word in command]
    done = subprocess.run(command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    if done.returncode != 0:
        sys.stdout.write(done.stdout[-8000:])
        raise Failure(f"{what} failed (exit {done.returncode}): {shlex.join(command)}")
    return done.stdout
