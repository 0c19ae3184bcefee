# SPDX-License-Identifier: BSD-3-Clause
"""`dev install PREFIX`: a prefix that can be moved or copied: nothing in it knows its own place."""
import subprocess
from pathlib import Path

import build
import carry
import setup
from console import Failure, note, run_quiet, step
from environment import build_folder, find_tool, for_tools

# What a Gantry binary may need from the machine it runs on; libgomp: where a compiler of OpenACC is.
SYSTEM_LIBRARIES = ("libgomp.so", "linux-vdso", "libc.so", "libm.so", "libpthread", "libdl", "librt", "ld-linux", "libmpi_abi.so",
                    "libmpi.so", "libcuda.so")


def is_elf(path):
    with open(path, "rb") as file:
        return file.read(4) == b"\x7fELF"


def foreign_libraries(prefix):
    """{file: libraries that another machine may not have}, read from the dynamic sections."""
    found = {}
    for path in sorted(prefix.rglob("*")):
        if path.is_symlink() or not path.is_file() or not is_elf(path):
            continue
        done = subprocess.run(["objdump", "-p", str(path)], text=True, capture_output=True)
        needed = [line.split()[1] for line in done.stdout.splitlines() if line.strip().startswith("NEEDED")]
        foreign = [name for name in needed if not name.startswith(SYSTEM_LIBRARIES)]
        if foreign:
            found[path.relative_to(prefix)] = foreign
    return found


def install(preset, prefix, with_tests):
    prefix = Path(prefix).resolve()
    try:
        prefix.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise Failure(f"cannot install into {prefix}: {error.strerror}; name a folder that you may write to") from error
    setup.ensure_ptxas()
    build.build(preset, () if with_tests else build.PRODUCT)
    folder = build_folder(preset)
    step(f"installing into {prefix}")
    command = [find_tool("cmake"), "--install", folder, "--prefix", prefix, "--strip"]
    if with_tests:
        run_quiet([*command, "--component", "tests"], "installing the tests", env=for_tools())
    run_quiet([*command, "--component", "gantry"], "the installation", env=for_tools())
    if with_tests:
        carry.export(preset, prefix)
    foreign = foreign_libraries(prefix)
    for path, libraries in foreign.items():
        note(f"{path} needs {' '.join(libraries)}")
    if foreign:
        raise Failure("the prefix is not self-contained (see above)")
    for path in sorted((prefix / "bin").iterdir()):
        note(f"bin/{path.name}")
    note(f"compile with {prefix}/bin/mpicc, run with {prefix}/bin/mpiexec -n 2 ./program")
    if with_tests:
        note(f"test it where it lies: {prefix}/libexec/gantry/tests/run")
    return 0
