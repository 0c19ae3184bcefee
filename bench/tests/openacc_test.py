# SPDX-License-Identifier: BSD-3-Clause
"""OpenACC memory on the simulated GPU: the placement A of gantry-bench, and programs that GCC compiles with -fopenacc. GCC's plugin for
NVIDIA devices is a package of its own (Debian: libgomp-plugin-nvptx1); without it the tests that need it are not run, and say so."""
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

from options_test import BUILD, MPIEXEC, run

HERE = Path(__file__).resolve().parent
sys.path.append(str(HERE.parents[1] / "apps" / "tests"))
import openacc_plugin  # noqa: E402

EXAMPLE = HERE.parents[1] / "docs" / "examples" / "openacc.c"


def has_compiler(folder):
    source = Path(folder) / "probe.c"
    source.write_text("#include <openacc.h>\nint main(void) { return acc_get_device_type() < 0; }\n")
    gcc = shutil.which("gcc")
    return bool(gcc) and subprocess.run([gcc, "-fopenacc", "-foffload=disable", source, "-o", folder + "/probe"],
                                        capture_output=True).returncode == 0


class OpenAcc(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = folder.name

    def needs(self, plugin=False, compiler=False):
        if plugin and not openacc_plugin.is_there():
            self.skipTest(openacc_plugin.WITHOUT)
        if compiler and not has_compiler(self.folder):
            self.skipTest("not run: there is no GCC that takes -fopenacc")

    def build(self, source):
        library = (BUILD / "lib" / "libmpi_abi.so").read_bytes()
        if b"libasan.so" in library or b"libtsan.so" in library:
            self.skipTest("a plain program cannot load a library with a sanitizer in it")
        program = f"{self.folder}/{source.stem}"
        # Without GCC's offload compiler: what runs on a device here is only the library's copies.
        done = subprocess.run([BUILD / "bin" / "mpicc", "-O1", "-fopenacc", "-foffload=disable", source, "-o", program],
                              capture_output=True, text=True, env=dict(os.environ, MPICC_CC=shutil.which("gcc")))
        self.assertEqual(done.returncode, 0, done.stderr)
        return program

    def job(self, program, ranks, **env):
        return subprocess.run([MPIEXEC, "-n", str(ranks), program], capture_output=True, text=True, timeout=200,
                              env=dict(os.environ, SIMGPU=f"machine=h200,dev=2,scale=0,run=acc{os.getpid()}", **env))

    def test_every_byte_arrives_from_and_to_openacc_memory(self):
        self.needs(plugin=True)
        for words in (("latency", "A", "A"), ("latency", "A", "H"), ("latency", "D", "A"), ("put", "A", "A")):
            code, out, err = run(*words, "-m", "9,300001", "-i", "2", job=2)
            self.assertEqual(code, 0, out + err)

    def test_memory_of_acc_malloc_and_of_host_data_travels(self):
        self.needs(plugin=True, compiler=True)
        done = self.job(self.build(HERE / "openacc_copies.c"), 2)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("0 wrong", done.stdout)

    def test_the_example_keeps_its_heat_on_the_processor_too(self):
        self.needs(compiler=True)
        done = self.job(self.build(EXAMPLE), 2, ACC_DEVICE_TYPE="host")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn("heat 1000.000000", done.stdout)

    def test_a_machine_without_a_device_for_openacc_says_so(self):
        code, out, err = run("latency", "A", "A", "-m", "8", job=2, GANTRY_CUDA_LIBRARY="/nowhere/libcuda.so.1")
        self.assertNotEqual(code, 0)
        self.assertIn("no CUDA driver", out + err)
