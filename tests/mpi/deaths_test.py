# SPDX-License-Identifier: BSD-3-Clause
"""A rank of a node is killed with device messages in flight that are copied directly: the others hear of it and go on. One that is stopped
is waited for.

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

from reasons import why_not

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


def is_stopped(process):
    """As the kernel says, behind the name of the program in brackets."""
    with open(f"/proc/{process.pid}/stat") as stat:
        return stat.read().rpartition(")")[2].split()[0] == "T"


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


# From the first look, when all is only asked for, to one that finds most of it done.
LOOKS = (0, 1, 3, 10, 30, 100, 300, 1000, 5000)
if os.environ.get("TESTS_SANITIZE"):
    LOOKS = LOOKS[::2]


def start(victim, looks, gpus, **more):
    env = dict(os.environ, GANTRY_RENDEZVOUS=f"127.0.0.1:{free_port()}", GANTRY_SIZE=str(RANKS), GANTRY_IPC_THRESHOLD="1", GANTRY_LOG="error",
               SIMGPU=f"machine=h200,dev={gpus},scale=20,run=deaths-{os.getpid()}-{looks}", MPI_TESTS_DIES=str(victim),
               MPI_TESTS_LOOKS=str(looks), MPI_TESTS_GPUS=str(gpus), **more)
    return [subprocess.Popen([PROGRAM, "direct_messages_until_a_rank_dies"], env=dict(env, GANTRY_RANK=str(rank)),
                             stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
            for rank in range(RANKS)]


class Deaths(unittest.TestCase):
    def stops_in_a_direct_copy(self, victim, gpus):
        for looks in LOOKS:
            with self.subTest(looks=looks):
                ranks = start(victim, looks, gpus, MPI_TESTS_STOPS="1")
                limit = time.monotonic() + PATIENCE
                while ranks[victim].poll() is None and not is_stopped(ranks[victim]) and time.monotonic() < limit:
                    time.sleep(0.001)  # between two looks: a process that is no tracer is not told of a stop
                if ranks[victim].poll() == 77:
                    self.skipTest(why_not(all_they_say(ranks)[0][0]))
                # Nobody can have ended: all meet behind its messages.
                self.assertEqual([rank.poll() for rank in ranks], [None] * RANKS)
                ranks[victim].send_signal(signal.SIGCONT)
                said, late = all_they_say(ranks)
                self.assertEqual(late, [], f"ranks that did not end within {PATIENCE} s; all said {said}")
                expected = (0, f"exchanging\nrank {victim} was waited for\n")
                self.assertEqual([(rank.returncode, words) for rank, words in zip(ranks, said)], [expected] * RANKS)

    def dies_in_a_direct_copy(self, victim, gpus=1, **more):
        for looks in LOOKS:
            with self.subTest(looks=looks):
                ranks = start(victim, looks, gpus, **more)
                said, late = all_they_say(ranks)
                self.assertEqual(late, [], f"ranks that did not end within {PATIENCE} s; all said {said}")
                if 77 in [rank.returncode for rank in ranks]:
                    self.skipTest(why_not(said[0]))
                for rank in range(RANKS):
                    expected = (-signal.SIGKILL, "exchanging\n") if rank == victim else (0, f"exchanging\nlost rank {victim}\n")
                    self.assertEqual((ranks[rank].returncode, said[rank]), expected, f"rank {rank}: {said}")

    def test_a_killed_first_rank_is_an_error_for_the_others_which_go_on(self):
        self.dies_in_a_direct_copy(0)

    def test_a_killed_middle_rank_is_an_error_for_the_others_which_go_on(self):
        self.dies_in_a_direct_copy(1)

    def test_a_killed_last_rank_is_an_error_for_the_others_which_go_on(self):
        self.dies_in_a_direct_copy(2)

    def test_a_killed_rank_is_an_error_for_the_others_on_two_gpus(self):
        self.dies_in_a_direct_copy(1, gpus=2)

    def test_a_stopped_rank_is_waited_for(self):
        self.stops_in_a_direct_copy(1, gpus=1)

    def test_a_stopped_rank_is_waited_for_on_two_gpus(self):
        self.stops_in_a_direct_copy(0, gpus=2)

    def test_a_killed_rank_is_an_error_for_others_with_a_progress_thread(self):
        self.dies_in_a_direct_copy(1, GANTRY_PROGRESS="thread")


if __name__ == "__main__":
    unittest.main()
