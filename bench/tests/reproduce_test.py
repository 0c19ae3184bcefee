# SPDX-License-Identifier: BSD-3-Clause
"""gantry reproduce and gantry scale as a user calls them."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ["GANTRY_BUILD_FOLDER"])


def gantry(*words):
    return subprocess.run([BUILD / "bin" / "gantry", *words], capture_output=True, text=True)


class Reproduce(unittest.TestCase):
    def test_rows_are_printed_with_their_verdict_and_the_page_needs_no_network(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "page.html"
            done = gantry("reproduce", "--rows", "15,16,17", "--no-processes", "--html", str(page))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout, r"15  two ports of one adapter.* 1\.37 x .*holds")
            self.assertRegex(done.stdout, r"17  other MPI libraries.*not shown here")
            self.assertIn("world: other libraries do not run in the world", done.stdout)
            text = page.read_text()
            self.assertIn("<svg", text)
            for elsewhere in ("src=", "href=", "@import", "url("):
                self.assertNotIn(elsewhere, text)

    def test_processes_on_the_simulated_gpu_are_a_column_of_their_own(self):
        done = gantry("reproduce", "--rows", "14", "--scale", "1", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        row = json.loads(done.stdout)[0]
        self.assertGreater(row["world"], 0)
        self.assertLessEqual(row["processes_low"], row["processes"])
        self.assertLessEqual(row["processes"], row["processes_high"])

    def test_a_row_without_processes_says_why_in_their_column(self):
        done = gantry("reproduce", "--rows", "2,4,12,15,16,17", "--json")
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        for row in json.loads(done.stdout):
            self.assertTrue(row["processes"] is None and row["processes_cell"].startswith("no "), row)

    def test_scale_prints_a_table_for_the_cluster_that_is_named(self):
        with tempfile.TemporaryDirectory() as folder:
            page = Path(folder) / "scale.html"
            done = gantry("scale", "--cluster", "h200-ndr", "--ranks", "8", "--json", "--html", str(page))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            rows = json.loads(done.stdout)
            self.assertEqual({row["application"] for row in rows if "application" in row}, {"LBM-3D", "LBM-1D", "AWP"})
            self.assertEqual({row["ranks"] for row in rows}, {8})
            self.assertIn("<svg", page.read_text())

    def test_what_is_not_there_is_named(self):
        for words, sentence in ((("scale", "--cluster", "cray"), "cray not in {c2050-qdr"),
                                (("scale", "--choices", "--sizes=-8"), "--sizes: Value -8 not in range"),
                                (("scale", "--choices", "--collectives", "shout"), "shout not in {barrier"),
                                (("scale", "--ranks", "7"), "7 is not a power of two"), (("reproduce", "--rows", "19"), "19")):
            done = gantry(*words)
            self.assertNotEqual(done.returncode, 0)
            self.assertIn(sentence, done.stdout + done.stderr)
