# SPDX-License-Identifier: BSD-3-Clause
"""The environment that `dev` gives to the programs it starts.

What `dev setup` could not install system-wide lies unpacked in .deps/ (a private /usr); it is put on the search
paths here and nowhere else. The simulated GPU is chosen the same way: a folder with a libcuda.so.1 in front of the
loader's path. Nothing in Gantry knows about either.
"""
import ctypes
import os
import platform
import shutil
from pathlib import Path

from console import ROOT

DEPS = ROOT / ".deps"
ARCH = f"{platform.machine()}-linux-gnu"


def prepend(env, name, *folders):
    found = [str(folder) for folder in folders if Path(folder).is_dir()]
    old = [env[name]] if env.get(name) else []
    if found:
        env[name] = ":".join(found + old)


def for_tools():
    """For cmake, ninja, the compiler and what they build."""
    env = dict(os.environ)
    # Clones in different folders share what ccache knows.
    env.setdefault("CCACHE_BASEDIR", str(ROOT))
    env.setdefault("CCACHE_NOHASHDIR", "1")
    # What ccache wants to be told before it keeps files that use a precompiled header (cmake/precompiled.cmake).
    env.setdefault("CCACHE_SLOPPINESS", "pch_defines,time_macros,include_file_mtime,include_file_ctime")
    usr = DEPS / "usr"
    if usr.is_dir():
        prepend(env, "PATH", usr / "bin")
        prepend(env, "LD_LIBRARY_PATH", usr / "lib" / ARCH, DEPS / "lib" / ARCH)
        prepend(env, "CMAKE_PREFIX_PATH", usr)
        prepend(env, "PKG_CONFIG_PATH", usr / "lib" / ARCH / "pkgconfig", usr / "share" / "pkgconfig")
    return env


def find_tool(name):
    """Full path of a program in the environment above, or None."""
    return shutil.which(name, path=for_tools()["PATH"])


def build_folder(preset):
    return ROOT / "build" / preset


def simulated_gpu(preset):
    """The folder that holds the simulated driver, or None when it is not built."""
    for library in (build_folder(preset) / "simgpu").rglob("libcuda.so.1"):
        return library.parent
    return None


def real_gpu():
    """(number of CUDA devices, why there is none). Asks the system's driver; the simulator is not on our path."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
    except OSError:
        return 0, "no NVIDIA driver: libcuda.so.1 is not on this machine"
    status = driver.cuInit(0)
    if status != 0:
        return 0, f"the NVIDIA driver is there, but cuInit answered {status}"
    count = ctypes.c_int(0)
    status = driver.cuDeviceGetCount(ctypes.byref(count))
    if status != 0 or count.value == 0:
        return 0, "the NVIDIA driver is there, but it has no device"
    return count.value, ""


def for_programs(preset, real=False):
    """For Gantry programs out of a build folder: its mpiexec first, and the chosen GPU driver."""
    env = for_tools()
    folder = build_folder(preset)
    prepend(env, "PATH", folder / "bin")
    if not real:
        simulator = simulated_gpu(preset)
        if simulator:
            prepend(env, "LD_LIBRARY_PATH", simulator)
    return env
