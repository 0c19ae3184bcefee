# SPDX-License-Identifier: BSD-3-Clause
"""Tests see nothing of the user who starts them: their config folder, where `gantry tune` writes, is private and empty."""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

HERE = Path(__file__).resolve().parent
BUILD = Path(os.environ["GANTRY_BUILD_FOLDER"])


class Isolation(unittest.TestCase):
    def test_the_config_folder_of_a_test_is_empty(self):
        folder = Path(os.environ.get("XDG_CONFIG_HOME", Path.home() / ".config"))
        self.assertNotEqual(folder, Path.home() / ".config")
        self.assertEqual(list(folder.iterdir()), [])

    def test_the_installed_runner_hides_the_config_folder_of_its_user(self):
        """A prefix with one test, which fails where it finds the machine that its user tuned."""
        places = [HERE.parent / "run-installed", BUILD / "libexec" / "gantry" / "tests" / "run"]
        runner = next(place for place in places if place.exists())
        prefix = Path(tempfile.mkdtemp(prefix="gantry-runner-"))
        self.addCleanup(shutil.rmtree, prefix)
        tests = prefix / "libexec" / "gantry" / "tests"
        tuned = prefix / "config" / "gantry" / "machines"
        tests.mkdir(parents=True)
        tuned.mkdir(parents=True)
        shutil.copy(runner, tests / "run")
        look = "import os, sys; sys.exit(len(os.listdir(os.environ['XDG_CONFIG_HOME'])))"
        (tests / "tests.json").write_text(json.dumps([
            {"name": "look", "command": [sys.executable, "-c", look], "environment": [], "folder": ""}]))
        done = subprocess.run([sys.executable, tests / "run"], env=dict(os.environ, XDG_CONFIG_HOME=str(prefix / "config")),
                              text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, timeout=60)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("1 passed, 0 failed", done.stdout)
