# SPDX-License-Identifier: BSD-3-Clause
"""bench/programs without a GPU: programs that print what the real ones do, and a tree that has their Makefiles' form."""
import json
import subprocess
import tempfile
import unittest
from pathlib import Path

PROGRAMS = Path(__file__).resolve().parents[1] / "programs"

HEFFTE = """
Num runs:     5
Time per run: 0.00195 (s)
Tolerance:    1e-11
Max error:    {error}
"""
COMB = """Starting test Comm mpi Mesh cuda device Buffers cuda device cuda device
pre-comm:   num 10 avg 0.000010000 s min 0.000010000 s max 0.000010000 s
bench-comm: num 2 avg 0.000650000 s min 0.000640000 s max 0.000660000 s
Starting test Comm mpi Mesh cuda device Buffers mpi_type device mpi_type device
bench-comm: num 2 avg 0.010000000 s min 0.000640000 s max 0.000660000 s
"""
OSU = """# OSU MPI-CUDA Latency Test v7.4
# Size       Avg Latency(us)        Validation
8                       7.50              Pass
65536                   9.25              {verdict}
"""


class Programs(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)
        # A launcher of one rank: "-n N" and then the words.
        self.script("prefix/bin/mpiexec", 'shift 2; MPI_LOCALRANKID=1 exec "$@"')

    def script(self, name, text):
        file = self.folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(f"#!/bin/sh\n{text}\n")
        file.chmod(0o755)

    def prints(self, program, text, then=""):
        (self.folder / f"{program}.txt").write_text(text)
        self.script(f"out/{program}", f"cat {self.folder}/{program}.txt\n{then}")

    def run_programs(self, *words):
        done = subprocess.run([PROGRAMS / "run", "--programs", self.folder / "out", "--prefix", self.folder / "prefix", "--short",
                               "--out", self.folder / "lines", *words], capture_output=True, text=True, timeout=60)
        return done, [json.loads(line) for line in (self.folder / "lines").read_text().splitlines()]

    def test_times_are_read_and_wrong_results_named(self):
        self.prints("speed3d_c2c", HEFFTE.format(error="3e-15"))
        done, lines = self.run_programs("--only", "-p2p 256", "--visible", "all")
        self.assertEqual([(line["row"], line["value"], line["unit"]) for line in lines], [("heFFTe c2c double -p2p 256^3", 1.95, "ms")])
        self.assertEqual(done.returncode, 0, done.stderr)
        self.prints("speed3d_c2c", HEFFTE.format(error="0.5"))
        done, lines = self.run_programs("--only", "-p2p 256", "--visible", "all")
        self.assertEqual((done.returncode, lines[0]["value"]), (1, None))
        self.assertRegex(done.stdout, r"(?m)^heFFTe c2c double -p2p 256\^3 .* wrong *$")
        self.assertIn("its error is 0.5, above 1e-11", done.stderr)

    def test_a_row_for_each_test_of_comb_and_each_size_of_osu(self):
        self.prints("comb", "", f"cat > Comb_00_summary <<'END'\n{COMB}END")
        _, lines = self.run_programs("--only", "Comb", "--visible", "one")
        self.assertEqual([line["value"] for line in lines], [0.13, 2.0])
        self.prints("osu_latency", OSU.format(verdict="Fail"))
        done, lines = self.run_programs("--only", "osu_latency", "--visible", "one")
        self.assertEqual([(line["row"], line["value"]) for line in lines], [("OSU osu_latency 8 B", 7.5), ("OSU osu_latency 65536 B", None)])
        self.assertEqual(done.returncode, 1)

    def test_a_rank_sees_its_gpu_or_all_and_an_exit_status_fails(self):
        line = "mpi, 2048, 2048, 100, 1, 2, 1, 0.0$((${CUDA_VISIBLE_DEVICES:-4} + 1)), 0.5"
        self.script("out/jacobi_mpi", f'echo "{line}"')
        done, lines = self.run_programs("--only", "Jacobi mpi 2048")
        self.assertEqual([(line["visible"], line["value"]) for line in lines], [("all", 50.0), ("one", 20.0)])
        table = subprocess.run([PROGRAMS / "run", "--table", self.folder / "lines"], capture_output=True, text=True, timeout=60)
        self.assertEqual(table.stdout, done.stdout)
        self.script("out/jacobi_mpi", f'echo "{line}"; exit 3')
        done, lines = self.run_programs("--only", "Jacobi mpi 2048", "--visible", "all")
        self.assertEqual((done.returncode, lines[0]["value"]), (1, None))
        self.assertIn("exit status 3", done.stderr)

    def test_programs_that_are_not_there_are_named(self):
        (self.folder / "out").mkdir()
        done, lines = self.run_programs("--only", "Comb")
        self.assertEqual((done.returncode, lines), (1, []))
        self.assertIn("comb is not there", done.stderr)

    def test_a_tree_is_copied_and_built_and_only_stripped_programs_come_out(self):
        for variant in ("mpi", "mpi_overlap"):
            (self.folder / "tree" / variant).mkdir(parents=True)
            (self.folder / "tree" / variant / "Makefile").write_text("jacobi:\n\techo 'int main() { return 0; }' | cc -g -x c - -o jacobi\n")
        done = subprocess.run([PROGRAMS / "build", "--mpicxx", "/bin/false", "--out", self.folder / "built", "--jacobi", self.folder / "tree"],
                              capture_output=True, text=True, timeout=120)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(sorted(path.name for path in (self.folder / "built").iterdir()), ["jacobi_mpi", "jacobi_mpi_overlap"])
        self.assertEqual(sorted(path.name for path in (self.folder / "tree" / "mpi").iterdir()), ["Makefile"])
        refused = subprocess.run([PROGRAMS / "build", "--mpicxx", "/bin/false", "--out", self.folder / "built", "--heffte", self.folder / "tree"],
                                 capture_output=True, text=True, timeout=120)
        self.assertEqual(refused.returncode, 1)
        self.assertIn("heffte: not built", refused.stderr)


if __name__ == "__main__":
    unittest.main()
