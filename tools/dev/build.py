# SPDX-License-Identifier: BSD-3-Clause
"""`dev build`: configure once, then build with Ninja into build/<preset>/."""
import json
import re
import shlex

import setup
from console import ROOT, Failure, cores, follow, run_quiet, step
from environment import build_folder, find_tool, for_tools
from progress import Progress


# What a user of the library needs, and what shows it: not the tests.
PRODUCT = ("mpi_abi", "mpiexec", "gantry", "gantry-bench", "personality_mpich_bindings", "personality_openmpi_bindings")
DEMONSTRATION = ("mpi_abi", "mpiexec", "gantry-bench", "cuda_sim", "cuda_sim_runtimes")


def presets():
    data = json.loads((ROOT / "CMakePresets.json").read_text())
    return [preset["name"] for preset in data["configurePresets"] if not preset.get("hidden")]


def configure(preset):
    folder = build_folder(preset)
    if (folder / "build.ninja").exists():
        return  # Ninja runs CMake again by itself when something changed.
    command = [find_tool("cmake"), "--preset", preset]
    if find_tool("ccache"):
        command += [f"-DCMAKE_{language}_COMPILER_LAUNCHER=ccache" for language in ("C", "CXX")]
    step(f"configuring build/{preset}")
    run_quiet(command, "cmake", env=for_tools())


def build(preset, targets=()):
    """Bring build/<preset>/ up to date; sets up what is missing first."""
    setup.ensure()
    configure(preset)
    step(f"building build/{preset}")
    command = [str(word) for word in (find_tool("ninja"), "-C", build_folder(preset), f"-j{cores()}", *targets)]
    output = NinjaOutput()
    status = follow(command, output.see, env={**for_tools(), "NINJA_STATUS": "[%f/%t] "})
    if status != 0:
        raise Failure(f"the build failed (exit {status}): {shlex.join(command)}")


class NinjaOutput:
    """Of what Ninja says: how far it is as a progress line, what compilers say as it is."""

    def __init__(self):
        self.progress = None

    def see(self, line):
        counted = re.match(r"\[(\d+)/(\d+)\] (.*)", line)
        if counted and not counted[3].startswith("Re-"):  # globbing and CMake count for themselves
            self.progress = self.progress or Progress("built")
            self.progress.at(int(counted[1]), int(counted[2]))
        elif not counted and not line.startswith(("ninja: Entering", "ninja: no work", "-- ")):
            if self.progress:
                self.progress.clear()
            print(line, flush=True)
