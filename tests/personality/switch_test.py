# SPDX-License-Identifier: BSD-3-Clause
"""How a program of another MPI comes to run on Gantry: mpiexec's switch, `gantry env`, and what is refused."""
import os
import subprocess
import sys
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

    def test_extensions_of_both_run(self):
        for mpi in ("mpich", "openmpi"):
            self.assert_runs(run(MPIEXEC, "-n", 2, PROGRAMS / f"{mpi}_extensions"))

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

    def test_a_run_path_to_a_fortran_library_does_not_decide(self):
        done = run(MPIEXEC, "-n", 1, PROGRAMS / "mpich_run_path_to_fortran", env=dict(PLAIN, LD_BIND_NOW="1"))
        self.assertEqual((done.returncode, done.stdout), (0, "it ran\n"), done.stderr)

    def test_a_program_that_names_fortran_and_cxx_libraries_and_calls_neither_runs(self):
        for mpi in ("mpich", "openmpi"):
            done = run(MPIEXEC, "-n", 2, PROGRAMS / f"{mpi}_other_languages", env=dict(PLAIN, LD_BIND_NOW="1"))
            self.assertEqual((done.returncode, done.stdout), (0, "it ran\nit ran\n"), done.stderr)

    def test_a_call_from_fortran_or_cxx_says_what_is_missing(self):
        for mpi in ("mpich", "openmpi"):
            for part, function, language in (("fortran", "MPI_Barrier", "Fortran"), ("fortran 2008", "MPI_Barrier", "Fortran"),
                                             ("c++", "MPI::Win::Free()", "C++")):
                done = run(MPIEXEC, "-n", 1, PROGRAMS / f"{mpi}_other_languages", part)
                self.assertNotEqual(done.returncode, 0)
                self.assertIn(f"calls {function} of its MPI's {language} library, which Gantry has none for", done.stderr)

    def test_every_library_of_the_other_mpi_loads(self):
        for mpi in ("mpich", "openmpi"):
            libraries = sorted((BUILD / "lib" / "gantry" / mpi).iterdir())
            self.assertGreater(len(libraries), 5)
            script = "import ctypes, sys\nfor library in sys.argv[1:]: ctypes.CDLL(library)"
            done = run(sys.executable, "-c", script, *libraries, env=dict(PLAIN, LD_BIND_NOW="1"))
            self.assertEqual(done.returncode, 0, done.stderr)

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

    def test_whether_device_pointers_may_be_passed_is_told_before_init_and_needs_no_driver(self):
        script = """import ctypes, sys
mpi = ctypes.CDLL(sys.argv[1])
print(mpi.MPIX_Query_cuda_support(), "libcuda" in open("/proc/self/maps").read())
mpi.MPI_Init(None, None)
print(mpi.MPIX_Query_cuda_support(), "libcuda" in open("/proc/self/maps").read())
mpi.MPI_Finalize()"""
        libraries = ("lib/libmpi_abi.so.1", "lib/gantry/mpich/libmpi.so.12", "lib/gantry/openmpi/libmpi.so.40")
        for switch, answers in (("on", "1 False\n1 False\n"), ("off", "1 False\n0 False\n")):
            for library in libraries:
                done = run(sys.executable, "-c", script, BUILD / library, env=dict(PLAIN, GANTRY_CUDA=switch))
                self.assertEqual((done.returncode, done.stdout), (0, answers), f"{library}: {done.stderr}")

    def test_integers_that_are_no_handles_are_refused(self):
        done = run(MPIEXEC, "-q", "-n", 1, PROGRAMS / "mpich_no_handles")
        self.assertEqual((done.returncode, done.stdout), (0, "0 were taken for handles\n"), done.stderr)

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
