# SPDX-License-Identifier: BSD-3-Clause
"""docs/user/paths.md shows what `gantry explain` says: path, pieces and reasons of each row that stands there are those of a row
that its command prints. What differs from run to run is not compared: how many messages, how long, and what was beaten by how much."""
import ctypes
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


def comparable(told):
    """Nothing of a message that was staged before its receive was known: which are, who comes first decides. Nothing of who copies inside a
    GPU that both processes use: who used it last decides."""
    by_chance = ("why: the sender had copied all of it", "why: one copy inside the GPU that both processes use")
    return set() if any(each.startswith(by_chance) for each in told) else told


def commands_of(page):
    """(command, what it prints) of each prompt."""
    for block in re.findall(r"^```\n(.*?)^```$", page, re.S | re.M):
        for each in re.split(r"^\$ ", block, flags=re.M)[1:]:
            command, _, printed = each.partition("\n")
            yield command.partition("#")[0].strip(), printed


def sanitized():
    library = (BUILD / "lib" / "libmpi_abi.so").read_bytes()
    return b"libasan.so" in library or b"libtsan.so" in library


class PathsPage(unittest.TestCase):
    def setUp(self):
        if sanitized():
            self.skipTest("so slow a library maps nothing while the benchmark warms up, and no plain program can load it")
        self.folder = Path(tempfile.mkdtemp(prefix="gantry-paths-"))
        self.addCleanup(shutil.rmtree, self.folder)
        self.page = (ROOT / "docs" / "user" / "paths.md").read_text()

    def environment(self):
        """What the page says, and nothing else that changes a path."""
        setting = re.search(r"`export PATH=\$PWD/build/release/bin:\$PATH LD_LIBRARY_PATH=\$PWD/build/release/simgpu SIMGPU=(\S+)`", self.page)
        self.assertIsNotNone(setting, "the page says how its outputs were made")
        kept = {name: value for name, value in os.environ.items() if not re.match("GANTRY_|UCX_|SIMGPU|CUDA_VISIBLE_DEVICES", name)}
        libraries = f"{BUILD / 'simgpu'}:{kept.get('LD_LIBRARY_PATH', '')}".rstrip(":")
        return dict(kept, PATH=f"{BUILD / 'bin'}:{kept['PATH']}", LD_LIBRARY_PATH=libraries, SIMGPU=setting[1], UCX_TLS="tcp,self",
                    XDG_CONFIG_HOME=str(self.folder))

    def compare(self, command, shown):
        expected = rows_in(shown)
        self.assertTrue(expected)
        done = subprocess.run(command, shell=True, cwd=self.folder, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              env=self.environment(), timeout=120)
        self.assertEqual(done.returncode, 0, done.stdout)
        printed = rows_in(done.stdout)
        for row, told in expected:
            self.assertTrue(any(row == other and comparable(told) <= more for other, more in printed), f"{row} {told}\n{done.stdout}")

    def compare_those_with(self, word, *without):
        chosen = [each for each in commands_of(self.page) if word in each[0] and not any(other in each[0] for other in without)]
        self.assertTrue(chosen)
        for command, shown in chosen:
            with self.subTest(command):
                self.compare(command, shown)

    def test_every_prompt_is_looked_at(self):
        self.assertEqual(len(list(commands_of(self.page))), self.page.count("\n$ "))

    def test_shows_what_explain_says_of_one_machine(self):
        self.compare_those_with("gantry-bench", "GANTRY_SHM=off")

    def test_shows_what_explain_says_of_two_machines(self):
        try:
            ctypes.CDLL("libucp.so.0")
        except OSError as refused:
            self.skipTest(f"not run: {refused}")
        self.compare_those_with("GANTRY_SHM=off")

    def test_shows_what_explain_says_of_a_column(self):
        subprocess.run([BUILD / "bin" / "mpicc", ROOT / "docs" / "examples" / "column.c", "-o", self.folder / "column",
                        f"-I{STAND_IN}", f"-L{BUILD / 'simgpu'}", "-l:libcudart.so.13"], check=True)
        self.compare_those_with("./column")


if __name__ == "__main__":
    unittest.main()
