# SPDX-License-Identifier: BSD-3-Clause
"""What `dev` shows of long steps: how much is done, and about how long the rest takes."""
import contextlib
import io
import sys
import unittest
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "tools" / "dev"))
import build  # noqa: E402
import progress  # noqa: E402
import tests  # noqa: E402


class Terminal(io.StringIO):
    def isatty(self):
        return True


class Progress(unittest.TestCase):
    def setUp(self):
        self.now = 0.0

    def shown(self, output, steps):
        """What is written when so many of 100 are over at these times."""
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            one = progress.Progress("built", clock=lambda: self.now, output=output)
            for self.now, done in steps:
                one.at(done, 100)
        return written.getvalue() + output.getvalue()

    def test_a_terminal_sees_one_line_that_says_what_is_left(self):
        shown = self.shown(Terminal(), [(1, 1), (60, 20), (240, 50), (300, 90), (310, 100)])
        lines = [line.strip() for line in shown.split("\r")]
        self.assertEqual(lines, ["", "built 1/100", "built 20/100, about 4 min left", "built 50/100, about 4 min left",
                                 "built 90/100, about 30 s left", "built 100/100 in 310 s"])
        self.assertEqual(shown.count("\n"), 1)

    def test_elsewhere_a_line_comes_with_each_tenth(self):
        shown = self.shown(io.StringIO(), [(done, done) for done in range(1, 101)])
        lines = shown.splitlines()
        self.assertEqual(len(lines), 10, shown)
        self.assertEqual((lines[0].strip(), lines[-1].strip()), ("built 10/100, about 90 s left", "built 100/100 in 100 s"))
        self.assertNotIn("\r", shown)

    def test_what_a_compiler_says_is_shown_as_it_is(self):
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            output = build.NinjaOutput()
            for line in ("ninja: Entering directory `build'", "[0/2] Re-checking globbed directories...", "[1/2] Building a.o",
                         "a.cpp:1: warning: x", "FAILED: b.o"):
                output.see(line)
        self.assertEqual(written.getvalue().splitlines(), ["     built 1/2", "a.cpp:1: warning: x", "FAILED: b.o"])

    def test_a_failing_test_is_named_when_it_fails(self):
        written = io.StringIO()
        with contextlib.redirect_stdout(written):
            output = tests.CtestOutput()
            for line in ("1/40 Test  #1: a.b ......   Passed    0.01 sec", "2/40 Test  #2: a.c ......***Failed    0.01 sec"):
                output.see(line)
        self.assertEqual(written.getvalue().splitlines(), ["     2/40 a.c ***Failed    0.01 sec"])
