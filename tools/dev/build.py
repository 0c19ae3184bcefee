# SPDX-License-Identifier: BSD-3-Clause
"""`dev build`: configure once, then build with Ninja into build/<preset>/."""
import json

import setup
from console import ROOT, cores, run, run_quiet, step
from environment import build_folder, find_tool, for_tools


# What a user of the library needs, and what shows it: not the tests.
PRODUCT = ("mpi_abi", "mpiexec", "gantry", "gantry-bench")
DEMONSTRATION = PRODUCT + ("cuda_sim",)


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
    run([find_tool("ninja"), "-C", build_folder(preset), f"-j{cores()}", *targets], "the build",
        env=for_tools())
