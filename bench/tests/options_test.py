# SPDX-License-Identifier: BSD-3-Clause
"""gantry-bench as a user calls it, on the simulated GPU: what each option prints, as text and as JSON; never how fast."""
import json
import os
import re
import stat
import subprocess
import tempfile
import unittest
from pathlib import Path

BUILD = Path(os.environ.get("GANTRY_BUILD_FOLDER", Path(__file__).resolve().parents[2] / "build" / "release"))
MPIEXEC = str(BUILD / "bin" / "mpiexec")
BENCH = str(BUILD / "bin" / "gantry-bench")
BENCH_FOLDER = Path(__file__).resolve().parents[1]
ONE_SIDED = ("put", "get", "accumulate", "fetch_op", "cas")


def run(*words, job=0, **env):
    """(exit status, standard output, standard error); `job`: under mpiexec, with so many ranks."""
    launcher = [MPIEXEC, "-n", str(job)] if job else []
    done = subprocess.run([*launcher, BENCH, *words], stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=280,
                          env=dict(os.environ, SIMGPU=f"machine=h200,dev=2,scale=0,run=options{os.getpid()}", **env))
    return done.returncode, done.stdout, done.stderr


def sizes_in(text):
    """Of a table of collectives: its first column."""
    return [int(line.split()[0]) for line in text.splitlines() if not line.startswith("#")]


def column_names(text):
    return next(line for line in text.splitlines() if line.startswith("# Size"))


class Command(unittest.TestCase):
    def good(self, *words, **more):
        code, out, err = run(*words, **more)
        self.assertEqual(code, 0, out + err)
        return out

    def refused(self, *words):
        code, out, err = run(*words, job=2)
        self.assertNotEqual(code, 0)
        return out, err

    def document(self, *words, **more):
        return json.loads(self.good(*words, "--json", **more))


class Options(Command):
    def test_processors_compares_pairs_of_them_and_goes_on_without_a_driver(self):
        if "," not in (pair := ",".join(map(str, sorted(os.sched_getaffinity(0))[:2]))):
            self.skipTest("not run: this process may use one processor only")
        command = [BENCH_FOLDER / "processors", "--prefix", BUILD, "--pairs", pair, "--rounds", "1"]
        env = dict(os.environ, SIMGPU=f"machine=h200,dev=2,scale=0,run=processors{os.getpid()}")
        for library, row in (("", rf"^ *{pair} +[0-9.]+ +[0-9.]+ +[0-9.]+ +-?[0-9.]+$"), ("/nowhere", rf"^ *{pair} +[0-9.]+ +- +-$")):
            done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=dict(env, GANTRY_CUDA_LIBRARY=library))
            self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
            self.assertRegex(done.stdout.splitlines()[-1], row)

    def test_collectives_check_what_arrives_in_any_memory_and_print_a_line_a_size(self):
        for operation in ("alltoall", "allreduce", "bcast"):
            for placement in ("D", "H", "P", "M"):
                with self.subTest(f"{operation} {placement}"):
                    self.assertEqual(sizes_in(self.good(operation, placement, "-m", "8,1K,300K", "-i", "2", job=3)), [8, 1024, 307200])
        lines = self.good("allreduce", "D", "-m", "8", "-i", "2", "--json", job=2).splitlines()
        self.assertEqual([(row["benchmark"], row["way"], row["ranks"], row["bytes"]) for row in map(json.loads, lines)],
                         [("allreduce", "Gantry", 2, 8)])

    def test_reductions_of_every_type_and_operation(self):
        for kind in ("char", "int", "long", "float", "double"):
            for op in ("sum", "max", "min") + (() if kind in ("float", "double") else ("band", "bor", "bxor")):
                for name in ("allreduce", "reduce_scatter") if op == "sum" else ("allreduce",):
                    self.good(name, "D", "-m", "8,4K", "-i", "2", "--type", kind, "--op", op, job=3)
        line = json.loads(self.good("scan", "H", "-m", "4K", "-i", "2", "--type", "float", "--op", "max", "--json", job=3))
        self.assertEqual(line["numbers"], "max of float")
        self.good("alltoall", "D", "-m", "4K", "-i", "2", "--type", "double", job=3)

    def test_reductions_that_there_are_not_are_refused(self):
        for words, sentence in ((("alltoall", "H", "--op", "max"), "alltoall combines nothing"),
                                (("allreduce", "H", "--type", "float", "--op", "bor"), "whole numbers")):
            out, err = self.refused(*words)
            self.assertIn(sentence, err)

    def test_messages_of_rows_in_any_memory(self):
        for memory in (("D", "D"), ("D", "H"), ("M", "P")):
            for name in ("latency", "sendrecv", "bw", "bibw"):
                self.good(name, *memory, "-m", "64,4K,192K", "-i", "2", "--layout", "64:256", job=2)

    def test_rows_that_there_are_not_are_refused(self):
        for words, sentence in ((("--layout", "64"), "no BLOCK:STRIDE"), (("--layout", "64:32"), "overlap"),
                                (("--layout", "64:128", "-m", "100"), "whole rows of 64 bytes"),
                                (("--layout", "64:128", "-m", "64", "--floor"), "no --floor"),
                                (("--layout", "64:128", "-m", "64", "--baseline", "all"), "must be in device memory")):
            out, err = self.refused("latency", "H", "H", *words)
            self.assertIn(sentence, err)

    def test_help_tells_of_the_options_of_collectives(self):
        self.assertIn("alltoall --help", self.good("--help"))
        self.assertIn("--form", self.good("alltoall", "--help"))

    def test_every_collective_in_its_forms(self):
        operations = ("bcast", "gather", "gatherv", "scatter", "scatterv", "allgather", "allgatherv", "alltoall", "alltoallv",
                      "alltoallw", "reduce", "allreduce", "reduce_scatter", "scan", "exscan", "neighbor_allgather",
                      "neighbor_allgatherv", "neighbor_alltoall", "neighbor_alltoallv", "neighbor_alltoallw")
        for index, operation in enumerate(operations):
            for form in ("blocking", ("nonblocking", "persistent")[index % 2]):
                with self.subTest(f"{operation} {form}"):
                    self.assertEqual(sizes_in(self.good(operation, "H", "-m", "8,3K", "-i", "2", "--form", form, job=3)), [8, 3072])
        self.assertEqual(sizes_in(self.good("barrier", "H", "-i", "2", job=3)), [0])

    def test_messages_of_all_ranks_at_once(self):
        for operation in ("fan_in", "fan_out", "pairs"):
            for placement in ("H", "D"):
                with self.subTest(f"{operation} {placement}"):
                    self.assertEqual(sizes_in(self.good(operation, placement, "-m", "8,70K", "-i", "2", job=3)), [8, 71680])
        self.assertIn("messages", "".join(self.refused("pairs", "H", "--form", "persistent")))

    def test_startup_tells_of_init_and_of_sessions(self):
        row = json.loads(self.good("startup", "--json", job=3))
        self.assertEqual((row["benchmark"], row["ranks"]), ("startup", 3))
        self.assertTrue(min(row["init_us"], row["first_barrier_us"], row["session_us"]) > 0)
        self.assertRegex(self.good("startup", job=2), r"(?m)^session +[0-9.]+$")
        self.assertIn("--loud", "".join(self.refused("startup", "--loud")))
        self.assertIn("--json", self.good("startup", "--help", job=2))

    def test_collectives_show_what_hides_behind_computing(self):
        out = self.good("allreduce", "H", "-m", "64K", "-i", "3", "--form", "nonblocking", "--overlap", job=2)
        self.assertRegex(out, r"(?m)^ *65536 +[0-9.]+ +[0-9.]+$")
        self.assertIn("nonblocking", "".join(self.refused("allreduce", "H", "--overlap")))

    def test_collectives_have_a_floor_of_stores_by_hand(self):
        for operation in ("alltoall", "allgather", "bcast"):
            with self.subTest(operation):
                lines = self.good(operation, "D", "-m", "8,300K", "-i", "2", "--floor", "--json", job=3).splitlines()
                self.assertEqual([(row["way"], row["bytes"]) for row in map(json.loads, lines)],
                                 [("Gantry", 8), ("stores", 8), ("Gantry", 307200), ("stores", 307200)])
        self.assertIn("device memory", "".join(self.refused("bcast", "H", "--floor")))

    def test_without_nccl_the_reason_is_named(self):
        code, out, err = run("allreduce", "D", "-m", "8", "-i", "2", "--nccl", job=2, NCCL_LIBRARY="/nowhere/libnccl.so")
        self.assertEqual((code, sizes_in(out)), (0, [8]))
        self.assertIn("left out: /nowhere/libnccl.so", err)

    def io(self, *words, **more):
        return [json.loads(line) for line in self.good("io", *words, "-i", "2", "--json", **more).splitlines()]

    def test_files_are_written_and_read_in_every_pattern_and_memory(self):
        for pattern in ("contiguous", "strided", "subarray", "bt"):
            for placement in ("D", "H"):
                for calls in ((), ("--collective",)):
                    with self.subTest(f"{pattern} {placement} {calls}"):
                        rows = self.io(pattern, placement, "-m", "3K,300K", *calls, job=3 if placement == "H" else 4)
                        self.assertEqual([row["way"] for row in rows], ["Gantry write", "Gantry read"] * 2)
                        self.assertEqual({(row["benchmark"], row["collective"]) for row in rows}, {(f"io {pattern}", bool(calls))})
                        self.assertTrue(all(row["bytes"] >= 3000 and row["mb_s"] > 0 for row in rows))

    def test_files_have_a_floor_and_a_picture(self):
        with tempfile.TemporaryDirectory() as folder:
            out = self.good("io", "contiguous", "H", "-m", "64K,1M", "-t", "256K", "-i", "2", "--floor", "--folder", folder, "--json", job=2)
            self.assertEqual([json.loads(line)["way"] for line in out.splitlines()][:4], ["Gantry write", "Gantry read", "system write", "system read"])
            self.assertGreater(json.loads(out.splitlines()[2])["library_takes"], 0)
            self.assertEqual(os.listdir(folder), [])
            (Path(folder) / "io.json").write_text(out)
            self.good("plot", f"{folder}/io.json", "-o", f"{folder}/io.svg")
            self.assertIn("io contiguous H", (Path(folder) / "io.svg").read_text())
        self.assertIn("host memory", "".join(self.refused("io", "bt", "D", "--floor")))
        self.assertIn("--collective", self.good("io", "--help"))

    def test_a_wrong_byte_in_a_file_ends_the_job_with_its_place(self):
        shim = BUILD / "tests" / "io_shim.so"
        if not shim.exists():
            self.skipTest("not run: a sanitizer's library would have to be loaded before the shim")
        # Reads and writes that go by io_uring are spoilt by a liburing of the tests'.
        libraries = ":".join(filter(None, [str(BUILD / "tests" / "shimmed_uring"), os.environ.get("LD_LIBRARY_PATH")]))
        with tempfile.TemporaryDirectory(suffix="-shimmed") as folder:
            for calls in ((), ("--collective",)):
                for call, told in (("write", "is not what was written"), ("read", "was not read as it is")):
                    with self.subTest(f"{call} {calls}"):
                        code, out, err = run("io", "bt", "H", "-m", "64K", "-i", "1", "--folder", folder, *calls, job=2, LD_PRELOAD=str(shim),
                                             LD_LIBRARY_PATH=libraries, IO_SHIM=f"{call} 2 flip")
                        self.assertNotEqual(code, 0)
                        self.assertRegex(out + err, rf"byte \d+ of the file {told}")

    def test_overlap_shows_both_kinds_of_progress_in_one_table(self):
        out = self.good("overlap", "D", "H", "-m", "256K", "-i", "3", "--rounds", "1")
        for column in ("calls: transfer, us", "calls: hidden, %", "thread: transfer, us", "thread: hidden, %"):
            self.assertIn(column, column_names(out))
        self.assertRegex(out, r"(?m)^262144 +[0-9.]+ ")

    def test_overlap_as_json_of_every_placement(self):
        for placement in ("D D", "H H", "P D", "D M"):
            with self.subTest(placement):
                rows = self.document("overlap", *placement.split(), "-m", "64K:128K", "-i", "2", "--rounds", "1")["rows"]
                self.assertEqual([row["bytes"] for row in rows], [65536, 131072])
                for row in rows:
                    self.assertGreater(row["values"]["thread: transfer, us"], 0)
                    self.assertTrue(0 <= row["values"]["thread: hidden, %"] <= 100)

    def test_overlap_inside_a_job_shows_its_own_progress(self):
        way = self.document("overlap", "D", "D", "-m", "64K", "-i", "2", "--compute", "3", job=2)["rows"][0]["ways"][0]
        self.assertGreater(way["computing_us"], 0)
        self.assertGreaterEqual(way["total_us"], way["post_us"])

    def test_message_rate_of_several_pairs(self):
        found = self.document("mr", "D", "D", "--pairs", "2", "-w", "16", "-m", "8:32", "-i", "2", job=4)
        self.assertEqual((found["unit"], found["pairs"]), ("messages/s", 2))
        self.assertEqual([(row["bytes"], row["messages"]) for row in found["rows"]], [(8, 16), (16, 16), (32, 16)])

    def test_sizes_and_ranges(self):
        rows = self.document("latency", "H", "H", "-m", "8,1K:4K,3", "-i", "1", job=2)["rows"]
        self.assertEqual([row["bytes"] for row in rows], [8, 1024, 2048, 4096, 3])
        for wrong in ("4K:1K", "x", "1:y"):
            code, _, err = run("latency", "H", "H", "-m", wrong, job=2)
            self.assertNotEqual(code, 0)
            self.assertIn("-m", err)

    def test_pairs_that_are_not_there_are_an_error(self):
        code, _, err = run("mr", "H", "H", "--pairs", "2", job=2)
        self.assertEqual(code, 1)
        self.assertIn("2 pairs are 4 ranks, not 2: mpiexec -n 4", err)
        self.assertIn("1 pair is 2 ranks, not 1: mpiexec -n 2", run("latency", "H", "H")[2])

    def test_a_word_that_is_no_benchmark_is_named(self):
        for word in ("latencies", "--sizes"):
            code, _, err = run(word, "H", "H", job=2)
            self.assertEqual(code, 2)
            self.assertEqual(err.count(f"there is no benchmark '{word}'; gantry-bench --help lists them"), 1, err)

    def test_columns_of_large_numbers_stay_apart(self):
        rows = self.good("mr", "H", "H", "-m", "1", "-w", "128", job=2).splitlines()[-1].split()
        self.assertEqual(len(rows), 3, rows)

    def test_a_busy_neighbour(self):
        found = self.document("latency", "D", "D", "--busy", "--gpus", "0,0", "-m", "8", "-i", "2", job=2)
        self.assertTrue(found["busy"])

    def test_floors_of_device_memory(self):
        for placement, floors in [("D D", ["put+flag", "copy", "kernel"]), ("D P", ["put+flag", "copy"]),
                                  ("H D", ["put+flag", "copy"]), ("H H", []), ("M D", [])]:
            with self.subTest(placement):
                found = self.document("latency", *placement.split(), "--floor", "-m", "1,9", "-i", "2", job=2)
                for row in found["rows"]:
                    self.assertEqual([way["name"] for way in row["ways"]], ["Gantry", *floors])

    def test_without_ipc_the_floor_is_two_copies_through_host_memory(self):
        for words, floors in ((("latency", "D", "D"), ["two copies"]), (("bw", "D", "D", "-w", "3"), ["two copies"]),
                              (("bibw", "D", "D", "-w", "3"), ["two copies"]), (("sendrecv", "D", "D"), ["two copies"]), (("latency", "D", "P"), [])):
            with self.subTest(words=words):
                found = self.document(*words, "--floor", "-m", "1,3M", "-i", "2", job=2, GANTRY_IPC="off")
                for row in found["rows"]:
                    self.assertEqual([way["name"] for way in row["ways"]], ["Gantry", *floors])

    def test_floors_of_a_window_and_both_ways(self):
        for benchmark, window in (("bw", "5"), ("bibw", "3"), ("mr", "128"), ("mr", "129")):
            with self.subTest(benchmark + window):
                found = self.document(benchmark, "D", "D", "--floor", "-m", "3,100K", "-w", window, "-i", "1", job=2)
                names = [way["name"] for way in found["rows"][0]["ways"]]
                self.assertEqual(names, ["Gantry", "put+flag", "copy"] + (["kernel"] if window != "129" else []))

    def test_ratios_to_the_floors_are_printed(self):
        out = self.good("latency", "D", "D", "--floor", "-m", "8", "-i", "2", job=2)
        self.assertEqual(column_names(out).count("ratio"), 3)

    def test_one_gpu_and_two(self):
        for gpus in ("0,0", "0,1", "1,0"):
            found = self.document("latency", "D", "D", "--gpus", gpus, "-m", "8", "-i", "1", job=2)
            self.assertEqual(found["gpus"], [int(gpu) for gpu in gpus.split(",")])

    def test_fresh_buffers_beside_staging_them_all(self):
        for placement, uses, rounds in (("D D", "1", "1"), ("D D", "3", "1"), ("P D", "2", "1"), ("H H", "1", "6")):
            with self.subTest(placement, uses=uses, rounds=rounds):
                words = ("fresh", *placement.split(), "-m", "8,100000", "-n", "12", "--uses", uses, "--rounds", rounds)
                rows = self.document(*words)["rows"]
                self.assertEqual([row["bytes"] for row in rows], [8, 100000])
                for row in rows:
                    self.assertEqual("Gantry: later, us" in row["values"], uses != "1")
                    for ratio, column in (("first / staged", "first, us"), ("all / staged", "all, ms")):
                        values = row["values"]
                        if rounds == "1":
                            self.assertAlmostEqual(row["ratios"][ratio], values[f"Gantry: {column}"] / values[f"staged: {column}"])
                            self.assertNotIn("intervals", row)
                        else:
                            least, most = row["intervals"][ratio]
                            self.assertLess(least, row["ratios"][ratio])
                            self.assertLess(row["ratios"][ratio], most)
                    self.assertLessEqual(values["Gantry: first, us"], values["Gantry: 99 % below, us"])
        names = column_names(self.good("fresh", "-m", "8", "-n", "2", "--rounds", "1"))
        self.assertRegex(names, r"Gantry: first, us +Gantry: 99 % below, us +Gantry: all, ms +staged: first, us .* first / staged +95 % +all / staged +95 %$")

    def test_fresh_stages_all_in_its_second_job_only(self):
        with tempfile.TemporaryDirectory() as folder:
            self.good("fresh", "D", "D", "-m", "64K", "-n", "3", "--rounds", "1",
                      GANTRY_EXPLAIN="on", GANTRY_EXPLAIN_FILE=f"{folder}/%p.%r.json")
            jobs = sorted(Path(folder).glob("*.0.json"), key=lambda record: record.stat().st_mtime_ns)
            staged = ["GANTRY_IPC is off" in record.read_text() for record in jobs]
            self.assertEqual(staged, [False, True])

    def test_fresh_inside_a_job_shows_its_own_setting(self):
        way = self.document("fresh", "D", "D", "-m", "4K", "-n", "5", "--uses", "2", job=2)["rows"][0]["ways"][0]
        self.assertEqual((way["name"], way["samples"]), ("Gantry", 5))
        self.assertGreaterEqual(way["all_ms"] * 1000, 5 * way["low"])
        self.assertRegex(self.good("fresh", "D", "D", "-m", "4K", "-n", "5", job=2), r"(?m)^4096 +[0-9.]+ +[0-9.]+-[0-9.]+ +[0-9.]+ +- +[0-9.]+$")

    def test_pageable_makes_host_buffers_pageable(self):
        self.assertEqual(self.document("latency", "D", "P", "--pageable", "-m", "8", "-i", "1", job=2)["placement"], "DH")
        self.assertIn("host buffers are pageable", self.good("latency", "--help"))

    def test_device_writes_lines_that_say_where_they_are_from(self):
        driver = BUILD / "simgpu" / "libcuda.so.1"
        if driver.exists() and any(name in driver.read_bytes() for name in (b"libasan.so", b"libtsan.so")):
            self.skipTest("a plain program cannot load a driver with a sanitizer in it")
        command = [BENCH_FOLDER / "device", "--prefix", BUILD, "--iterations", "2", "--rounds", "1", "--page", "day.md", "--section", "first",
                   "--commit", "abc", "--only", "fresh buffers two GPUs", "--only", "latency, busy", "--only", "latency, no IPC"]
        env = dict(os.environ, SIMGPU=f"machine=h200,dev=2,scale=0,run=device{os.getpid()}")
        done = subprocess.run(command, capture_output=True, text=True, timeout=280, env=env)
        self.assertEqual(done.returncode, 0, done.stderr)
        lines = [json.loads(line) for line in done.stdout.splitlines()]
        keys = [(line["test"], line["placement"], line["bytes"], line.get("progress")) for line in lines]
        self.assertEqual(len(keys), len(set(keys)))
        for line in lines:
            self.assertTrue({"value", "unit", "floor"} <= line.keys(), line)
            self.assertEqual([line[name] for name in ("page", "section", "gpus", "commit")], ["day.md", "first", 2, "abc"])
            self.assertIn("Simulated", line["device"])
            self.assertRegex(line["driver"], r"^[0-9A-Z]")
            self.assertRegex(line["date"], r"^\d{4}-\d\d-\d\d$")
        commands = {line["test"]: line["command"] for line in lines}
        self.assertEqual(commands["fresh buffers"], "gantry-bench fresh D D -m 8,1K,16K,64K,256K,1M --gpus 0,1 -n 2 --rounds 1")
        self.assertEqual(commands["latency, busy"], "mpiexec -n 2 gantry-bench latency D D -m 8,1K,64K,1M,4M --gpus 0,0 --busy -i 2")
        self.assertTrue(commands["latency, no IPC"].startswith("GANTRY_IPC=off mpiexec -n 2 gantry-bench latency"))
        for line in lines:
            if line["test"] == "latency, no IPC":
                self.assertEqual(line["floor"], line["floors"]["two copies"])
        for line in lines:
            if line["test"] == "fresh buffers":
                self.assertAlmostEqual(line["ratio"], line["value"] / line["staged"], places=2)

    def test_one_sided_operations_by_every_synchronisation(self):
        for operation in ONE_SIDED:
            for sync in ("flush", "fence", "pscw", "lock"):
                with self.subTest(f"{operation} {sync}"):
                    found = self.document(operation, "H", "H", "-m", "8", "-i", "1", "--sync", sync, job=2)
                    self.assertEqual([found[name] for name in ("benchmark", "unit", "measure", "sync", "window", "validated")],
                                     [operation, "us", "latency", sync, "allocate", True])
                    self.assertGreater(found["rows"][0]["ways"][0]["value"], 0)

    def test_one_sided_operations_in_every_window(self):
        for window in ("allocate", "create", "dynamic", "shared"):
            for operation, measure in (("put", "bw"), ("get", "bibw"), ("accumulate", "bibw"), ("cas", "rate")):
                with self.subTest(f"{operation} {window}"):
                    words = (operation, "H", "H", "-i", "1", "-w", "5", "--window", window, "--measure", measure)
                    found = self.document(*words, *(() if operation == "cas" else ("-m", "8,24K")), job=2)
                    self.assertEqual((found["window"], found["unit"]), (window, "operations/s" if measure == "rate" else "MB/s"))
                    self.assertEqual([row["messages"] for row in found["rows"]], [5] if operation == "cas" else [5, 5])

    def test_one_sided_operations_in_any_memory(self):
        for operation, placement in (("put", "D D"), ("get", "D H"), ("accumulate", "D D"), ("fetch_op", "M P"), ("cas", "H D")):
            with self.subTest(f"{operation} {placement}"):
                found = self.document(operation, *placement.split(), "-m", "8", "-i", "1", job=2)
                self.assertEqual(found["window"], "allocate" if placement[-1] == "H" else "create")

    def test_floors_of_one_sided_operations(self):
        for words, floors in (("put H H", ["memcpy"]), ("get H P", ["memcpy"]), ("fetch_op H H", ["atomic"]), ("cas H H", ["atomic"]),
                              ("put D D", ["copy", "kernel"]), ("get D D --measure bw -w 3", ["copy", "kernel"]), ("accumulate D H", ["copy"]),
                              ("put M H", []), ("cas D D", [])):
            with self.subTest(words):
                row = self.document(*words.split(), "-m", "8", "-i", "1", "--floor", job=2)["rows"][0]
                self.assertEqual([way["name"] for way in row["ways"]], ["Gantry", *floors])

    def test_one_sided_figures_that_there_are_not_are_refused(self):
        for words, why in (("cas H H --measure bw", "one item has no bandwidth"), ("fetch_op H H -m 16", "of one item of 8 bytes, not of 16"),
                           ("accumulate H H -m 12", "it adds doubles"), ("put H H -m 0", "there is nothing to time"),
                           ("put H D --window allocate", "the target's placement must be H"),
                           ("put D H --measure bibw --window shared", "the target's placement must be H"),
                           ("get H H --sync barrier", "barrier not in"), ("get H H --window own", "own not in")):
            with self.subTest(words):
                self.assertIn(why, "".join(self.refused(*words.split())))

    def test_ucx_has_tests_of_one_sided_operations(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, "ucx/bin/ucx_perftest", 'for word; do last=$word; done; [ "$last" = 127.0.0.1 ] || exit 0; '
                       'echo "$@" > "$(dirname "$0")/../../seen"; echo "Final: 5000 2.5 2.6 2.7 10 11 100 110"')
            for words, test, value in (("put", "-t ucp_put_lat -m host -s 8", 2.5), ("get", "-t ucp_get -m host -s 8", 2.5),
                                       ("put --measure bw", "-t ucp_put_bw -m host -s 8", 11 * 1.048576), ("fetch_op", "-t ucp_fadd -m host -s 8", 2.5),
                                       ("cas --measure rate", "-t ucp_cswap -m host -s 8", 110)):
                with self.subTest(words):
                    first, *rest = words.split()
                    found = self.document(first, "H", "H", *rest, "-m", "8", "-i", "1", "--rounds", "1", "--peers", folder)
                    self.assertAlmostEqual(found["rows"][0]["values"]["ucx"], value)
                    self.assertIn(test, (Path(folder) / "seen").read_text())
            for words in ("accumulate", "put --measure bibw"):
                first, *rest = words.split()
                found = self.document(first, "H", "H", *rest, "-m", "8", "-i", "1", "--rounds", "1", "--peers", folder)
                self.assertIn("ucx_perftest has no such test", found["not_run"]["ucx"])

    def test_peers_are_run_beside_gantry(self):
        with tempfile.TemporaryDirectory() as folder:
            # A peer with the standard's ABI: here it is Gantry again, and a second that fails.
            self.write(folder, "impi/bin/mpiexec.hydra", f'exec env LD_LIBRARY_PATH="{BUILD}/lib:$LD_LIBRARY_PATH" {MPIEXEC} "$@"')
            self.write(folder, "ompi/bin/mpiexec", 'echo "no such luck"; echo "------"; exit 3')
            self.write(folder, "ucx/bin/ucx_perftest",
                       'for word; do last=$word; done; [ "$last" = 127.0.0.1 ] && echo "Final: 5000 2.5 2.6 2.7 10 11 100 110"; true')
            words = ("latency", "D", "D", "-m", "8:16", "-i", "2", "--rounds", "2", "--peers", folder)
            out = self.good(*words)
            self.assertRegex(column_names(out), r"Gantry \(us\) +impi \(us\) +ratio +ucx \(us\) +ratio")
            self.assertIn("# not run: ompi: no such luck", out)
            found = self.document(*words)
            for row in found["rows"]:
                self.assertEqual(row["values"]["ucx"], 2.5)
                self.assertAlmostEqual(row["ratios"]["impi"], row["values"]["impi"] / row["values"]["Gantry"])
            self.assertEqual(found["not_run"], {"ompi": "no such luck"})

    def test_floors_are_measured_in_our_own_run_alone(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, "impi/bin/mpiexec.hydra", f'echo "$@" > "$I_MPI_ROOT/../seen"; exec env LD_LIBRARY_PATH="{BUILD}/lib:$LD_LIBRARY_PATH" {MPIEXEC} "$@"')
            found = self.document("latency", "D", "D", "-m", "8", "-i", "2", "--rounds", "1", "--floor", "--peers", folder)
            self.assertIn("put+flag", found["rows"][0]["values"])
            self.assertIn("impi", found["rows"][0]["values"])
            self.assertNotIn("--floor", (Path(folder) / "seen").read_text())

    def test_a_peer_s_reason_is_what_the_program_said_itself(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, "ompi/bin/mpiexec", 'echo "ompi_abi: a datatype of Mars"; echo "Signal: Aborted (6)"; exit 134')
            found = self.document("latency", "D", "D", "-m", "8", "-i", "1", "--rounds", "1", "--peers", folder)
            self.assertEqual(found["not_run"], {"ompi": "ompi_abi: a datatype of Mars"})

    def test_the_adapter_to_open_mpi_knows_all_that_the_program_uses(self):
        # Files are measured beside others by bench/host_files, a program that each MPI compiles for itself.
        files = {"file_part.cpp", "file_way.cpp", "host_files.cpp", "io.cpp"}
        program = "".join(file.read_text() for pattern in ("*.cpp", "*.hpp") for file in BENCH_FOLDER.glob(pattern) if file.name not in files)
        adapter = (BENCH_FOLDER / "ompi_abi" / "ompi_abi.cpp").read_text()
        called = set(re.findall(r"\b(MPI_[A-Z][a-z]\w*)\s*\(", program))
        defined = set(re.findall(r"^\w[\w ]*\b(MPI_\w+)\(", adapter, re.M))
        self.assertEqual(called - defined, set())
        types = set(re.findall(r"\bMPI_(?:BYTE|CHAR|SHORT|INT|LONG|UNSIGNED\w*|FLOAT|DOUBLE|U?INT\d+_T|AINT|COUNT)\b", program))
        self.assertGreater(len(types), 3)
        self.assertEqual({name for name in types if f"== {name}" not in adapter}, set())

    def test_peers_stage_when_gantry_does(self):
        for ipc, shown in (({"GANTRY_IPC": "off"}, ["0", "cuda_copy,sm,self", "cuda_copy,sm,self"]),
                           ({}, ["none", "cuda,sm,self", "cuda,sm,self"])):
            with self.subTest(**ipc), tempfile.TemporaryDirectory() as folder:
                self.write(folder, "impi/bin/mpiexec.hydra", 'echo "${I_MPI_OFFLOAD_IPC:-none}" > "$I_MPI_ROOT/../impi.seen"; exit 1')
                self.write(folder, "ompi/bin/mpiexec", 'echo "$UCX_TLS" > "$OPAL_PREFIX/../ompi.seen"; exit 1')
                # The client alone writes: the server is killed when the client is done, perhaps inside its own writing.
                self.write(folder, "ucx/bin/ucx_perftest", 'for word; do last=$word; done; [ "$last" = 127.0.0.1 ] || exit 0; '
                           'echo "$UCX_TLS" > "$UCX_MODULE_DIR/../../../ucx.seen"; echo "Final: 5000 2.5 2.6 2.7 10 11 100 110"')
                (Path(folder) / "ucx" / "lib" / "ucx").mkdir(parents=True)
                words = ("latency", "D", "D", "-m", "8", "-i", "1", "--rounds", "1", "--peers", folder)
                out = self.good(*words, **ipc)
                self.assertEqual([(Path(folder) / f"{peer}.seen").read_text().strip() for peer in ("impi", "ompi", "ucx")], shown)
                self.assertEqual("the peers' too (UCX_TLS=cuda_copy,sm,self; I_MPI_OFFLOAD_IPC=0)" in out, bool(ipc))
                self.assertEqual(bool(self.document(*words, **ipc)["note"]), bool(ipc))

    def test_ucx_is_left_out_where_it_has_no_such_test(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, "ucx/bin/ucx_perftest", "exit 1")
            for words in (("overlap",), ("bibw",), ("fresh", "-n", "2")):
                found = self.document(*words, "H", "H", "-m", "8", "--rounds", "1", "--peers", folder)
                self.assertIn("ucx_perftest has no such test", found["not_run"]["ucx"])

    def test_a_peer_that_hangs_is_ended(self):
        with tempfile.TemporaryDirectory() as folder:
            self.write(folder, "impi/bin/mpiexec.hydra", "exec sleep 1000")
            self.write(folder, "ucx/bin/ucx_perftest", "exec sleep 1000")
            out = self.good("latency", "H", "H", "-m", "8", "-i", "2", "--rounds", "1", "--patience", "2", "--peers", folder)
            self.assertIn("# not run: impi: ended after 2 s without an answer", out)
            self.assertIn("# not run: ucx: ucx_perftest of 8 bytes gave no result", out)

    def test_a_folder_without_peers_is_an_error(self):
        with tempfile.TemporaryDirectory() as folder:
            code, _, err = run("latency", "H", "H", "--peers", folder)
            self.assertEqual(code, 1)
            self.assertIn("there is no impi/bin/mpiexec.hydra, ompi/bin/mpiexec or ucx/bin/ucx_perftest in it", err)

    def test_peers_inside_a_job_are_an_error(self):
        code, _, err = run("latency", "H", "H", "--peers", "/tmp", job=2)
        self.assertEqual(code, 1)
        self.assertEqual(len(re.findall("without mpiexec", err)), 1)

    @staticmethod
    def write(folder, name, text):
        path = Path(folder) / name
        path.parent.mkdir(parents=True)
        path.write_text("#!/bin/sh\n" + text + "\n")
        path.chmod(path.stat().st_mode | stat.S_IXUSR)


if __name__ == "__main__":
    unittest.main()
