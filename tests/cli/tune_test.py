# SPDX-License-Identifier: BSD-3-Clause
"""`gantry tune` on the simulated GPU: what it writes, and what it says.

What it measures is time, which a busy host makes longer and nothing makes shorter: a test looks whether a call is too short. By hand, on a host that has nothing else to do,
`python3 -m unittest tune_test.Tune.measures_the_machine_of_the_simulator` (with GANTRY_BUILD_FOLDER) compares the figures with those
that the simulator was given. That machine is slow, so that what the host costs itself hardly counts: a figure is right within 40 %;
what lasts long within a factor of 2.2 (several copies in a row) or 3 (what needs two processes: a turn of the queue, openings).
"""
import json
import os
import pty
import re
import shutil
import subprocess
import tempfile
import unittest
import xml.etree.ElementTree
from pathlib import Path

BUILD = Path(os.environ["GANTRY_BUILD_FOLDER"])


def copy(latency, gap, rate, **more):
    return {"latency_ns": latency, "gap_ns": gap, "bytes_per_second": rate, "row_ns": 0, **more}


MACHINE = {
    "name": "tortoise", "about": "", "gpus_per_node": 2, "peer_access": True, "ipc": True,
    "gpu": {
        "name": "Tortoise", "compute_capability": [7, 0], "memory_bytes": 1 << 33, "copy_engines": 4, "turn_ns": 3000000,
        "d2h": copy(600000, 300000, 0.5e9, row_ns=60), "h2d": copy(800000, 240000, 0.7e9, turn_below=32768),
        "h2d_2d": copy(1000000, 260000, 0.4e9, row_ns=90), "d2d": copy(700000, 280000, 0.8e9, turn_below="always"),
        "peer": copy(900000, 320000, 0.6e9), "peer_get": copy(900000, 340000, 0.3e9),
        "pageable_d2h": copy(1200000, 400000, 0.2e9), "pageable_h2d": copy(1300000, 420000, 0.15e9, turn_below=65536),
        "fill": copy(640000, 220000, 0.9e9, turn_below="always"), "kernel": {"latency_ns": 700000, "thread_ns": 0.002, "resident_ns": 350000, "resident_out_ns": 520000, "resident_in_ns": 780000},
        "calls": {"copy_ns": 120000, "further_copy_ns": 90000, "launch_ns": 160000, "event_record_ns": 80000, "event_query_ns": 100000, "event_query_vain_ns": 60000,
                  "write_value_ns": 200000, "event_seen_ns": 100000, "classify_host_ns": 140000,
                  "classify_device_ns": 90000, "allocate_ns": 900000, "register_host_ns": 1500000, "ipc_export_ns": 180000,
                  "ipc_open_ns": 20000000, "ipc_open_peer_ns": 50000000, "ipc_pair_ns": 60000000, "ipc_open_large_ns": 70000000, "ipc_close_ns": 10000000,
                  "vmm_open_ns": 30000000, "pool_open_ns": 40000000, "pool_open_peer_ns": 90000000, "pool_first_ns": 80000000},
        "window": {"open_ns": 700000, "read_ns": 90000, "write_ns": 60000, "read_bytes_per_second": 2.5e7, "write_bytes_per_second": 4e8}},
    "host": {"memcpy": 1e10, "flag_ns": 100},
    "shared_memory": {"name": "shared memory", "latency_ns": 300, "message_ns": 60, "put_ns": 60, "eager_max_bytes": 65536,
                      "bytes_per_second": 1.2e10},
    "network": {"name": "NDR", "rails": 1, "latency_ns": 1300, "message_ns": 100, "put_ns": 100, "eager_max_bytes": 32768,
                "header_bytes": 32, "control_max_bytes": 2048, "bytes_per_second": 4.8e10}}
COPIES = ("d2h", "h2d", "h2d_2d", "d2d", "peer", "peer_get", "pageable_d2h", "pageable_h2d", "fill")
CALLS = ("copy_ns", "event_record_ns", "event_query_ns", "event_query_vain_ns", "classify_host_ns", "classify_device_ns", "ipc_export_ns")
SCHEDULED = ("ipc_open_ns", "ipc_open_peer_ns", "ipc_pair_ns", "ipc_open_large_ns", "ipc_close_ns", "vmm_open_ns", "pool_open_ns", "pool_open_peer_ns", "pool_first_ns")


def peak(rate):
    """Of the middle of a curve (the largest copies are limited by this host's memory); 0 where a busy host did not let tune come so far."""
    return rate if isinstance(rate, float) else max((each[1] for each in rate if each[0] >= 1 << 20), default=0.0)


class Tune(unittest.TestCase):
    def setUp(self):
        self.folder = Path(tempfile.mkdtemp(prefix="gantry-tune-"))
        self.addCleanup(shutil.rmtree, self.folder)
        library = BUILD / "simgpu" / "libcuda.so.1"
        if not library.exists():
            self.skipTest("the simulated GPU is not built")
        (self.folder / "machine.json").write_text(json.dumps(MACHINE))
        self.environment = dict(os.environ, GANTRY_CUDA_LIBRARY=str(library), XDG_CONFIG_HOME=str(self.folder),
                                SIMGPU=f"machine={self.folder}/machine.json,dev=2,run=tune-{os.getpid()}")
        folders = [str(library.parent / "gdr"), os.environ.get("LD_LIBRARY_PATH", "")]  # libgdrapi of the simulator
        self.environment["LD_LIBRARY_PATH"] = ":".join(filter(None, folders))

    def tune(self, *options):
        return subprocess.run([BUILD / "bin" / "gantry", "tune", *options], env=self.environment, text=True,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=300)

    def tune_on_a_terminal(self):
        """(exit status, what came on standard output, what the terminal was sent)."""
        terminal, program_side = pty.openpty()
        with tempfile.TemporaryFile() as output:
            program = subprocess.Popen([BUILD / "bin" / "gantry", "tune"], env=self.environment, stdin=subprocess.DEVNULL, stdout=output,
                                       stderr=program_side)
            os.close(program_side)
            shown = b""
            try:
                while piece := os.read(terminal, 4096):
                    shown += piece
            except OSError:  # what Linux says when the program has closed its side
                pass
            os.close(terminal)
            program.wait(timeout=300)
            output.seek(0)
            return program.returncode, output.read().decode(), shown.decode()

    def wrong(self, file):
        """What lies outside of the tolerance."""
        measured, given, found = json.loads(file.read_text()), MACHINE["gpu"], []
        gpu = measured["gpu"]

        def near(name, is_now, was, factor):
            if not was / factor <= is_now <= was * factor:
                found.append(f"{name}: measured {is_now:.4g}, given {was:.4g}")

        self.assertEqual((measured["ipc"], measured["peer_access"], measured["gpus_per_node"], gpu["copy_engines"]), (True, True, 2, 4))
        for name in COPIES:
            near(name, gpu[name]["latency_ns"], given[name]["latency_ns"], 1.4)
            near(name, peak(gpu[name]["bytes_per_second"]), given[name]["bytes_per_second"], 1.4)
            if not name.startswith("pageable"):  # those block their caller: one behind the other pays all of it
                near(name, gpu[name]["gap_ns"], given[name]["gap_ns"], 2.2)
        for name in ("d2h", "h2d_2d"):
            near(f"{name} row", gpu[name]["row_ns"], given[name]["row_ns"], 1.4)
        for name in CALLS:
            near(name, gpu["calls"][name], given["calls"][name], 1.4)
        near("further_copy_ns", gpu["calls"]["further_copy_ns"], given["calls"]["further_copy_ns"], 2.2)
        for name in ("event_seen_ns", "d2d_event_seen_ns", "host_event_seen_ns"):  # on the scale of write_value_ns
            near(name, gpu["calls"][name], given["calls"]["write_value_ns"], 2)
        for kind in ("resident_ns", "resident_out_ns", "resident_in_ns"):
            near(kind, gpu["kernel"][kind], given["kernel"][kind], 1.4)
        for name, was in given["window"].items():
            near(f"window {name}", gpu["window"][name], was, 1.4)
        for name in SCHEDULED:
            near(name, gpu["calls"][name], given["calls"][name], 3)
        near("turn", gpu["turn_ns"], given["turn_ns"], 3)
        near("turn_below", max(gpu["h2d"]["turn_below"], 1), 32768, 4)
        near("turn_below of pageable memory", max(gpu["pageable_h2d"]["turn_below"], 1), 65536, 1.9)  # 32768: the other memory
        return found

    def measures_the_machine_of_the_simulator(self):
        """Not one of the suite: by hand, as said above."""
        file = self.folder / "gantry" / "machines" / "simulated-gpu-tortoise.json"
        done = self.tune()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertEqual(self.wrong(file), [])

    def test_measures_no_call_shorter_than_the_simulator_makes_it(self):
        scale = 0.25  # of all its times: they add up
        self.environment["SIMGPU"] += f",scale={scale}"
        done = self.tune()
        self.assertEqual(done.returncode, 0, done.stderr)
        gpu = json.loads((self.folder / "gantry" / "machines" / "simulated-gpu-tortoise.json").read_text())["gpu"]
        given = MACHINE["gpu"]
        for name in CALLS:  # measured as they are; other figures are differences
            self.assertGreaterEqual(gpu["calls"][name], 0.95 * scale * given["calls"][name], name)

    def test_writes_every_figure_and_every_curve(self):
        file = self.folder / "gantry" / "machines" / "simulated-gpu-tortoise.json"
        self.environment["SIMGPU"] += ",scale=0"
        done = self.tune()
        self.assertEqual(done.returncode, 0, done.stderr)
        self.assertIn("used from now on", done.stdout)
        measured = json.loads(file.read_text())
        gpu = measured["gpu"]
        self.assertEqual((measured["ipc"], measured["peer_access"], measured["gpus_per_node"], gpu["copy_engines"]), (True, True, 2, 4))
        self.assertLessEqual({*COPIES, "turn_ns", "kernel"}, set(gpu))
        self.assertLessEqual({*CALLS, *SCHEDULED}, set(gpu["calls"]))
        self.assertEqual(set(gpu["window"]), set(MACHINE["gpu"]["window"]))
        picture = xml.etree.ElementTree.parse(file.with_suffix(".svg"))
        self.assertEqual(len(picture.findall(".//{http://www.w3.org/2000/svg}polyline")), len(COPIES))
        # The simulator takes what was written as its model.
        self.environment["SIMGPU"] = f"machine={file},scale=0,run=tune-again-{os.getpid()}"
        again = self.tune("--output", str(self.folder / "again.json"))
        self.assertNotIn("cannot be loaded", again.stderr)
        self.assertEqual(again.returncode, 0, again.stderr)

    def test_a_terminal_sees_a_bar_that_goes_to_its_end_and_is_gone(self):
        self.environment["SIMGPU"] += ",scale=0"
        code, output, shown = self.tune_on_a_terminal()
        self.assertEqual(code, 0, shown)
        self.assertIn("used from now on", output)
        self.assertNotIn("[#", output)
        lines = shown.split("\r\033[K")
        self.assertEqual((lines[0], lines[-1]), ("", ""), shown)  # each line replaces the one before, the last one by nothing
        bars = [re.fullmatch(r"\[(#*)(\.*)\] (\S.*)", line) for line in lines[1:-1]]
        self.assertTrue(bars and all(bars), shown)
        full, width = [len(bar[1]) for bar in bars], len(bars[0][1] + bars[0][2])
        self.assertEqual({len(bar[1] + bar[2]) for bar in bars}, {width}, shown)
        # A line says what is measured now, and its bar what was before: the last step is open when the last line comes.
        self.assertEqual(full, [width * step // len(bars) for step in range(len(bars))], shown)
        self.assertEqual(len({bar[3] for bar in bars}), len(bars), shown)

    def test_without_a_terminal_there_is_no_bar(self):
        self.environment["SIMGPU"] += ",scale=0"
        done = self.tune()
        self.assertEqual((done.returncode, done.stderr), (0, ""))

    def test_without_gdrcopy_mappings_stay_as_described(self):
        self.environment["SIMGPU_GDR"] = "refuse=open"
        self.environment["SIMGPU"] += ",scale=0"
        done = self.tune()
        self.assertEqual(done.returncode, 0, done.stderr)
        measured = json.loads((self.folder / "gantry" / "machines" / "simulated-gpu-tortoise.json").read_text())
        self.assertIn("There is no GDRCopy", measured["about"])
        self.assertEqual(measured["gpu"]["window"]["read_ns"], 1800)  # that of the description it starts from

    def test_what_is_measured_under_mps_and_without_are_two_halves(self):
        # All starts from the description of the H100, by the name, whose halves differ in more than turns.
        (self.folder / "machine.json").write_text(json.dumps({**MACHINE, "name": "tortoise-h100"}))
        file = self.folder / "gantry" / "machines" / "simulated-gpu-tortoise-h100.json"
        plain, shared = self.environment["SIMGPU"] + ",scale=0", self.environment["SIMGPU"] + ",scale=0,mps=1"

        def measured(settings):
            self.environment["SIMGPU"] = settings
            done = self.tune()
            self.assertEqual(done.returncode, 0, done.stderr)
            return json.loads(file.read_text())

        def mark(half):
            """A figure that no measurement gives, so that it shows whether this half was measured since."""
            description = json.loads(file.read_text())
            description[half]["kernel"]["resident_ns"] = 987654321
            file.write_text(json.dumps(description))

        def marked(description, half):
            return description[half]["kernel"]["resident_ns"] == 987654321

        first = measured(shared)
        self.assertRegex(first["about"], "under MPS: .*What holds without MPS was not measured")
        self.assertEqual(first["gpu"]["turn_ns"], 140000)  # nobody saw one: of the description it starts from
        self.assertEqual(first["gpu"]["calls"]["d2d_event_seen_ns"], 4000)  # there it differs under MPS
        self.assertEqual(first["gpu"]["d2h"], first["gpu_under_mps"]["d2h"])
        self.assertEqual(first["gpu_under_mps"]["turn_ns"], 0)
        mark("gpu_under_mps")
        mark("gpu")
        second = measured(plain)
        self.assertRegex(second["about"], "without MPS: .*What holds under MPS is an earlier run's")
        self.assertTrue(marked(second, "gpu_under_mps"))
        self.assertFalse(marked(second, "gpu"))
        mark("gpu")
        third = measured(shared)
        self.assertTrue(marked(third, "gpu"))
        self.assertFalse(marked(third, "gpu_under_mps"))
        file.unlink()
        alone = measured(plain)
        self.assertEqual(alone["gpu_under_mps"]["calls"]["d2d_event_seen_ns"], 4360)
        self.assertEqual(alone["gpu_under_mps"]["calls"]["copy_ns"], alone["gpu"]["calls"]["copy_ns"])
        # An older tune wrote what it saw under MPS as if it held always.
        alone["gpu"]["turn_ns"] = 0
        alone.pop("gpu_under_mps")
        file.write_text(json.dumps(alone))
        self.assertEqual(measured(shared)["gpu"]["turn_ns"], 140000)

    def test_a_device_that_is_not_there_is_named(self):
        done = self.tune("--gpu", "7")
        self.assertEqual(done.returncode, 1)
        self.assertIn("--gpu 7: this process sees 2 devices", done.stderr)

    def test_a_file_that_cannot_be_written_is_told_before_anything_is_measured(self):
        (self.folder / "file").write_text("")
        done = self.tune("--output", str(self.folder / "file" / "machine.json"))
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertRegex(done.stderr, r"^gantry tune: .*machine.json cannot be written: Not a directory; --output names another file$")

    def test_without_a_driver_it_says_so(self):
        self.environment["GANTRY_CUDA_LIBRARY"] = str(self.folder / "none.so")
        done = self.tune()
        self.assertEqual(done.returncode, 1)
        self.assertIn("no CUDA driver", done.stderr)
