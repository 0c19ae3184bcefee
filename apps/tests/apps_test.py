# SPDX-License-Identifier: BSD-3-Clause
"""The applications as a user runs them, on the host and on the simulated GPU: every exchange, decomposition and number of ranks gives the
same bits; the physics is right; a run goes on from a checkpoint; mistakes are said."""
import json
import os
import re
import struct
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree
import zlib
from pathlib import Path

import openacc_plugin

BUILD = Path(os.environ.get("GANTRY_BUILD_FOLDER", Path(__file__).resolve().parents[2] / "build" / "release"))
OPENACC = "openacc"
EXCHANGES = ["copies", "staged", "pipelined", "packed", "datatypes", "neighbours", "fence", "pscw", "persistent", "partitioned"]


def run(ranks, program, *words, **env):
    """(exit status, standard output, standard error)"""
    command = [str(BUILD / "bin" / "mpiexec"), "-n", str(ranks), str(BUILD / "bin" / program), *map(str, words)]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280,
                          env=dict(os.environ, SIMGPU=f"machine=h200,dev=2,scale=0,run=apps{os.getpid()}", **env))
    return done.returncode, done.stdout, done.stderr


def rows(text):
    """Of the table: exchange -> its words."""
    return {line.split()[0]: line.split() for line in text.splitlines() if line.split() and line.split()[0] in (*EXCHANGES, OPENACC)
            and re.fullmatch(r"[0-9a-f]{16}", line.split()[-1])}


def number_behind(words, text):
    return float(re.search(re.escape(words) + r"\s+([-+0-9.e]+)", text)[1])


class Apps(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="gantry-apps-"))
        self.addCleanup(lambda: [file.unlink() for file in self.folder.iterdir()] and None or self.folder.rmdir())

    def good(self, *words, **env):
        code, out, err = run(*words, **env)
        self.assertEqual(code, 0, out + err)
        return out

    def refused(self, sentence, *words):
        code, out, err = run(*words)
        self.assertNotEqual(code, 0)
        self.assertRegex(err, sentence)
        self.assertEqual(len(re.findall(sentence, err)), 1, f"every rank says it:\n{err}")

    def fields_of(self, *words):
        """The checksum that all exchanges of a run agree on."""
        table = rows(self.good(*words))
        self.assertEqual(len({row[-1] for row in table.values()}), 1, table)
        return table.popitem()[1][-1]

    # --- the same bits ---
    LBM = ("lbm", "--cells", 16, 12, 8, "--steps", 5, "--report", 0, "--exchange")
    AWP = ("awp", "--cells", 16, 20, 24, "--steps", 6, "--delay", 0, "--spacing", 200, "--report", 0, "--exchange")

    def test_lbm_is_the_same_by_every_exchange_on_any_ranks(self):
        alone = self.fields_of(1, *self.LBM, "datatypes", "--memory", "host")
        for ranks, *more in ((2, "--decomposition", "1d", "--memory", "device"),
                             (4, "--decomposition", "3d", "--memory", "device", "--overlap"),
                             (4, "--decomposition", "2x1x2", "--memory", "host", "--overlap"),
                             (8, "--decomposition", "2x2x2", "--memory", "host")):
            with self.subTest(ranks=ranks, more=more):
                self.assertEqual(self.fields_of(ranks, *self.LBM, "all", *more), alone)

    def test_lbm_in_floats_and_in_separate_allocations(self):
        for precision in ("double", "float"):
            alone = self.fields_of(1, *self.LBM, "packed", "--memory", "host", "--precision", precision)
            self.assertEqual(self.fields_of(4, *self.LBM, "all", "--memory", "device", "--precision", precision,
                                            "--allocation", "separate"), alone)

    def test_openacc_memory_gives_the_same_bits(self):
        if not (BUILD / "bin" / "apps.openacc.so").exists():
            self.refused("needs a compiler that knows OpenACC", 2, *self.LBM, "openacc", "--memory", "host")
            self.skipTest("not run: the compiler did not know OpenACC (GCC does)")
        for program, more in ((self.LBM, ("--decomposition", "3d")), (self.AWP, ())):
            alone = self.fields_of(1, *program, "datatypes", "--memory", "host")
            for memory in ("host", "device"):
                with self.subTest(f"{program[0]}, {memory}"):
                    if memory == "device" and not openacc_plugin.is_there():
                        self.refused("sees no such NVIDIA device", 2, *program, "openacc", "--memory", "device")
                        self.skipTest(openacc_plugin.WITHOUT)
                    out = self.good(4, *program, "openacc,packed,datatypes", "--memory", memory, "--overlap", *more)
                    self.assertEqual({row[-1] for row in rows(out).values()}, {alone}, out)
                    self.assertIn("openacc", rows(out))

    def test_awp_is_the_same_by_every_exchange_on_any_ranks(self):
        alone = self.fields_of(1, *self.AWP, "datatypes", "--memory", "host")
        for ranks, *more in ((2, "--memory", "device", "--overlap"), (4, "--memory", "device"),
                             (4, "--decomposition", "2x1x2", "--memory", "host", "--overlap"),
                             (8, "--decomposition", "3d", "--memory", "host")):
            with self.subTest(ranks=ranks, more=more):
                self.assertEqual(self.fields_of(ranks, *self.AWP, "all", *more), alone)

    def test_a_message_a_neighbour_and_phase(self):
        # 3 phases to 6 faces, and 12 edges once; slabs: 3 phases to 2 neighbours, 8 planes each way with their halos.
        out = rows(self.good(8, *self.LBM, "packed", "--memory", "host", "--decomposition", "2x2x2"))
        self.assertEqual(out["packed"][-3], "30")
        out = rows(self.good(2, *self.LBM, "packed", "--memory", "host", "--decomposition", "1d"))
        self.assertEqual(out["packed"][-3:-1], ["6", str(2 * 8 * (16 + 2) * (12 + 2) * 8)])
        out = rows(self.good(4, *self.AWP, "packed", "--memory", "host"))
        y, z = 4 * (16 + 8) * 12, 4 * (16 + 8) * (10 + 8)  # corners go with the planes across z
        self.assertEqual(out["packed"][-3:-1], ["2", str(3 * 4 * (y + z))])

    # --- physics ---
    def test_lbm_keeps_mass_and_meets_the_golden_pressure(self):
        out = self.good(2, "lbm", "--steps", 100, "--report", 0, "--memory", "host")
        # Two independent programs give 1.513837e-3 and 1.513832e-3.
        self.assertAlmostEqual(number_behind("pressure jump", out) / 1.513837e-3, 1, delta=1e-5)
        self.assertLess(abs(number_behind("order", out)), 1e-12)
        self.assertLess(abs(number_behind("mass", out)), 1e-11)

    def test_lbm_meets_laplaces_law(self):
        for radius, cells in ((5, 20), (6, 24)):
            out = self.good(2, "lbm", "--cells", cells, cells, cells, "--steps", 600, "--report", 0, "--memory", "host")
            self.assertAlmostEqual(number_behind("pressure jump", out) * radius / (2 * 0.01), 1, delta=0.07)
            self.assertLess(number_behind("most speed", out), 2e-7)

    def test_awp_meets_the_exact_seismograms(self):
        for mechanism, most in (("explosion", 3), ("shear", 3)):
            out = self.good(2, "awp", "--cells", 40, 40, 40, "--spacing", 200, "--sponge", 0, "--steps", 75, "--report", 0,
                            "--memory", "host", "--mechanism", mechanism, "--seismogram", self.folder / "s.csv")
            self.assertLess(number_behind("exact seismogram", out), most)
            lines = (self.folder / "s.csv").read_text().splitlines()
            self.assertEqual((len(lines), lines[0]), (76, "time,u,v,w,u_exact,v_exact,w_exact"))

    # --- files ---
    def test_lbm_goes_on_from_a_checkpoint_on_other_ranks(self):
        base = ("lbm", "--cells", 16, 12, 8, "--report", 0, "--memory", "host")
        whole = self.fields_of(1, *base, "--steps", 7)
        file = self.folder / "state"
        self.good(4, *base, "--steps", 3, "--checkpoint", file)
        self.assertEqual(self.fields_of(2, *base, "--steps", 4, "--restart", file, "--overlap"), whole)
        self.refused("other physical parameters", 2, *base, "--steps", 1, "--restart", file, "--sigma", 0.02)
        self.refused("16 x 12 x 8 cells", 2, "lbm", "--cells", 8, 8, 8, "--steps", 1, "--restart", file)
        self.refused("no checkpoint of this program", 2, "awp", "--cells", 16, 12, 8, "--steps", 1, "--restart", file)

    def test_awp_goes_on_from_a_checkpoint_on_other_ranks(self):
        base = ("awp", "--cells", 16, 20, 24, "--delay", 0, "--report", 0, "--memory", "device")
        whole = self.fields_of(1, *base, "--steps", 8)
        file = self.folder / "state"
        out = self.good(2, *base, "--steps", 4, "--checkpoint", file, "--checkpoint-every", 2)
        self.assertIn(f"step 2 is in {file}", out)
        self.assertEqual(self.fields_of(4, *base, "--steps", 4, "--restart", file), whole)

    def test_pictures(self):
        picture = self.folder / "phi.png"
        self.good(2, "lbm", "--cells", 16, 12, 8, "--steps", 1, "--memory", "host", "--picture", picture)
        png = picture.read_bytes()
        self.assertEqual(png[:8], b"\x89PNG\r\n\x1a\n")
        width, height = struct.unpack(">II", png[16:24])
        self.assertEqual((width, height), (16 * 24, 8 * 24))
        size = struct.unpack(">I", png[33:37])[0]
        data = zlib.decompress(png[41:41 + size])
        self.assertEqual(zlib.crc32(png[37:41 + size]), struct.unpack(">I", png[41 + size:45 + size])[0])
        self.assertEqual(len(data), height * (1 + 3 * width))
        # A drop in the middle is red, what is around it blue.
        row = data[(height // 2) * (1 + 3 * width) + 1:][:3 * width]
        middle, edge = row[3 * (width // 2):][:3], row[:3]
        self.assertGreater(middle[0], middle[2])
        self.assertGreater(edge[2], edge[0])
        picture = self.folder / "s.svg"
        self.good(1, "awp", "--cells", 12, 12, 12, "--steps", 5, "--memory", "host", "--seismogram", picture)
        root = xml.etree.ElementTree.parse(picture).getroot()
        self.assertEqual(len(root.findall("{http://www.w3.org/2000/svg}polyline")), 6)

    # --- a user's mistakes ---
    def test_mistakes_are_said_once_and_say_what_helps(self):
        self.refused("9 along z cannot be divided among 2 ranks", 2, "lbm", "--cells", 8, 8, 9, "--decomposition", "1d")
        self.refused("a block would have 1 cells along z, and its halo needs 2", 4, "lbm", "--cells", 8, 8, 4, "--decomposition", "1d")
        self.refused("is for 8 ranks, and there are 2", 2, "lbm", "--decomposition", "2x2x2")
        self.refused("--decomposition 4d is none", 2, "lbm", "--decomposition", "4d")
        self.refused("--exchange carrier-pigeon is none of: all, copies", 2, "lbm", "--exchange", "carrier-pigeon")
        self.refused("--exchange fence needs --allocation slab", 2, "lbm", "--exchange", "fence", "--allocation", "separate")
        self.refused("more than 2147483647 cells", 2, "lbm", "--cells", 4096, 4096, 4096)
        self.refused("--tau-n must be above 0.5", 2, "lbm", "--tau-n", 0.4)
        self.refused("--dt 1 is not stable: at most 0.00", 2, "awp", "--dt", 1)
        self.refused("--receiver 99 is outside", 2, "awp", "--receiver", 99, 0, 0)
        self.refused("lbm --help", 2, "lbm", "--colour", "red")
        self.refused("--cells: takes a number above 0, not '0'", 2, "lbm", "--cells", 0, 8, 8)
        for option in ("--picture", "--json", "--checkpoint"):
            self.refused(f"{option} /nowhere/file: there is no folder /nowhere", 2, "lbm", option, "/nowhere/file")
        self.refused("say .svg for a picture or .csv for a table", 2, "awp", "--seismogram", "file.txt")

    def test_without_a_gpu_it_is_the_host(self):
        out = self.good(1, *self.LBM, "datatypes", GANTRY_CUDA_LIBRARY="/nowhere/libcuda.so.1")
        self.assertIn("on the host", out)
        code, _, err = run(1, *self.LBM, "datatypes", "--memory", "device", GANTRY_CUDA_LIBRARY="/nowhere/libcuda.so.1")
        self.assertNotEqual(code, 0)
        self.assertIn("--memory device needs a GPU", err)

    def test_help_names_every_exchange(self):
        for program in ("lbm", "awp"):
            out = self.good(2, program, "--help")
            self.assertEqual(out.count("--decomposition"), 1)
            for name in EXCHANGES:
                self.assertIn(name, out)

    def test_the_table_as_json(self):
        file = self.folder / "run.json"
        out = self.good(2, *self.LBM, "packed,V4", "--memory", "host", "--json", file)
        document, table = json.loads(file.read_text()), rows(out)
        self.assertEqual((document["ranks"], document["timed_steps"]), (2, 5))
        self.assertEqual([row["exchange"] for row in document["exchanges"]], ["packed", "datatypes"])
        for row in document["exchanges"]:
            self.assertEqual([str(row[key]) for key in ("messages", "bytes", "fields")], table[row["exchange"]][-3:])
            self.assertAlmostEqual(row["part_ms"]["compute"], float(table[row["exchange"]][3]), delta=1e-3)

    def test_progress_while_it_runs(self):
        out = self.good(2, "lbm", "--cells", 8, 8, 8, "--steps", 4, "--report", 2, "--memory", "host")
        self.assertEqual(re.findall(r"step (\d) of 4: pressure jump", out), ["2", "4"])


if __name__ == "__main__":
    unittest.main()
