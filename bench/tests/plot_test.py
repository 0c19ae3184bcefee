# SPDX-License-Identifier: BSD-3-Clause
"""gantry-bench plot: curves, bands and crossings of what runs printed as JSON; and the columns of --forms."""
import json
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree as xml
from pathlib import Path

from options_test import BENCH, run


def table(name, times):
    return {"benchmark": "latency", "placement": "DD", "unit": "us", "smaller_is_better": True,
            "rows": [{"bytes": size, "ways": [{"name": name, "value": time, "low": 0.9 * time, "high": 1.1 * time}]}
                     for size, time in times.items()]}


class Plot(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def plot(self, *files):
        picture = self.folder / "plot.svg"
        done = subprocess.run([BENCH, "plot", *files, "-o", picture], capture_output=True, text=True)
        return done, picture

    def file(self, name, text):
        path = self.folder / name
        path.write_text(text)
        return str(path)

    def test_two_runs_cross_where_the_other_becomes_better(self):
        one = self.file("one.json", json.dumps(table("A", {256: 1, 1024: 2, 4096: 8})))
        two = self.file("two.json", json.dumps(table("A", {256: 4, 1024: 4, 4096: 4})))
        done, picture = self.plot(one, two)
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(done.stdout, "from 2K on A (two) is better than A (one)\n")
        inside = xml.parse(picture).getroot()
        self.assertEqual(len(inside), 2)  # times, and ratios
        bands = [each for each in inside[0].iter("{http://www.w3.org/2000/svg}polygon") if each.get("points").strip()]
        self.assertEqual(len(bands), 2)

    def test_what_a_run_prints_can_be_drawn(self):
        for words in (("latency", "H", "H", "-m", "8,1K"), ("allreduce", "H", "-m", "8,1K")):
            code, out, err = run(*words, "-i", "2", "--json", job=2)
            self.assertEqual(code, 0, err)
            done, picture = self.plot(self.file("run.json", out))
            self.assertEqual(done.returncode, 0, done.stderr)
            self.assertIn("Gantry", picture.read_text())

    def test_persistent_and_partitioned_messages_are_columns_beside_the_library(self):
        for benchmark in ("latency", "bibw", "sendrecv"):
            code, out, err = run(benchmark, "H", "D", "-m", "9,64K", "-i", "2", "--forms", "--json", job=2)
            self.assertEqual(code, 0, out + err)
            for row in json.loads(out)["rows"]:
                self.assertEqual([way["name"] for way in row["ways"]][-2:], ["persistent", "partitioned"])

    def test_a_file_without_figures_is_named(self):
        done, _ = self.plot(self.file("empty.json", "{}"))
        self.assertEqual(done.returncode, 2)
        self.assertIn("empty.json holds nothing", done.stderr)
