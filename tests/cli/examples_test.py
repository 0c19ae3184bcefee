# SPDX-License-Identifier: BSD-3-Clause
"""The programs of docs/examples: they compile with the wrapper and do what the pages say."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GANTRY_BUILD_FOLDER", ROOT / "build" / "release"))
STAND_IN = Path(__file__).resolve().parent / "cudart"


class Examples(unittest.TestCase):
    def setUp(self):
        library = (BUILD / "lib" / "libmpi_abi.so").read_bytes()
        if b"libasan.so" in library or b"libtsan.so" in library:
            self.skipTest("a plain program cannot load a library with a sanitizer in it")
        self.folder = Path(tempfile.mkdtemp(prefix="gantry-examples-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def compile(self, name, *more):
        program = self.folder / name
        done = subprocess.run([BUILD / "bin" / "mpicc", "-Wall", "-Wextra", "-Werror", ROOT / "docs" / "examples" / f"{name}.c",
                               "-o", program, *more], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
        self.assertEqual(done.returncode, 0, done.stdout)
        return program

    def compile_for_devices(self, name):
        return self.compile(name, f"-I{STAND_IN}", f"-L{BUILD / 'simgpu'}", "-l:libcudart.so.13")

    def run_job(self, *command, **env):
        done = subprocess.run([str(word) for word in command], text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=dict(os.environ, PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}", **env))
        self.assertEqual(done.returncode, 0, done.stdout)
        return done.stdout

    def explain(self, program):
        return self.run_job("gantry", "explain", "mpiexec", "--timeout", "100", "-n", "2", program,
                            LD_LIBRARY_PATH=str(BUILD / "simgpu"), SIMGPU="machine=h200,dev=2,scale=0")

    def test_the_page_shows_the_program(self):
        program = (ROOT / "docs" / "examples" / "exchange.c").read_text()
        page = (ROOT / "docs" / "user" / "getting-started.md").read_text()
        self.assertIn("```c\n" + program[program.index("#include"):] + "```\n", page)

    def test_hello_is_said_by_every_rank(self):
        said = self.run_job("mpiexec", "-n", "2", self.compile("hello"))
        self.assertEqual(sorted(said.splitlines()), ["rank 0 of 2", "rank 1 of 2"])

    def test_a_driver_that_is_named_but_not_there_is_warned_of(self):
        said = self.run_job("mpiexec", "-n", "2", self.compile("hello"), GANTRY_CUDA_LIBRARY="/nowhere/libcuda.so.1")
        self.assertIn("GANTRY_CUDA_LIBRARY: /nowhere/libcuda.so.1: No such file or directory", said)

    def test_a_record_of_paths_is_kept_where_a_file_for_it_is_named(self):
        self.run_job("mpiexec", "-n", "2", self.compile("hello"), GANTRY_EXPLAIN_FILE=str(self.folder / "paths-%r.json"))
        for rank in (0, 1):
            self.assertEqual(json.loads((self.folder / f"paths-{rank}.json").read_text())["rank"], rank)

    def test_explain_as_json_writes_nothing_else_to_standard_output(self):
        program = self.compile("hello")
        done = subprocess.run([str(BUILD / "bin" / "gantry"), "explain", "--json", str(BUILD / "bin" / "mpiexec"), "-n", "2", str(program)],
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=100)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(record["rank"] for record in json.loads(done.stdout)), [0, 1])
        self.assertIn("rank 1 of 2", done.stderr)

    def test_the_exchange_takes_the_direct_way(self):
        rows = self.explain(self.compile_for_devices("exchange"))
        self.assertRegex(rows, r"0->1 +device -> device +8 MiB +\d{3} +ipc ")
        self.assertNotIn("pipeline ", rows.replace("beat          pipeline", ""))
        self.assertIn("one copy between the GPUs", rows)

    def test_a_column_is_packed_on_its_way(self):
        rows = self.explain(self.compile_for_devices("column"))
        self.assertRegex(rows, r"0->1 1->0 +device -> device +32 KiB +\d+ +pipeline ")
        self.assertIn("kernel or copy engine (2D) -> slot", rows)

    def test_a_solver_that_loses_a_rank_ends_right_with_another_one(self):
        said = self.run_job("mpiexec", "--keep-going", "--timeout", "100", "-n", "4", self.compile_for_devices("survive"),
                            LD_LIBRARY_PATH=str(BUILD / "simgpu"), SIMGPU="machine=h200,dev=2,scale=0")
        self.assertEqual(sorted(line for line in said.splitlines() if line.startswith("part ")),
                         [f"part {part} of 4 is right" for part in range(4)], said)
        self.assertRegex(said, r"mpiexec: rank 1 of 4 .* was killed by signal 9 .*; the others go on")


if __name__ == "__main__":
    unittest.main()
