# SPDX-License-Identifier: BSD-3-Clause
"""gantry trace: what its file says of a job whose messages are known, and of hosts whose clocks differ."""
import collections
import json
import os
import shutil
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("GANTRY_BUILD_FOLDER", Path(__file__).resolve().parents[2] / "build" / "release"))
GANTRY = BUILD / "bin" / "gantry"


class Trace(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="gantry-trace-"))
        self.addCleanup(shutil.rmtree, self.folder)

    def run_gantry(self, *words, **variables):
        kept = {name: value for name, value in os.environ.items() if not name.startswith(("GANTRY_", "SIMGPU"))}
        environment = dict(kept, PATH=f"{BUILD / 'bin'}:{kept['PATH']}", SIMGPU="dev=2",
                           LD_LIBRARY_PATH=f"{BUILD / 'simgpu'}:{kept.get('LD_LIBRARY_PATH', '')}".rstrip(":"), **variables)
        return subprocess.run([str(GANTRY), "trace", *words], cwd=self.folder, env=environment, text=True, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, timeout=120)

    def events(self, *words, **variables):
        done = self.run_gantry("-o", "out.json", *words, **variables)
        self.assertEqual(done.returncode, 0, done.stderr)
        return json.loads((self.folder / "out.json").read_text())["traceEvents"]

    def check_arrows(self, events):
        """Each arrow begins once and ends once, at the other rank, and no earlier than it began; both ends lie in a span."""
        spans = collections.defaultdict(list)
        for event in events:
            if event["ph"] == "X":
                spans[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        ends = collections.defaultdict(dict)
        for event in events:
            if event["ph"] in "sf":
                self.assertNotIn(event["ph"], ends[event["id"]])
                ends[event["id"]][event["ph"]] = event
                inside = [1 for begin, end in spans[event["pid"], event["tid"]] if begin <= event["ts"] <= end]
                self.assertTrue(inside, event)
        for name, both in ends.items():
            self.assertEqual(set(both), {"s", "f"}, name)
            self.assertLessEqual(both["s"]["ts"], both["f"]["ts"], name)
        return ends

    def test_messages_of_a_program_are_arrows_between_its_ranks(self):
        events = self.events("mpiexec", "-n", "2", "gantry-bench", "latency", "D", "D", "-m", "4M:4M", "-i", "3")
        arrows = self.check_arrows(events)
        large = [event for event in events if event["ph"] == "X" and event.get("args", {}).get("bytes") == 4 << 20 and "tag" in event["args"]]
        sent = [event for event in large if " to rank " in event["name"]]
        received = [event for event in large if " from rank " in event["name"]]
        self.assertGreater(len(sent), 0)
        self.assertEqual(len(sent), len(received))
        self.assertEqual({event["args"]["path"] for event in received} - {"ipc", "pipeline"}, set())
        self.assertGreater(len(arrows), len(sent) - 1)
        calls = {event["name"] for event in events if event["ph"] == "X" and event["name"].startswith("MPI_")}
        self.assertIn("MPI_Send", calls)
        # What moved the bytes is shown, too: all bytes of the messages, once or (through a slot) twice.
        moved = sum(event["args"]["bytes"] for event in events if event["ph"] == "X" and "args" in event and
                    "bytes" in event["args"] and "tag" not in event["args"])
        self.assertGreaterEqual(moved, len(sent) * (4 << 20))

    def test_accesses_of_files_are_shown_with_their_way_and_with_what_the_system_did(self):
        events = self.events("mpiexec", "-n", "2", "gantry-bench", "io", "bt", "H", "--collective", "-m", "64K", "-i", "1")
        spans = [event for event in events if event["ph"] == "X" and event.get("args", {}).get("bytes", 0) > 0]
        # Two samples of each rank, each written and read.
        self.assertEqual(collections.Counter(event["name"] for event in spans if event["name"] in ("two phases", "direct")),
                         {"two phases": 8})
        names = {event["tid"]: event["args"]["name"] for event in events if event["name"] == "thread_name" and event["pid"] == 0}
        self.assertEqual({names[event["tid"]] for event in spans if event["pid"] == 0 and event["name"] == "two phases"},
                         {"reads and writes of files"})
        written = [event for event in spans if event["name"] == "write"]
        self.assertGreater(len(written), 0)
        # Nothing is written twice: as many bytes as the accesses have, which are read again.
        self.assertEqual(2 * sum(event["args"]["bytes"] for event in written),
                         sum(event["args"]["bytes"] for event in spans if event["name"] == "two phases"))

    def test_without_it_no_timeline_is_written_and_a_full_one_says_what_is_missing(self):
        done = self.run_gantry("-o", "out.json", "mpiexec", "-n", "2", "gantry-bench", "latency", "H", "H", "-m", "8:8", GANTRY_TRACE_EVENTS="10")
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertRegex(done.stderr, r"holds 20 events of 2 ranks")
        self.assertRegex(done.stderr, r"[1-9]\d* later events were left out; GANTRY_TRACE_EVENTS")

    def test_the_exit_status_of_the_command_is_passed_on(self):
        done = self.run_gantry("sh", "-c", "exit 7")
        self.assertEqual(done.returncode, 7)
        self.assertIn("no rank wrote a timeline", done.stderr)

    def write_host(self, rank, host, clock, events):
        """`clock`: what that host's clock shows when the true time is 0; its time of day is wrong by a second a rank."""
        lines = [json.dumps({"gantry_timeline": 1, "rank": rank, "host": host, "to_wall_clock": 10**9 * rank - clock, "left_out": 0})]
        lines += [json.dumps([kind, what, clock + begin, clock + end, peer, 0, sequence, 8]) for kind, what, begin, end, peer, sequence in events]
        (self.folder / "records").mkdir(exist_ok=True)
        (self.folder / "records" / f"{rank}.timeline").write_text("\n".join(lines) + "\n")

    def test_clocks_of_two_hosts_are_set_by_the_messages_between_them(self):
        us = 1000
        self.write_host(0, "left", 5_000_000, [("sent", "", 10 * us, 11 * us, 1, 0), ("received", "eager", 33 * us, 34 * us, 1, 0)])
        self.write_host(1, "right", 900_000_000, [("received", "eager", 13 * us, 14 * us, 0, 0), ("sent", "", 30 * us, 31 * us, 0, 0)])
        events = self.events("--folder", "records")
        arrows = self.check_arrows(events)
        self.assertEqual(len(arrows), 2)
        begins = {event["name"]: event["ts"] for event in events if event["ph"] == "X"}
        self.assertEqual(begins, {"8 B to rank 1": 0.0, "8 B from rank 0": 3.0, "8 B to rank 0": 20.0, "8 B from rank 1": 23.0})

    def test_a_file_that_is_no_timeline_is_named(self):
        self.write_host(0, "left", 0, [("call", "MPI_Barrier", 0, 10, -1, 0)])
        (self.folder / "records" / "1.timeline").write_text("[1, 2]\n")
        done = self.run_gantry("--folder", "records", "-o", "out.json")
        self.assertEqual(done.returncode, 0)
        self.assertRegex(done.stderr, r"1\.timeline: line 1 is not the beginning of a timeline")


if __name__ == "__main__":
    unittest.main()
