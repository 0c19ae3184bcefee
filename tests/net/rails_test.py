# SPDX-License-Identifier: BSD-3-Clause
"""Two machines joined by two cables that are rails: one is cut in the middle of messages, puts and accumulates of host and device memory. All
of it arrives once; how long nothing came is printed, and judged by nobody: a busy machine makes it longer.

    rails_test.py Rails.test_NAME      77 with the reason where two network namespaces or a UCX are not to be had
"""
import os
import re
import signal
import subprocess
import sys
import tempfile
import unittest

import nodes as network
from faults_test import PATIENCE, PROGRAM, ucx_release


class Rails(unittest.TestCase):
    def setUp(self):
        self.nodes = network.two_nodes(more_rails=(None, None))  # by the first cable ranks 0 and 1 find each other: it is no rail
        self.addCleanup(lambda: [node.close() for node in self.nodes])
        self.told = tempfile.mktemp(prefix="gantry-told-")
        self.begin = tempfile.mktemp(prefix="gantry-begin-")
        self.addCleanup(lambda: [os.unlink(file) for file in (self.told, self.begin) if os.path.exists(file)])

    def start(self, rank, **more):
        env = {**network.job_environment(self.nodes, rank), "MPI_TESTS_STOP": self.told, "SIMGPU": "machine=h200,scale=0",
               "GANTRY_RAILS": ",".join(self.nodes[rank].rails[1:]), "GANTRY_LOG": "info", **more}
        process = self.nodes[rank].start([PROGRAM, "everything_until_told"], env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        return process

    def wait_for(self, process, sentence):
        """Reads what it prints up to that sentence."""
        said = ""
        for line in process.stdout:
            said += line
            if re.search(sentence, line):
                return
        self.fail(f"it ended without saying {sentence}: {said}")

    def exchange(self, disturb, before=None, patience=PATIENCE, **more):
        """What both printed at the end; disturb(rank 0) runs in between, and before() when both have found each other and said nothing yet."""
        if before:
            more["MPI_TESTS_START"] = self.begin
        ranks = [self.start(rank, **more) for rank in (0, 1)]
        if before:
            for rank in ranks:
                self.wait_for(rank, "^ready$")
            before()
            with open(self.begin, "w"):
                pass
        else:
            self.wait_for(ranks[0], "^exchanging$")
        disturb(ranks[0])
        with open(self.told, "w"):
            pass
        ends = []
        for rank in ranks:
            try:
                said = rank.communicate(timeout=patience)[0]
            except subprocess.TimeoutExpired:
                network.kill(rank)
                self.fail(f"still there after {patience} s: {rank.communicate()[0]}")
            self.assertEqual(rank.returncode, 0, said)
            self.assertRegex(said, r"(?m)^\d+ rounds", said)
            ends.append(said)
        print("\n  " + re.search(r"(?m)^\d+ rounds.*$", ends[0]).group(0), end=" ", file=sys.stderr)
        return ends

    def cut(self, node, rail):
        def disturb(rank):
            self.nodes[node].cut(rail + 1)
            self.wait_for(rank, f"ucx: rail {rail} to rank 1 failed")
        return disturb

    def test_a_rail_that_is_cut_loses_nothing(self):
        for said in self.exchange(self.cut(0, 1), GANTRY_EXPLAIN="1"):
            # A virtual cable is no card: nobody knows how far it is.
            self.assertRegex(said, r"rails to rank [01]: \S+ \(home: how far it is from .*, the system does not say\): .*; \S+: ")

    def test_a_rail_cut_in_the_middle_of_a_thousand_large_messages_loses_nothing(self):
        self.exchange(self.cut(0, 1), patience=10 * PATIENCE, MPI_TESTS_ROUNDS="250")  # of four large messages each

    def never_there(self, node, rail):
        """The cable is out before the first message, and comes back under way."""
        def disturb(rank):
            self.wait_for(rank, f"ucx: rail {rail} to rank 1 (is not there yet|failed)")
            self.nodes[node].mend(rail + 1)
            self.wait_for(rank, f"ucx: rail {rail} to rank 1 is back")
        self.exchange(disturb, before=lambda: self.nodes[node].cut(rail + 1))

    def test_a_rail_that_is_gone_here_before_the_first_message_loses_nothing(self):
        self.never_there(0, 1)

    def test_a_rail_that_is_gone_there_before_the_first_message_loses_nothing(self):
        self.never_there(1, 1)

    def test_the_home_rail_gone_before_the_first_message_loses_nothing(self):
        self.never_there(1, 0)

    def test_the_home_rail_cut_at_the_other_end_loses_nothing(self):
        self.exchange(self.cut(1, 0))

    def test_a_rail_cut_under_even_stripes_and_straight_puts_loses_nothing(self):
        self.exchange(self.cut(1, 1), GANTRY_RAIL_POLICY="even", GANTRY_TCP_ZERO_COPY="64K", GANTRY_RAIL_STRIPE="16K")

    def test_a_rail_that_is_mended_is_taken_back(self):
        def disturb(rank):
            self.cut(1, 1)(rank)
            self.nodes[1].mend(2)
            self.wait_for(rank, "ucx: rail 1 to rank 1 is back")
        self.exchange(disturb)

    def test_rails_that_fail_one_after_the_other_and_come_back_lose_nothing(self):
        def disturb(rank):
            for rail in (1, 0):
                self.cut(rail, rail)(rank)
                self.nodes[rail].mend(rail + 1)
                self.wait_for(rank, f"ucx: rail {rail} to rank 1 is back")
        self.exchange(disturb)


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    ucx_release()
    network.run_in_namespaces()
    unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
