# SPDX-License-Identifier: BSD-3-Clause
"""The compiler wrappers of the build folder, which are the installed ones but for their place."""
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("GANTRY_BUILD_FOLDER", Path(__file__).resolve().parents[2] / "build" / "release"))
PROGRAM = """
#include <mpi.h>
int main(int argc, char** argv) {
    MPI_Init(&argc, &argv);
    MPI_Finalize();
    return 0;
}
"""


class Wrappers(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="gantry mpicc "))
        self.addCleanup(shutil.rmtree, self.folder)
        (self.folder / "a program.c").write_text(PROGRAM)
        self.env = {name: value for name, value in os.environ.items() if name not in ("GANTRY_CC", "GANTRY_CXX")}

    def run_wrapper(self, name, *arguments, **env):
        return subprocess.run([str(BUILD / "bin" / name), *arguments], cwd=self.folder, env=dict(self.env, **env), text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def needs_library(self):
        library = BUILD / "lib" / "libmpi_abi.so"
        if not library.exists():
            self.skipTest("libmpi_abi.so is not built")
        if b"libasan.so" in library.read_bytes() or b"libtsan.so" in library.read_bytes():
            self.skipTest("a plain program cannot load a library with a sanitizer in it")

    def test_show_prints_the_command_and_runs_nothing(self):
        done = self.run_wrapper("mpicc", "-show", "absent.c", "-o", "absent")
        self.assertEqual(done.returncode, 0)
        self.assertIn(f"-I{BUILD}/include absent.c -o absent", done.stdout)
        self.assertIn("-lmpi_abi", done.stdout)
        self.assertFalse((self.folder / "absent").exists())

    def test_compiling_without_linking_adds_no_library(self):
        self.assertNotIn("-lmpi_abi", self.run_wrapper("mpicc", "-show", "-c", "a.c").stdout)

    def test_the_questions_of_build_systems_are_answered(self):
        for question, answer in (("-showme:incdirs", "/include"), ("-showme:libdirs", "/lib"), ("-showme:libs", "mpi_abi"),
                                 ("-compile-info", "-I"), ("-link-info", "-lmpi_abi")):
            with self.subTest(question):
                done = self.run_wrapper("mpicc", question)
                self.assertEqual(done.returncode, 0)
                self.assertIn(answer, done.stdout)

    def test_another_compiler_can_be_named(self):
        self.assertTrue(self.run_wrapper("mpicc", "-show", GANTRY_CC="other-cc").stdout.startswith("other-cc "))
        self.assertTrue(self.run_wrapper("mpicxx", "-cxx=other-c++", "-show").stdout.startswith("other-c++ "))

    def test_a_question_to_the_compiler_is_not_a_link(self):
        done = self.run_wrapper("mpicc", "--version")
        self.assertEqual(done.returncode, 0, done.stdout)

    def test_without_a_file_it_says_so_and_help_says_what_is_its_own(self):
        for wrapper in ("mpicc", "mpicxx"):
            bare = self.run_wrapper(wrapper)
            self.assertEqual((bare.returncode, bare.stdout), (1, f"{wrapper}: there is no file to compile; {wrapper} --help says more\n"))
            helped = self.run_wrapper(wrapper, "--help")
            self.assertEqual(helped.returncode, 0, helped.stdout)
            self.assertIn(f"{wrapper} -show", helped.stdout)

    def test_the_compilers_exit_status_is_passed_on(self):
        self.assertNotEqual(self.run_wrapper("mpicc", "-c", "absent.c").returncode, 0)

    def test_a_program_with_a_space_in_its_name_compiles_and_runs(self):
        self.needs_library()
        for wrapper in ("mpicc", "mpicc_abi"):
            done = self.run_wrapper(wrapper, "a program.c", "-o", "a program")
            self.assertEqual((done.returncode, done.stdout), (0, ""))
            self.assertEqual(subprocess.run([self.folder / "a program"], env=self.env).returncode, 0)

    def test_the_header_is_clean_in_cpp_too(self):
        self.needs_library()
        shutil.copy(self.folder / "a program.c", self.folder / "program.cpp")
        done = self.run_wrapper("mpicxx", "-Wall", "-Wextra", "-Wpedantic", "program.cpp", "-o", "program")
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_the_loader_can_choose_another_library(self):
        self.needs_library()
        self.run_wrapper("mpicc", "a program.c", "-o", "program")
        dynamic = subprocess.run(["readelf", "-d", "program"], cwd=self.folder, text=True, capture_output=True).stdout
        self.assertIn("RUNPATH", dynamic)  # and not RPATH, which would win over LD_LIBRARY_PATH
        self.assertNotIn("(RPATH)", dynamic)


if __name__ == "__main__":
    unittest.main()
