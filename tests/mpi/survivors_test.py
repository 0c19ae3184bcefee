# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that go on without ranks that died (`mpiexec --keep-going`), real processes on the simulated GPU. The cases are in survivors.cpp and survivors_windows.cpp.

TESTS_ALL=1: 1,000 kills of each kind, each at another moment.
"""
import os
import random
import socket
import subprocess
import tempfile
import unittest

from reasons import why_not
from nodes_test import network_is_here

MPIEXEC = os.environ.get("GANTRY_MPIEXEC", "mpiexec")
PROGRAM = os.environ.get("GANTRY_MPI_TESTS", "mpi_tests")
PATIENCE = 200  # seconds; only ends a test that hangs


class Survivors(unittest.TestCase):
    def survive(self, case, ranks, victims, **env):
        env = dict(os.environ, SIMGPU=f"machine=h200,dev=2,scale=0,run=survivors-{os.getpid()}", GANTRY_LOG="error",
                   MPI_TESTS_DIE=",".join(map(str, victims)), **env)
        done = subprocess.run([MPIEXEC, "--keep-going", "-n", str(ranks), PROGRAM, case], env=env, stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        if done.returncode == 77:
            self.skipTest(why_not(done.stdout))
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count("survived\n"), ranks - len(victims), done.stdout)
        for victim in victims:
            self.assertRegex(done.stdout, rf"mpiexec: rank {victim} of {ranks} .* was killed by signal 9 .*; the others go on")

    def test_who_died_is_told_and_acknowledged(self):
        self.survive("survivors_acknowledge", 3, [2])

    def test_nobody_waits_for_what_a_dead_rank_held_of_a_window(self):
        self.survive("survivors_of_a_window", 3, [2])

    def test_a_rank_dies_while_all_write_and_read_a_file(self):
        times = 100 if os.environ.get("TESTS_ALL") else 3
        seed = int(os.environ.get("TESTS_SEED", "1"))
        for base in ("/tmp", "/dev/shm"):  # by a backend, and by the callers
            for together in ({}, {"MPI_TESTS_TOGETHER": "1"}):
                for number in range(seed, seed + times):
                    after = int(random.Random(number).expovariate(1 / 20_000))
                    with self.subTest(repeat=f"TESTS_SEED={number}", base=base, after=after, **together), \
                            tempfile.TemporaryDirectory(dir=base) as folder:
                        self.survive("survivors_of_a_file", 4, [number % 4], MPI_TESTS_AFTER_US=str(after),
                                     MPI_TESTS_FOLDER=folder, **together)

    def test_the_launcher_tells_of_a_death_in_the_node(self):
        self.survive("survivors_hear_from_the_launcher", 4, [3])

    @unittest.skipUnless(network_is_here(), "the network needs UCX: apt install libucx0")
    def test_the_launcher_tells_of_a_death_over_the_network(self):
        self.survive("survivors_hear_from_the_launcher", 4, [3], GANTRY_SHM="off")

    @unittest.skipUnless(network_is_here(), "the network needs UCX: apt install libucx0")
    def test_a_rendezvous_tells_of_a_death(self):
        self.meet_and_survive("survivors_hear_from_the_launcher", 4, [3], GANTRY_SHM="off")

    @unittest.skipUnless(network_is_here(), "the network needs UCX: apt install libucx0")
    def test_who_served_the_rendezvous_dies_in_a_network(self):
        self.meet_and_survive("survivors_of_who_served", 6, [0, 5], GANTRY_SHM="off")

    def test_who_served_the_rendezvous_dies_in_a_node(self):
        self.meet_and_survive("survivors_of_who_served", 6, [0, 5])

    def meet_and_survive(self, case, count, victims, **env):
        """Without a launcher: the ranks meet at rank 0."""
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            place = f"127.0.0.1:{free.getsockname()[1]}"
        env = dict(os.environ, SIMGPU=f"machine=h200,dev=2,scale=0,run=survivors-{os.getpid()}", GANTRY_LOG="error",
                   MPI_TESTS_DIE=",".join(map(str, victims)), GANTRY_RENDEZVOUS=place, GANTRY_SIZE=str(count), **env)
        ranks = [subprocess.Popen([PROGRAM, case], env=dict(env, GANTRY_RANK=str(rank)), stdin=subprocess.DEVNULL,
                                  stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) for rank in range(count)]
        try:
            for rank, process in enumerate(ranks):
                said = process.communicate(timeout=PATIENCE)[0]
                self.assertEqual((process.returncode, "survived" in said), (-9, False) if rank in victims else (0, True), said)
        finally:
            for process in ranks:
                process.kill()

    def test_parents_hear_of_the_death_of_a_child(self):
        env = dict(os.environ, SIMGPU=f"machine=h200,dev=2,scale=0,run=survivors-{os.getpid()}", GANTRY_LOG="error")
        done = subprocess.run([MPIEXEC, "--keep-going", "-n", "2", PROGRAM, "survivors_of_a_spawned_rank"], env=env,
                              stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=PATIENCE)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertEqual(done.stdout.count("survived\n"), 3, done.stdout)

    @unittest.skipUnless(network_is_here(), "the network needs UCX: apt install libucx0")
    def test_kills_under_load_over_the_network(self):
        self.kill_at_random("survivors_under_load", 5, 3, GANTRY_SHM="off")

    def kill_at_random(self, case, ranks, times, **env):
        """Each time somebody else dies, at another moment."""
        times = 1000 if os.environ.get("TESTS_ALL") else times
        seed = int(os.environ.get("TESTS_SEED", "1"))
        for number in range(seed, seed + times):
            chance = random.Random(number)
            victim = chance.randrange(ranks)
            after = int(chance.expovariate(1 / 20_000))
            with self.subTest(repeat=f"TESTS_SEED={number}", victim=victim, after=after):
                self.survive(case, ranks, [victim], MPI_TESTS_AFTER_US=str(after), TESTS_SEED=str(number), **env)

    def test_ranks_free_windows_at_different_times(self):
        self.kill_at_random("survivors_free_windows", 4, 8)

    def test_survivors_revoke_a_file(self):
        with tempfile.TemporaryDirectory() as folder:
            self.kill_at_random("survivors_revoke_a_file", 4, 6, MPI_TESTS_FILE=os.path.join(folder, "file"))

    def test_kills_under_load(self):
        times = 1000 if os.environ.get("TESTS_ALL") else 6
        seed = int(os.environ.get("TESTS_SEED", "1"))
        for number in range(seed, seed + times):
            chance = random.Random(number)
            victims = chance.sample(range(5), chance.choice([1, 1, 2]))
            after = int(chance.expovariate(1 / 20_000))
            with self.subTest(repeat=f"TESTS_SEED={number}", victims=victims, after=after):
                self.survive("survivors_under_load", 5, victims, MPI_TESTS_AFTER_US=str(after))

    def test_kills_under_load_with_a_progress_thread(self):
        self.survive("survivors_under_load", 5, [1], MPI_TESTS_AFTER_US="10000", GANTRY_PROGRESS="thread")


if __name__ == "__main__":
    unittest.main()
