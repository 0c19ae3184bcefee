# SPDX-License-Identifier: BSD-3-Clause
"""How far a long step is and about how long it still takes: one line that is rewritten on a terminal, a line now and then elsewhere."""
import sys
import time

from console import note

FIRST_GUESS = 5  # seconds: before that, what is left is not known well enough to be said


def duration(seconds):
    """As a person says it: "40 s", "3 min"."""
    return f"{max(10, round(seconds, -1)):.0f} s" if seconds < 95 else f"{seconds / 60:.0f} min"


class Progress:
    def __init__(self, what, clock=time.monotonic, output=None):
        self.what = what
        self.clock = clock
        self.output = output or sys.stdout
        self.terminal = self.output.isatty()
        self.begin = clock()
        self.told = 0.0  # the share at the last line
        self.width = 0

    def line(self, done, total):
        gone = self.clock() - self.begin
        text = f"{self.what} {done}/{total}"
        if 0 < done < total and gone >= FIRST_GUESS:
            text += f", about {duration(gone * (total - done) / done)} left"
        elif done >= total:
            text += f" in {gone:.0f} s"
        return text

    def at(self, done, total):
        """`done` of `total` are over."""
        if total <= 0:
            return
        if self.terminal:
            text = f"     {self.line(done, total)}"
            self.output.write("\r" + text.ljust(self.width))
            self.width = len(text)
            if done >= total:
                self.clear(keep=True)
            self.output.flush()
        elif self.told < 1 and (done >= total or done / total - self.told >= 0.1):
            self.told = done / total
            note(self.line(done, total))

    def clear(self, keep=False):
        """Makes room for another line, or ends the step."""
        if self.terminal and self.width:
            self.output.write("\n" if keep else "\r" + " " * self.width + "\r")
            self.output.flush()
            self.width = 0
