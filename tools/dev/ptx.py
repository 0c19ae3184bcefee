# SPDX-License-Identifier: BSD-3-Clause
"""`dev ptx`: writes the PTX of the kernels anew from their sources; `dev check ptx` compares.

The text depends on the compiler's major version, so it is always clang-19, which Debian 12 and 13 have.
"""
import subprocess

import setup
from console import ROOT, Failure, note, step
from environment import for_tools

# Folders with kernels: the library's, and those of the applications.
FOLDERS = (ROOT / "src" / "device" / "kernels", *sorted((ROOT / "apps").glob("*/")))
OPTIONS = ("-x", "cuda", "--cuda-device-only", "--cuda-gpu-arch=sm_70", "-nocudainc", "-nocudalib", "-std=c++20", "-O3",
           "-ffp-contract=off", "-Wno-unknown-cuda-version", "-S")


def sources():
    return [source for folder in FOLDERS for source in sorted(folder.glob("*.cu"))]


def committed(source):
    """Where the text of a kernel's source belongs."""
    return source.parent / "ptx" / f"{source.stem}.ptx"


def text_of(source):
    """What the compiler makes of it today."""
    command = [setup.kernel_compiler(), *OPTIONS, "-o", "-", str(source)]
    done = subprocess.run(command, env=for_tools(), text=True, stdin=subprocess.DEVNULL, capture_output=True)
    if done.returncode != 0:
        raise Failure(f"clang-19 does not compile {source.relative_to(ROOT)}:\n{done.stderr.strip()}")
    return done.stdout


def ptx():
    setup.ensure_kernel_compiler()
    step("compiling the kernels with clang-19")
    for source in sources():
        target, text = committed(source), text_of(source)
        changed = not target.exists() or target.read_text() != text
        if changed:
            target.parent.mkdir(exist_ok=True)
            target.write_text(text)
        note(f"{target.relative_to(ROOT)}: {'written' if changed else 'as it was'}")
    return 0
