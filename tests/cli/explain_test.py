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
    def records(self, ranks, *words, libraries="", **more):
        """Of each rank, of one run of gantry-bench io in /dev/shm; with a folder of libraries in front of all others, and more
        environment variables."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GANTRY_", "SIMGPU"))}
        environment = dict(kept, PATH=f"{BUILD / 'bin'}:{kept['PATH']}", SIMGPU="machine=h200,dev=2,scale=0",
                           LD_LIBRARY_PATH=f"{libraries}:{BUILD / 'simgpu'}:{kept.get('LD_LIBRARY_PATH', '')}".strip(":"), **more)
        command = ["mpiexec", "-n", str(ranks), "gantry-bench", "io", *words, "-i", "1"]
        done = subprocess.run([BUILD / "bin" / "gantry", "explain", "--json", *command], env=environment, text=True, timeout=120,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads(done.stdout)

    def rows(self, *arguments, **more):
        """(operation, memory, way) -> rows of all ranks, of such a run."""
        found = {}
        for record in self.records(*arguments, **more):
            for row in record.get("files", []):
                found.setdefault((row["operation"], row["memory"], row["way"]), []).append(row)
        return found

    def test_strided_collective_calls_go_in_two_phases_in_shared_windows_and_say_why(self):
        found = self.rows(4, "bt", "H", "--collective", "-m", "64K")
        self.assertEqual(set(found), {("write_all", "host", "two phases"), ("read_all", "host", "two phases")})
        for rows in found.values():
            self.assertEqual([(row["ranks"], row["calls"]) for row in rows], [(4, 2)] * 4)
            self.assertEqual({row["why"] for row in rows}, {"ranks interleave"})
            self.assertRegex(rows[0]["how"], r"^4 aggregators, parts of .*, windows of .* in memory that the ranks share, "
                                             r"with the file by the aggregators themselves$")

    def test_the_window_of_a_file_is_told_from_those_of_the_program(self):
        for record in self.records(2, "contiguous", "H", "-m", "64K"):
            self.assertRegex("\n".join(record["notes"]), r"window 1 \(the shared pointer of a file\): ")

    def test_without_shared_windows_only_a_strided_collective_write_goes_in_two_phases(self):
        found = self.rows(4, "bt", "H", "--collective", "-m", "64K", GANTRY_MECHANISMS="all,-node_segment")
        self.assertEqual(set(found), {("write_all", "host", "two phases"), ("read_all", "host", "direct")})
        write = found["write_all", "host", "two phases"]
        self.assertEqual([(row["ranks"], row["calls"]) for row in write], [(4, 2)] * 4)
        self.assertEqual({row["why"] for row in write}, {"ranks interleave"})
        self.assertRegex(write[0]["how"], r"^4 aggregators, parts of .*, windows of .*, with the file by the aggregators themselves$")
        read = found["read_all", "host", "direct"][0]
        self.assertIn("each rank alone: the file is in memory: to read gaps along costs less", read["why"])
        self.assertIn("gaps up to 16 KiB are read along", read["how"])

    def test_device_memory_goes_in_two_phases_by_messages(self):
        found = self.rows(2, "bt", "D", "--collective", "-m", "64K")
        for row in found["write_all", "device", "two phases"]:
            self.assertRegex(row["how"], r"^2 aggregators, parts of .*, windows of [^,]*, with the file by the aggregators themselves$")
            self.assertNotIn("share", row["how"] + row["why"])

    def test_device_memory_goes_through_slots(self):
        found = self.rows(2, "contiguous", "D", "-m", "3M", "-t", "3M")
        self.assertEqual(set(found), {("write", "device", "slots"), ("read", "device", "slots")})
        for row in found["write", "device", "slots"]:
            self.assertEqual((row["calls"], row["bytes"]), (2, 6 << 20))
            self.assertRegex(row["how"], r"^slots, by the copy engine, pieces of 1 MiB, 4 in flight, by (io_uring|threads \(.+\))$")

    def test_parts_of_their_own_are_written_alone_by_a_collective_call(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            found = self.rows(2, "contiguous", "H", "--collective", "-m", "1M", "--folder", folder)
        self.assertEqual(set(found), {("write_all", "host", "direct"), ("read_all", "host", "direct")})
        write = found["write_all", "host", "direct"][0]
        self.assertIn("each rank alone: ranks have parts of the file for themselves", write["why"])
        self.assertRegex(write["how"], r", by (io_uring|threads \(.+\))$")

    def test_pieces_of_many_runs_are_written_by_threads(self):
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            found = self.rows(2, "strided", "H", "-m", "64K", "--folder", folder)
        self.assertRegex(found["write", "host", "direct"][0]["how"], r", by threads \((each of several calls would wait.*|.*io_uring.*)\)$")

    def test_where_the_kernel_refuses_io_uring_threads_do_it_and_that_is_told(self):
        shim = BUILD / "tests" / "shimmed_uring"
        if not shim.is_dir():
            self.skipTest("built without liburing, or under a sanitizer")
        with tempfile.TemporaryDirectory(dir="/tmp") as folder:
            found = self.rows(1, "contiguous", "H", "-m", "1M", "--folder", folder, libraries=shim, IO_SHIM_RING="refuse")
        self.assertIn(", by threads (the kernel refuses io_uring: Operation not permitted", found["write", "host", "direct"][0]["how"])


if __name__ == "__main__":
    unittest.main()
