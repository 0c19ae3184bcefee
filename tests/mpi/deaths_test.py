# SPDX-License-Identifier: BSD-3-Clause
"""A rank of a node is killed with device messages in flight that are copied directly: the others hear of it and go on.

The case is in deaths.cpp. A launcher would end the job, so the ranks meet by GANTRY_RENDEZVOUS. The simulated GPU is slow: most copies
are under way when it happens.
"""
import contextlib
import os
import random
import signal
import socket
import subprocess
import time
import unittest

PROGRAM = os.environ.get("GANTRY_MPI_TESTS", "mpi_tests")
PATIENCE = 60
RANKS = 3


def free_port():
    """Below those of outgoing connections, one of which could take it before rank 0 does."""
    while True:
        port = random.randrange(20000, 32768)
        with socket.socket() as listener, contextlib.suppress(OSError):
            listener.bind(("127.0.0.1", port))
            return port


def all_they_say(ranks):
    """What each rank printed, also when one does not end in time."""
    said, late = [], []
    limit = time.monotonic() + PATIENCE
    for rank, process in enumerate(ranks):
        try:
            said.append(process.communicate(timeout=max(limit - time.monotonic(), 0.1))[0])
        except subprocess.TimeoutExpired:
            late.append(rank)
            process.kill()
            said.append(process.communicate()[0])
    return said, late


class Deaths(unittest.TestCase):
    def dies_in_a_direct_copy(self, victim, **more):
        # From the first look, when all is only asked for, to one that finds most of it done.
        for looks in (0, 1, 3, 10, 30, 100, 300, 1000, 5000):
            with self.subTest(looks=looks):
                env = dict(os.environ, GANTRY_RENDEZVOUS=f"127.0.0.1:{free_port()}", GANTRY_SIZE=str(RANKS), GANTRY_IPC_THRESHOLD="1",
                           SIMGPU=f"machine=h200,dev=1,scale=20,run=deaths-{os.getpid()}-{looks}", MPI_TESTS_DIES=str(victim),
                           MPI_TESTS_LOOKS=str(looks), **more)
                ranks = [subprocess.Popen([PROGRAM, "direct_messages_until_a_rank_dies"], env=dict(env, GANTRY_RANK=str(rank)),
                                          stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
                         for rank in range(RANKS)]
                said, late = all_they_say(ranks)
                self.assertEqual(late, [], f"ranks that did not end within {PATIENCE} s; all said {said}")
                if 77 in [rank.returncode for rank in ranks]:
                    self.skipTest(said[0])
                for rank in range(RANKS):
                    expected = (-signal.SIGKILL, "exchanging\n") if rank == victim else (0, f"exchanging\nlost rank {victim}\n")
                    self.assertEqual((ranks[rank].returncode, said[rank]), expected, f"rank {rank}: {said}")

    def test_a_killed_first_rank_is_an_error_for_the_others_which_go_on(self):
        self.dies_in_a_direct_copy(0)

    def test_a_killed_middle_rank_is_an_error_for_the_others_which_go_on(self):
        self.dies_in_a_direct_copy(1)

    def test_a_killed_last_rank_is_an_error_for_the_others_which_go_on(self):
        self.dies_in_a_direct_copy(2)

    def test_a_killed_rank_is_an_error_for_others_with_a_progress_thread(self):
        self.dies_in_a_direct_copy(1, GANTRY_PROGRESS="thread")


if __name__ == "__main__":
    unittest.main()
