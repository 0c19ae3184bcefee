# SPDX-License-Identifier: BSD-3-Clause
"""Turns CTest's list of tests into libexec/gantry/tests/tests.json of an installed prefix (dev install --with-tests).

There every path is relative to the prefix, so that the prefix can be carried to a machine without compiler, CMake and sources, and
tests/run-installed can run it. A test is left out when something it names was not installed; files of tests/ and api/ that it
names are copied.
"""
import json
import re
import shutil
import subprocess

from console import ROOT, note
from environment import build_folder, find_tool, for_programs

PLACE = "libexec/gantry/tests"
# What CTest knows about judging a run, and the runner honours.
KEPT = ("PASS_REGULAR_EXPRESSION", "FAIL_REGULAR_EXPRESSION", "SKIP_REGULAR_EXPRESSION", "SKIP_RETURN_CODE", "TIMEOUT",
        "WILL_FAIL", "LABELS")


class NotCarried(Exception):
    pass


def installed_files(prefix):
    """{file name: place below the prefix}; names are unique but for the library that stands in for Open MPI's."""
    return {path.name: str(path.relative_to(prefix)) for path in prefix.rglob("*")
            if path.is_file() and path.parent.name != "ompi-abi"}


def translator(preset, prefix):
    build, files = build_folder(preset), installed_files(prefix)
    inside = re.compile(re.escape(str(ROOT)) + r"(?:/[^\s:;,\"']*)?")

    def place(match):
        path = match[0]
        if path == str(build):
            return "{prefix}"
        if path.startswith(f"{build}/"):
            name = path.rsplit("/", 1)[1]
            if name in files:
                return "{prefix}/" + files[name]
            folder = path[len(str(build)) + 1:]
            if folder in ("bin", "lib", "include"):
                return "{prefix}/" + folder
            raise NotCarried(path)
        relative = path[len(str(ROOT)) + 1:]
        if not relative.startswith(("tests", "api")):
            raise NotCarried(path)
        target = prefix / PLACE / "files" / relative
        source = ROOT / relative
        if source.is_dir():
            shutil.copytree(source, target, dirs_exist_ok=True, ignore=shutil.ignore_patterns("__pycache__", "*.cpp"))
        elif source.is_file():
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(source, target)
        else:
            raise NotCarried(path)
        return "{prefix}/" + f"{PLACE}/files/{relative}"

    return lambda text: inside.sub(place, text)


def export(preset, prefix):
    listing = subprocess.run([find_tool("ctest"), "--test-dir", str(build_folder(preset)), "--show-only=json-v1"],
                             env=for_programs(preset), text=True, capture_output=True, check=True).stdout
    translate = translator(preset, prefix)
    tests, left_out = [], []
    for test in json.loads(listing)["tests"]:
        properties = {entry["name"]: entry["value"] for entry in test.get("properties", [])}
        if "source" in properties.get("LABELS", []):  # about the source tree itself
            left_out.append(test["name"])
            continue
        try:
            command = [translate(word) for word in test["command"]]
            if re.search(r"/python3?[\d.]*$", command[0]):
                command[0] = "python3"
            env = [translate(word) for word in properties.get("ENVIRONMENT", [])]
            folder = properties.get("WORKING_DIRECTORY", "")
            folder = translate(folder) if folder.startswith(str(ROOT / "tests")) else ""
        except (NotCarried, KeyError):
            left_out.append(test["name"])
            continue
        tests.append({"name": test["name"], "command": command, "environment": env, "folder": folder,
                      **{name.lower(): properties[name] for name in KEPT if name in properties}})
    (prefix / PLACE / "tests.json").write_text(json.dumps(tests, indent=1))
    note(f"{len(tests)} tests can be carried, {len(left_out)} cannot" + (f" ({left_out[0]}, ...)" if left_out else ""))
