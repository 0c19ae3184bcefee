# SPDX-License-Identifier: BSD-3-Clause
"""Jobs that go on without ranks that died (`mpiexec --keep-going`), real processes on the simulated GPU. The cases are in survivors.cpp.

TESTS_ALL=1: 1,000 kills under load, each at another moment.
"""
import os
import random
import subprocess
import unittest

from reasons import why_not

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
