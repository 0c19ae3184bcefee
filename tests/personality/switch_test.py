# SPDX-License-Identifier: BSD-3-Clause
"""How a program of another MPI comes to run on Gantry: mpiexec's switch, `gantry env`, and what is refused."""
import os
import subprocess
import unittest
from pathlib import Path

BUILD = Path(os.environ["GANTRY_BUILD_FOLDER"])
PROGRAMS = BUILD / "tests"
MPIEXEC = BUILD / "bin" / "mpiexec"
PLAIN = {name: value for name, value in os.environ.items() if name not in ("LD_PRELOAD", "MPI4PY_LIBMPI")}


def run(*words, env=PLAIN):
    return subprocess.run([str(word) for word in words], env=env, text=True, capture_output=True, timeout=120)


class Switch(unittest.TestCase):
    def assert_runs(self, done):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("all right on: Gantry", done.stdout)

    def test_a_program_of_mpich_runs_as_it_is_and_mpiexec_says_so_once(self):
        done = run(MPIEXEC, "-n", 2, PROGRAMS / "mpich_program")
        self.assert_runs(done)
        self.assertEqual(done.stderr.count("runs on Gantry"), 1)

    def test_a_program_of_open_mpi_runs_as_it_is(self):
        done = run(MPIEXEC, "-n", 2, PROGRAMS / "openmpi_program")
        self.assert_runs(done)
        self.assertIn("Open MPI (libmpi.so.40) and runs on Gantry", done.stderr)

    def test_a_program_at_a_fixed_position_holds_copies_of_open_mpis_objects(self):
        done = run(MPIEXEC, "-q", "-n", 2, PROGRAMS / "openmpi_fixed_position")
        self.assert_runs(done)
        self.assertEqual(done.stderr, "")

    def test_quiet_says_nothing(self):
        self.assertEqual(run(MPIEXEC, "-q", "-n", 2, PROGRAMS / "mpich_program").stderr, "")

    def test_a_run_path_to_another_library_does_not_decide(self):
        done = run(MPIEXEC, "-n", 2, PROGRAMS / "mpich_run_path")
        self.assert_runs(done)
        self.assertIn("loaded before", done.stderr)

    def test_mpichs_library_has_its_older_name_too(self):
        done = run(MPIEXEC, "-n", 2, PROGRAMS / "mpich_older_name")
        self.assert_runs(done)
        self.assertIn("libmpich.so.12", done.stderr)

    def test_what_a_shell_starts_runs_too(self):
        self.assert_runs(run(MPIEXEC, "-n", 2, "sh", "-c", PROGRAMS / "mpich_program"))

    def test_programs_behind_a_colon_are_each_looked_at(self):
        self.assert_runs(run(MPIEXEC, "-n", 1, PROGRAMS / "mpich_program", ":", "-n", 1, PROGRAMS / "mpich_run_path"))

    def test_gantry_env_serves_other_launchers(self):
        exports = run(BUILD / "bin" / "gantry", "env", "--as", "mpich").stdout
        done = run("sh", "-c", f"{exports}\nldd {PROGRAMS / 'mpich_program'}")
        self.assertIn(f"libmpi.so.12 => {BUILD}/lib/gantry/mpich/libmpi.so.12", done.stdout)

    def test_a_program_of_two_mpis_does_not_start(self):
        done = run(MPIEXEC, "-n", 2, PROGRAMS / "mpich_of_two")
        self.assertEqual(done.returncode, 2)
        self.assertIn("loads two MPI libraries, libmpi.so.12 and libmpi.so.40", done.stderr)

    def test_a_second_mpi_library_in_the_process_is_an_error(self):
        decoy = BUILD / "tests" / "decoys" / "libmpi.so.40"
        done = run(MPIEXEC, "-n", 1, PROGRAMS / "mpich_second_library", decoy)
        self.assertNotEqual(done.returncode, 0)
        self.assertIn("holds two MPI libraries", done.stderr)
        self.assertIn(str(decoy), done.stderr)
        self.assertNotIn("it started", done.stdout)

    def test_the_standards_library_is_no_second_one(self):
        done = run(MPIEXEC, "-n", 1, PROGRAMS / "mpich_second_library", BUILD / "lib" / "libmpi_abi.so.1")
        self.assertEqual((done.returncode, done.stdout), (0, "it started\n"), done.stderr)


if __name__ == "__main__":
    unittest.main()
