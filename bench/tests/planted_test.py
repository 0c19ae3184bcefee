# SPDX-License-Identifier: BSD-3-Clause
"""A planted fault shows: a wrong byte ends each benchmark with a sentence, a planted delay is in its figures."""
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

from options_test import BUILD, run

HERE = Path(__file__).resolve().parent
DELAY_US = 5000
PAIRS = ("latency", "sendrecv", "bw", "bibw", "mr", "overlap")
ONE_SIDED = ("put", "get", "accumulate", "fetch_op", "cas")
COLLECTIVES = ("bcast", "gather", "scatter", "allgather", "alltoall", "reduce", "allreduce", "reduce_scatter", "scan", "exscan",
               "neighbor_allgather", "neighbor_alltoall", "fan_in", "fan_out", "pairs")


class Planted(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        library = (BUILD / "lib" / "libmpi_abi.so").read_bytes()
        if b"libasan.so" in library or b"libtsan.so" in library:
            raise unittest.SkipTest("a plain program cannot load a library with a sanitizer in it")
        cls.folder = tempfile.mkdtemp(prefix="gantry-planted-")
        cls.shim = f"{cls.folder}/planted.so"
        subprocess.run([BUILD / "bin" / "mpicc", "-O1", "-shared", "-fPIC", "-nostartfiles", HERE / "planted.c", "-o", cls.shim],
                       check=True, env=dict(os.environ, MPICC_CC=shutil.which("gcc") or "cc"))

    @classmethod
    def tearDownClass(cls):
        shutil.rmtree(cls.folder)

    def bench(self, planted, *words, ranks=2):
        return run(*words, job=ranks, LD_PRELOAD=self.shim, PLANTED=planted)

    def test_a_wrong_byte_of_a_message_ends_the_benchmark(self):
        for name in (*PAIRS, *ONE_SIDED):
            with self.subTest(name):
                size = "8" if name in ("fetch_op", "cas") else "64K" if name == "overlap" else "4K"
                code, out, err = self.bench("byte", name, "H", "H", "-m", size, "-i", "2")
                self.assertNotEqual(code, 0, out)
                self.assertIn("gantry-bench: rank ", err)

    def test_a_wrong_byte_of_a_collective_ends_the_benchmark(self):
        for name in COLLECTIVES:
            with self.subTest(name):
                code, out, err = self.bench("byte", name, "H", "-m", "4K", "-i", "2", ranks=3)
                self.assertNotEqual(code, 0, out)
                self.assertRegex(err, f"gantry-bench: rank [0-2]: {name} of 4096 bytes by Gantry: rank [0-2] has ")

    def test_a_wrong_byte_in_rows_and_one_between_them_end_the_benchmark(self):
        for name in ("latency", "sendrecv", "bw", "bibw", "mr"):
            for planted, sentence in (("byte", "wrong data in message"), ("between", "wrote between its rows, at byte 16")):
                with self.subTest(f"{name}, {planted}"):
                    code, out, err = self.bench(planted, name, "H", "H", "-m", "4K", "-i", "2", "--layout", "16:48")
                    self.assertNotEqual(code, 0, out)
                    self.assertIn(sentence, err)

    def test_a_wrong_byte_of_any_type_and_another_operation_end_the_benchmark(self):
        for kind in ("char", "int", "long", "float", "double"):
            with self.subTest(kind):
                code, out, err = self.bench("byte", "allreduce", "H", "-m", "4K", "-i", "2", "--type", kind, ranks=3)
                self.assertNotEqual(code, 0, out)
                self.assertRegex(err, "allreduce of 4096 bytes by Gantry: rank [0-2] has ")
        for op in ("sum", "max", "bor", "bxor"):
            with self.subTest(op):
                code, out, err = self.bench("op", "allreduce", "H", "-m", "4K", "-i", "2", "--op", op, ranks=3)
                self.assertNotEqual(code, 0, out)
                self.assertRegex(err, "allreduce of 4096 bytes by Gantry: rank [0-2] has ")

    def test_nothing_planted_is_no_fault(self):
        for name in ("latency", "put"):
            self.assertEqual(self.bench("nothing", name, "H", "H", "-m", "8", "-i", "2")[0], 0)
        self.assertEqual(self.bench("nothing", "bibw", "H", "H", "-m", "4K", "-i", "2", "--layout", "16:48")[0], 0)

    def test_a_delay_is_in_the_figures(self):
        for name in ("latency", "sendrecv", "put", "get"):
            with self.subTest(name):
                code, out, err = self.bench("delay", name, "H", "H", "-m", "16K", "-i", "2", "--json")
                self.assertEqual(code, 0, err)
                way = json.loads(out)["rows"][0]["ways"][0]
                # A round trip has two receives, a half of it one.
                self.assertGreaterEqual(way["low"] if "low" in way else way["value"], DELAY_US)
        for name in ("bcast", "alltoall", "reduce", "allreduce", "neighbor_alltoall", "fan_in", "pairs"):
            with self.subTest(name):
                code, out, err = self.bench("delay", name, "H", "-m", "4K", "-i", "2", "--json")
                self.assertEqual(code, 0, err)
                self.assertGreaterEqual(json.loads(out)["us"], DELAY_US)


if __name__ == "__main__":
    unittest.main()
