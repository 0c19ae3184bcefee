# SPDX-License-Identifier: BSD-3-Clause
"""gantry explain of files: which way reads and writes of a known program went, and why."""
import json
import os
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("GANTRY_BUILD_FOLDER", Path(__file__).resolve().parents[2] / "build" / "release"))


class Explain(unittest.TestCase):
    def rows(self, ranks, *words):
        """(operation, memory, way) -> rows of all ranks, of one run of gantry-bench io in /dev/shm."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GANTRY_", "SIMGPU"))}
        environment = dict(kept, PATH=f"{BUILD / 'bin'}:{kept['PATH']}", SIMGPU="machine=h200,dev=2,scale=0",
                           LD_LIBRARY_PATH=f"{BUILD / 'simgpu'}:{kept.get('LD_LIBRARY_PATH', '')}".rstrip(":"))
        command = ["mpiexec", "-n", str(ranks), "gantry-bench", "io", *words, "-i", "1"]
        done = subprocess.run([BUILD / "bin" / "gantry", "explain", "--json", *command], env=environment, text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        found = {}
        for record in json.loads(done.stdout):
            for row in record.get("files", []):
                found.setdefault((row["operation"], row["memory"], row["way"]), []).append(row)
        return found

    def test_a_strided_collective_write_goes_in_two_phases_and_says_why(self):
        found = self.rows(4, "bt", "H", "--collective", "-m", "64K")
        self.assertEqual(set(found), {("write_all", "host", "two phases"), ("read_all", "host", "direct")})
        write = found["write_all", "host", "two phases"]
        self.assertEqual([(row["ranks"], row["calls"]) for row in write], [(4, 2)] * 4)
        self.assertEqual({row["why"] for row in write}, {"ranks interleave"})
        self.assertRegex(write[0]["how"], r"^4 aggregators, parts of .*, windows of .*, with the file by the aggregators themselves$")
        read = found["read_all", "host", "direct"][0]
        self.assertIn("each rank alone: the file is in memory: to read gaps along costs less", read["why"])
        self.assertIn("gaps up to 16 KiB are read along", read["how"])

    def test_device_memory_goes_through_slots(self):
        found = self.rows(2, "contiguous", "D", "-m", "3M", "-t", "3M")
        self.assertEqual(set(found), {("write", "device", "slots"), ("read", "device", "slots")})
        for row in found["write", "device", "slots"]:
            self.assertEqual((row["calls"], row["bytes"]), (2, 6 << 20))
            self.assertEqual(row["how"], "slots, by the copy engine, pieces of 1 MiB, 4 in flight")

    def test_parts_of_their_own_are_written_alone_by_a_collective_call(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            found = self.rows(2, "contiguous", "H", "--collective", "-m", "1M", "--folder", folder)
        self.assertEqual(set(found), {("write_all", "host", "direct"), ("read_all", "host", "direct")})
        self.assertIn("each rank alone: ranks have parts of the file for themselves", found["write_all", "host", "direct"][0]["why"])


if __name__ == "__main__":
    unittest.main()
