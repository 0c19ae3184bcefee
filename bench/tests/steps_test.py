# SPDX-License-Identifier: BSD-3-Clause
"""bench/steps on the simulated GPU: every operation, wait and kind of buffers arrives whole, and what is printed; never how fast."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("GANTRY_BUILD_FOLDER", Path(__file__).resolve().parents[2] / "build" / "release"))
SCRIPT = Path(__file__).resolve().parents[1] / "steps"


def environment(**more):
    return dict(os.environ, SIMGPU=f"machine=h200,dev=2,scale=0,run=steps{os.getpid()}",
                LD_LIBRARY_PATH=f"{BUILD / 'lib'}:{BUILD / 'simgpu'}", **more)


class Steps(unittest.TestCase):
    def steps(self, *words, ranks=2):
        done = subprocess.run([BUILD / "bin" / "mpiexec", "-n", str(ranks), BUILD / "bench" / "steps", *words], env=environment(),
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=200)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        return [json.loads(line) for line in done.stdout.splitlines()]

    def test_every_operation_is_checked_with_every_wait_kept_and_fresh(self):
        for operation, *more in (("exchange",), ("exchange", "--wait", "device", "--fresh"), ("allreduce", "--wait", "default"),
                                 ("alltoall", "--fresh", "--overlap"), ("exchange", "--overlap", "--compute", "5"), ("none",)):
            lines = self.steps(operation, *more, "--steps", "6", "8", "64K")
            self.assertEqual([(line["operation"], line["bytes"], line["place_in_job"]) for line in lines],
                             [(operation, 8, 0), (operation, 65536, 1)])

    def test_sums_begin_with_the_first_step_and_the_curve_has_all(self):
        line, = self.steps("--steps", "21", "--curve", "1K")
        self.assertEqual(len(line["curve_us"]), 21)
        for count in (1, 5, 20):
            self.assertAlmostEqual(line[f"first_{count}_us"], sum(line["curve_us"][:count]), delta=0.1 * count)
        self.assertNotIn("first_100_us", line)

    def test_a_rank_sees_one_gpu_or_all_and_three_ranks_exchange_in_a_ring(self):
        self.assertEqual(self.steps("--visible", "one", "--steps", "4", "8")[0]["gpus"], 1)
        self.assertEqual(self.steps("--visible", "all", "--steps", "4", "1K", ranks=3)[0]["gpus"], 2)

    def test_the_script_runs_tests_by_name_and_prints_a_table_also_of_files(self):
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "steps.jsonl"
            done = subprocess.run([SCRIPT, "--prefix", BUILD, "--steps", "5", "--no-idle-timeout", "--visible", "all", "--only", "allreduce, stream, apart 1K",
                                   "--out", out], env=environment(), capture_output=True, text=True, timeout=200)
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            lines = [json.loads(line) for line in out.read_text().splitlines()]
            self.assertEqual([line["column"] for line in lines], ["Gantry", "Gantry, no idle timeout"])
            again = subprocess.run([SCRIPT, "--table", out], capture_output=True, text=True, timeout=60)
            self.assertEqual(again.stdout, done.stdout)
            self.assertRegex(done.stdout, r"(?m)^allreduce, stream, apart 1K +all +1024 first_5_us +[0-9.]+ +[0-9.]+")


if __name__ == "__main__":
    unittest.main()
