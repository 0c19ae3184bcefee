# SPDX-License-Identifier: BSD-3-Clause
"""gantry info and the tool information interface of MPI have one table: the same variables, values and sentences."""
import json
import os
import subprocess
import unittest
from pathlib import Path

BUILD = Path(os.environ["GANTRY_BUILD_FOLDER"])
SET = {"GANTRY_EAGER_LIMIT": "4K", "GANTRY_IPC": "off", "GANTRY_CLAIM_WAIT": "3us", "GANTRY_PROGRESS": "thread", "GANTRY_RAILS": "eth0,eth1"}


def run(program, *arguments, **env):
    clean = {name: value for name, value in os.environ.items() if not name.startswith("GANTRY_")}
    return subprocess.run([str(program), *arguments], env={**clean, **env}, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)


def mpi_t(kind, **env):
    done = run(BUILD / "tests" / "abi_variables", **env)
    assert done.returncode == 0, done.stdout
    rows = [line.split("\t") for line in done.stdout.splitlines()]
    return {row[1]: row[2:] for row in rows if row[0] == kind}


class Info(unittest.TestCase):
    def test_parameters_are_the_control_variables_of_mpi(self):
        for env in ({}, SET):
            controls = mpi_t("control", **env)
            said = json.loads(run(BUILD / "bin" / "gantry", "info", "--json", **env).stdout)["parameters"]
            self.assertEqual([row["variable"] for row in said], list(controls))
            for row in said:
                value, description = controls[row["variable"]]
                self.assertEqual(value, row["value"].removesuffix("ns") if row["type"] == "Nanoseconds" else row["value"], row)
                self.assertTrue(description.startswith(row["sentence"]), (description, row))

    def test_counters_are_the_performance_variables_of_mpi(self):
        counters = mpi_t("performance")
        said = json.loads(run(BUILD / "bin" / "gantry", "info", "--json").stdout)["counters"]
        self.assertEqual({row["name"]: [row["class"], row["sentence"]] for row in said}, counters)

    def test_text_names_every_variable(self):
        text = run(BUILD / "bin" / "gantry", "info").stdout
        for name in [*mpi_t("control"), *mpi_t("performance")]:
            self.assertRegex(text, rf"(?m)^{name} ")

    def test_a_full_disk_is_named(self):
        for command in ("info", "doctor"):
            with open("/dev/full", "w") as full:
                done = subprocess.run([BUILD / "bin" / "gantry", command], stdout=full, stderr=subprocess.PIPE, text=True)
            self.assertEqual(done.returncode, 1, command)
            self.assertIn("gantry: writing to standard output failed: No space left on device", done.stderr)

    def test_a_bad_environment_keeps_mpi_t_from_starting(self):
        done = run(BUILD / "tests" / "abi_variables", GANTRY_EAGER_LIMIT="much")
        self.assertEqual((done.returncode, done.stdout), (1, "MPI_T_init_thread: 1001\n"))


if __name__ == "__main__":
    unittest.main()
