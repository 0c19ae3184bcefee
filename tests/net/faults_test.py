# SPDX-License-Identifier: BSD-3-Clause
"""What breaks between two machines: each ends in an MPI error that names the rank, or in nothing lost.

No test looks at how long that takes, which a busy machine makes longer: PATIENCE only ends one that hangs.

    faults_test.py Faults.test_NAME      77 with the reason where two network namespaces or a UCX are not to be had
"""
import ctypes
import os
import signal
import subprocess
import sys
import tempfile
import time
import unittest

import nodes as network

PROGRAM = os.environ.get("GANTRY_MPI_TESTS", "mpi_tests")
PEER_TIMEOUT = 3  # seconds, GANTRY_PEER_TIMEOUT of every job here
PATIENCE = 60  # seconds; only ends a test that hangs


def ucx_release():
    library = os.environ.get("GANTRY_UCX") or "libucp.so.0"
    if os.path.isdir(library):
        library = os.path.join(library, "libucp.so.0")
    try:
        ucp = ctypes.CDLL(library)
    except OSError as refused:
        network.not_run(f"the network needs UCX ({refused}); `apt install libucx0` or set GANTRY_UCX")
    numbers = [ctypes.c_uint() for _ in range(3)]
    ucp.ucp_get_version(*map(ctypes.byref, numbers))
    return tuple(number.value for number in numbers[:2])


class Faults(unittest.TestCase):
    def setUp(self):
        self.nodes = network.two_nodes()
        self.addCleanup(lambda: [node.close() for node in self.nodes])
        self.stop = tempfile.mktemp(prefix="gantry-stop-")
        self.addCleanup(lambda: os.path.exists(self.stop) and os.unlink(self.stop))

    def start(self, case, rank, **more):
        env = {**network.job_environment(self.nodes, rank), "MPI_TESTS_STOP": self.stop, "SIMGPU": "machine=h200,scale=0",
               "GANTRY_PEER_TIMEOUT": f"{PEER_TIMEOUT}s", **more}
        process = self.nodes[rank].start([PROGRAM, case], env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
        self.addCleanup(process.stdout.close)
        return process

    def start_both(self, case, **more):
        ranks = [self.start(case, rank, **more) for rank in (0, 1)]
        for rank in ranks:
            self.assertEqual(rank.stdout.readline(), "exchanging\n", rank.stdout)
        return ranks

    def ends(self, process, patience=PATIENCE):
        """(exit status, what it printed)."""
        try:
            said = process.communicate(timeout=patience)[0]
        except subprocess.TimeoutExpired:
            network.kill(process)
            self.fail(f"still there after {patience} s: {process.communicate()[0]}")
        return process.returncode, said

    def loses(self, process, rank):
        code, said = self.ends(process)
        self.assertRegex(said, f"lost: class MPI_ERR_PROC_ABORTED: .*rank {rank} is lost", said)
        self.assertEqual(code, 0, said)

    def needs_a_bounded_tcp(self):
        if ucx_release() < (1, 22):
            self.skipTest("UCX before 1.22 leaves an unreachable machine to the kernel, for minutes; give a newer one with GANTRY_UCX")

    def test_a_killed_peer_is_an_error_that_names_it(self):
        for victim, case in ((0, "exchanging_until_told"), (1, "exchanging_until_told"), (0, "waiting_for_a_message_that_never_comes")):
            ranks = self.start_both(case)
            network.kill(ranks[victim])
            self.loses(ranks[1 - victim], victim)
            self.ends(ranks[victim])

    def dies_in_windows(self, victim):
        # From the first look, when all is only asked for, to one that finds most of a window in place.
        for looks in (0, 1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 5000):
            with self.subTest(looks=looks):
                ranks = self.start_both("windows_of_large_host_messages", MPI_TESTS_DIES=str(victim), MPI_TESTS_LOOKS=str(looks))
                self.loses(ranks[1 - victim], victim)
                self.ends(ranks[victim])

    def test_a_sender_killed_in_a_window_ends_every_receive_with_an_error(self):
        self.dies_in_windows(0)

    def test_a_receiver_killed_in_a_window_ends_every_send_with_an_error(self):
        self.dies_in_windows(1)

    def test_a_cable_cut_for_long_is_an_error_on_both_sides(self):
        self.needs_a_bounded_tcp()
        ranks = self.start_both("exchanging_until_told")
        self.nodes[1].cut()
        self.loses(ranks[0], 1)
        self.loses(ranks[1], 0)

    def test_a_cable_cut_while_both_only_wait_is_an_error_on_both_sides(self):
        self.needs_a_bounded_tcp()
        ranks = self.start_both("waiting_for_a_message_that_never_comes")
        self.nodes[0].cut()
        self.loses(ranks[0], 1)
        self.loses(ranks[1], 0)

    def tell(self):
        with open(self.stop, "w"):
            pass

    def test_a_connection_that_never_comes_up_is_an_error_on_both_sides(self):
        self.needs_a_bounded_tcp()
        ranks = self.start_both("first_message_when_told")
        self.nodes[1].cut()
        self.tell()
        self.loses(ranks[0], 1)
        # Rank 0 also keeps what ranks tell each other to connect.
        code, said = self.ends(ranks[1])
        self.assertRegex(said, "rank 0 is lost|connecting to rank 0", said)
        self.assertEqual(code, 0, said)

    def test_a_ucx_without_the_transport_asked_for_fails_init(self):
        ranks = [self.start("exchanging_until_told", rank, UCX_TLS="rc_verbs") for rank in (0, 1)]
        told = ""
        for rank in ranks:  # who ends the job says why; the other one, that it was ended
            code, said = self.ends(rank)
            self.assertNotEqual(code, 0, said)
            self.assertRegex(said, "MPI_Init failed|MPI_Init:")
            told += said
        self.assertRegex(told, "UCX_TLS=rc_verbs")

    def test_a_cable_cut_for_two_seconds_loses_nothing(self):
        # TCP tries again after 0.2, 0.6, 1.4 and 3.0 seconds: a time-out of 3 would come with the first try that can succeed.
        ranks = self.start_both("exchanging_until_told", GANTRY_PEER_TIMEOUT="10s")
        self.nodes[1].cut()
        time.sleep(2)  # how long the cable is out is what this test is about
        self.nodes[1].mend()
        self.tell()
        for rank in ranks:
            code, said = self.ends(rank)
            self.assertRegex(said, r"^\d+ exchanges$", said)
            self.assertEqual(code, 0, said)

    def init_fails(self, *sentences, **env):
        code, said = self.ends(self.start("exchanging_until_told", 1, GANTRY_RENDEZVOUS_TIMEOUT="2s", **env))
        self.assertNotEqual(code, 0, said)
        for sentence in sentences:
            self.assertRegex(said, sentence)

    def test_a_refused_port_fails_init(self):
        self.init_fails("MPI_Init", "10.77.0.1:15000")

    def test_an_unreachable_host_fails_init(self):
        self.nodes[0].cut()
        self.init_fails("MPI_Init", "10.77.0.1:15000")

    def test_a_host_without_a_route_fails_init(self):
        self.init_fails("MPI_Init", "192.0.2.1:15000", GANTRY_RENDEZVOUS="192.0.2.1:15000")


if __name__ == "__main__":
    signal.signal(signal.SIGPIPE, signal.SIG_DFL)
    ucx_release()
    network.run_in_namespaces()
    unittest.main(argv=sys.argv[:1] + ["-v"] + sys.argv[1:])
