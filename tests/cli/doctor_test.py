# SPDX-License-Identifier: BSD-3-Clause
"""gantry doctor: one line per thing, each with a verdict, what is not well with a remedy; the same as text and as JSON."""
import ctypes
import json
import os
import resource
import subprocess
import unittest
from pathlib import Path

GANTRY = Path(os.environ["GANTRY_BUILD_FOLDER"]) / "bin" / "gantry"
SUBJECTS = ["parameters", "MPI library", "processors", "shared memory", "locked memory", "open files", "process access", "GDRCopy", "network",
            "launcher", "several hosts", "PMIx library", "driver"]


def doctor(*options, before=None, **env):
    env = {**{name: value for name, value in os.environ.items() if not name.startswith(("UCX_", "GANTRY_"))}, **env}
    return subprocess.run([str(GANTRY), "doctor", *options], env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          preexec_fn=before)


def rows(**how):
    done = doctor("--json", **how)
    said = json.loads(done.stdout)
    return done.returncode, {row["subject"]: row for row in said["checks"]}, said


class Doctor(unittest.TestCase):
    def needs_ucx(self):
        try:
            ctypes.CDLL("libucp.so.0")
        except OSError as refused:
            self.skipTest(f"not run: {refused}")

    def bad(self, subject, found, remedy, **how):
        code, checks, _ = rows(**how)
        self.assertEqual(code, 1)
        self.assertEqual(checks[subject]["verdict"], "BAD", checks[subject])
        self.assertRegex(checks[subject]["found"], found)
        self.assertRegex(checks[subject]["remedy"], remedy)

    def test_every_subject_has_a_verdict_and_what_is_bad_a_remedy(self):
        code, checks, said = rows()
        for subject in SUBJECTS:
            self.assertIn(subject, checks)
        for check in checks.values():
            self.assertIn(check["verdict"], ("ok", "note", "BAD"))
            self.assertTrue(check["found"], check)
            self.assertTrue(check["remedy"] or check["verdict"] != "BAD", check)
        broken = sum(check["verdict"] == "BAD" for check in said["checks"])
        self.assertEqual((said["broken"], code), (broken, 1 if broken else 0))

    def test_gpus_that_the_variable_hides_are_no_trouble(self):
        check = rows(CUDA_VISIBLE_DEVICES="0")[1].get("visible GPUs")
        if check is None:
            self.skipTest("not run: there is no GPU")
        self.assertEqual(check["verdict"], "ok")
        self.assertRegex(check["found"], "CUDA_VISIBLE_DEVICES=0: memory on GPUs that it hides is mapped")

    def test_a_mistake_in_the_simulated_gpu_names_what_there_is(self):
        simgpu = str(GANTRY.parents[1] / "simgpu")
        said = doctor(LD_LIBRARY_PATH=simgpu, SIMGPU="machine=moon,machin=h200,dev=two,scale=0", GANTRY_CUDA_LIBRARY="").stdout
        self.assertIn("there is no key 'machin' (machine, scale, dev,", said)
        self.assertIn("dev takes a whole number, not 'two'; no machine is called \"moon\"", said)
        self.assertRegex(said, r"built in: .*h200.*, so it is an h200\n")

    def test_text_says_what_json_says(self):
        text = doctor().stdout
        for check in rows()[2]["checks"]:
            if check["subject"] == "shared memory":
                continue  # says how much is free
            self.assertIn(f"{check['verdict']:<5} {check['subject']:<15} {check['found']}", text)
            self.assertIn(check["remedy"], text)

    def test_the_network_is_named_with_version_file_and_devices(self):
        self.needs_ucx()
        self.assertRegex(rows(UCX_TLS="tcp,self")[1]["network"]["found"], r"^UCX 1\.\d+\.\d+ in /.*libucp.so.0.*: (tcp/\S+, )*tcp/lo")

    def test_transports_that_end_inside_the_machine_are_no_network(self):
        self.needs_ucx()
        found = rows(UCX_TLS="tcp,self,posix")[1]["network"]["found"]
        self.assertIn("tcp/lo", found)
        self.assertNotIn("posix", found)
        inside = rows(UCX_TLS="self,posix")[1]["network"]
        self.assertEqual(inside["verdict"], "note")
        self.assertIn("UCX_TLS", inside["remedy"])

    def test_a_ucx_that_is_not_where_it_should_be_is_bad(self):
        self.bad("network", "/nowhere", "GANTRY_UCX", GANTRY_UCX="/nowhere/libucp.so.0")

    def test_a_transport_that_ucx_has_not_is_bad(self):
        self.needs_ucx()
        self.bad("network", "UCX_TLS=no_such_transport", "UCX_TLS.*ucx_info -d", UCX_TLS="no_such_transport")

    def test_few_descriptors_are_bad(self):
        self.bad("open files", "^40 allowed", "ulimit -n", before=lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40)))

    def test_a_wrong_parameter_is_bad(self):
        self.bad("parameters", "GANTRY_IPC is 'perhaps'", "gantry info", GANTRY_IPC="perhaps")

    def test_a_variable_that_nothing_reads_is_noted(self):
        checks = rows(GANTRY_IPCC="off", GANTRY_CC="cc", GANTRY_IPC="on")[1]
        self.assertEqual((checks["parameters"]["verdict"], checks["parameters"]["found"]), ("ok", "GANTRY_IPC=on"))
        self.assertEqual((checks["variables"]["verdict"], checks["variables"]["found"]), ("note", "nothing reads GANTRY_IPCC"))
        self.assertRegex(checks["variables"]["remedy"], "gantry info")

    def test_a_bad_variable_does_not_hide_a_misspelt_one(self):
        checks = rows(GANTRY_IPCC="off", GANTRY_IPC="perhaps")[1]
        self.assertEqual(checks["parameters"]["verdict"], "BAD")
        self.assertEqual(checks["variables"]["found"], "nothing reads GANTRY_IPCC")

    def test_a_machine_that_is_not_there_is_bad_also_without_a_gpu(self):
        self.bad("parameters", "nothere", "GANTRY_MACHINE", GANTRY_MACHINE="nothere", GANTRY_CUDA="off")

    def test_a_launcher_that_there_is_not_is_bad(self):
        self.bad("parameters", "GANTRY_LAUNCHER is 'ssh', but it takes auto, pmix", "gantry info", GANTRY_LAUNCHER="ssh")

    def test_a_rail_that_ucx_does_not_find_is_bad(self):
        self.needs_ucx()
        self.bad("network", "GANTRY_RAILS names nowhere0", "GANTRY_RAILS", GANTRY_RAILS="nowhere0")

    def test_rails_are_named_with_the_policy_and_the_nearest_ones(self):
        self.needs_ucx()
        check = rows(GANTRY_RAILS="lo,lo", GANTRY_RAIL_POLICY="even")[1]["rails"]
        self.assertEqual(check["verdict"], "ok")
        # The loopback is no card.
        self.assertRegex(check["found"], "^tcp/lo; tcp/lo; policy even; how far it is from .*, the system does not say: tcp/lo, tcp/lo")

    def test_a_word_that_is_no_command_is_named(self):
        for word in ("docter", "--docter"):
            done = subprocess.run([str(GANTRY), word], capture_output=True, text=True)
            self.assertEqual((done.returncode, done.stderr), (2, f"gantry: there is no command '{word}'; gantry --help lists them\n"))

    def test_gpudirect_over_tcp_is_a_note_unless_it_was_asked_for(self):
        self.needs_ucx()
        tcp = {"UCX_TLS": "tcp,self"}
        check = rows(**tcp)[1]["GPUDirect"]
        self.assertEqual(check["verdict"], "note")
        self.assertRegex(check["found"], "TCP only")
        check = rows(**tcp, GANTRY_GPUDIRECT="off")[1]["GPUDirect"]
        self.assertEqual(check["verdict"], "note")
        self.assertRegex(check["found"], "GANTRY_GPUDIRECT=off")
        self.bad("GPUDirect", "TCP only", "unset GANTRY_GPUDIRECT", **tcp, GANTRY_GPUDIRECT="on")


if __name__ == "__main__":
    unittest.main()
