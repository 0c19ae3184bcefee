# SPDX-License-Identifier: BSD-3-Clause
"""docs/user/paths.md shows what `gantry explain` says: each row that stands there is among those that its command prints."""
import os
import re
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ.get("GANTRY_BUILD_FOLDER", ROOT / "build" / "release"))
STAND_IN = Path(__file__).resolve().parent / "cudart"
ROW = re.compile(r"^  \d+->\d+[^a-z]*(\w+ -> \w+) +([\d.]+ \w+) +\d+ +(\w+) ")
TOLD = re.compile(r"^      (how|why|not possible) +(.*)$")


def rows_in(text):
    """((memory, size, path), what is told of it) of each row; without what differs from run to run: who, how many, how long."""
    rows = []
    for line in text.splitlines():
        row, told = ROW.match(line), TOLD.match(line)
        if row:
            rows.append((row.groups(), set()))
        elif told and rows:
            rows[-1][1].add(f"{told[1]}: {re.sub(r'; [^;]* expected for .*', '', told[2])}")
    return rows


def commands_of(page):
    """(command, what it prints) of each prompt."""
    for block in re.findall(r"^```\n(.*?)^```$", page, re.S | re.M):
        for each in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, printed = each.partition("\n")
            yield command.partition("#")[0].strip(), printed


class PathsPage(unittest.TestCase):
    def setUp(self):
        library = (BUILD / "lib" / "libmpi_abi.so").read_bytes()
        if b"libasan.so" in library or b"libtsan.so" in library:
            self.skipTest("docs/examples/column.c is a plain program, which cannot load a library with a sanitizer in it")
        self.folder = Path(tempfile.mkdtemp(prefix="gantry-paths-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def test_shows_what_explain_says(self):
        page = (ROOT / "docs" / "user" / "paths.md").read_text()
        setting = re.search(r"`export PATH=\$PWD/build/release/bin:\$PATH LD_LIBRARY_PATH=\$PWD/build/release/simgpu (SIMGPU=\S+)`", page)
        self.assertIsNotNone(setting, "the page says how its outputs were made")
        simulated = setting[1].partition("=")[2]
        subprocess.run([BUILD / "bin" / "mpicc", ROOT / "docs" / "examples" / "column.c", "-o", self.folder / "column",
                        f"-I{STAND_IN}", f"-L{BUILD / 'simgpu'}", "-lcuda"], check=True)
        commands = list(commands_of(page))
        self.assertEqual(len(commands), page.count("\n$ "))
        for command, shown in commands:
            with self.subTest(command):
                expected = rows_in(shown)
                self.assertTrue(expected)
                done = subprocess.run(command, shell=True, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                                      env=dict(os.environ, PATH=f"{BUILD / 'bin'}:{os.environ['PATH']}",
                                               LD_LIBRARY_PATH=str(BUILD / "simgpu"), SIMGPU=simulated))
                self.assertEqual(done.returncode, 0, done.stdout)
                printed = rows_in(done.stdout)
                for row, told in expected:
                    self.assertTrue(any(row == other and told <= more for other, more in printed), f"{row} {told}\n{done.stdout}")


if __name__ == "__main__":
    unittest.main()
