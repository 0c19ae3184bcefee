# SPDX-License-Identifier: BSD-3-Clause
"""`dev wheel`: gantry-mpi as a binary wheel in build/dist/, of the prefix that `dev install` makes and the simulated GPU.

Files of a wheel's data/ folder are put into the environment's own bin/, lib/ and include/: mpiexec and mpicc are on its path, and everything
finds everything else by its place. The same sources and compiler give the same bytes.

The tag is manylinux_2_34, which is what a build on Debian 12 can promise: since C libraries 2.34 threads and dlopen are part of libc under new
versions of their names, and cmake/older_systems.c stands for what is newer. auditwheel has the last word.
"""
import base64
import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

import build
import release
import setup
from console import ROOT, Failure, note, run_quiet, step
from environment import DEPS, build_folder, find_tool, for_tools
from install import foreign_libraries

TARGETS = (*build.PRODUCT, "cuda_sim", "cuda_sim_runtimes", "gdr_sim", "nvml_sim")
TAG = "py3-none-manylinux_2_34_x86_64"
# Of the build folder's simgpu/, into lib/gantry/simgpu/.
SIMULATED_GPU = ("libcuda.so.1", "libcudart.so.12", "libcudart.so.13", "gantry.twins.so", "gdr/libgdrapi.so.2", "nvml/libnvidia-ml.so.1")
NOT_PACKED = ("lib/gantry/simgpu/CMakeFiles", "libexec/gantry/ompi-abi")
AUDITWHEEL = "auditwheel==6.4.2"
EPOCH = (1980, 1, 1, 0, 0, 0)


def project():
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    facts = {name: re.search(rf'^{name} = "(.*)"', text, re.M)[1] for name in ("name", "description", "requires-python")}
    return dict(facts, version=release.version())


def staged(preset, prefix):
    """The prefix as the wheel holds it."""
    folder = build_folder(preset)
    run_quiet([find_tool("cmake"), "--install", folder, "--prefix", prefix, "--strip", "--component", "gantry"], "the installation",
              env=for_tools())
    for name in SIMULATED_GPU:
        target = prefix / "lib" / "gantry" / "simgpu" / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(folder / "simgpu" / name, target)
        subprocess.run(["strip", "--strip-unneeded", target], check=True)
    for name in NOT_PACKED:
        shutil.rmtree(prefix / name, ignore_errors=True)
    foreign = foreign_libraries(prefix / "bin") | foreign_libraries(prefix / "lib" / "gantry" / "mpich")
    if foreign:
        raise Failure(f"not self-contained: {foreign}")
    for link in [path for path in prefix.rglob("*") if path.is_symlink()]:
        unlinked(link, link.readlink().name)


def unlinked(link, first):
    """A second name of a file, as a small file that asks for the first: a wheel has no links."""
    link.unlink()
    if link.parent.name == "bin":
        link.write_text(f'#!/bin/sh\n# SPDX-License-Identifier: BSD-3-Clause\nexec "$(dirname -- "$(readlink -f -- "$0")")/{first}" "$@"\n')
        link.chmod(0o755)
    elif link.suffix == ".so":
        link.write_text(f"INPUT({first})\n")  # the linker reads it
    else:
        # The loader takes both for one program's libraries: a copy would be a second MPI.
        options = ["-shared", "-nostdlib", "-s", f"-Wl,-soname,{link.name}", "-Wl,--build-id=none", "-Wl,--no-as-needed", "-Wl,-rpath,$ORIGIN"]
        subprocess.run([setup.compiler(), *options, link.parent / first, "-o", link], check=True)


def metadata(facts):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    return (f"Metadata-Version: 2.1\nName: {facts['name']}\nVersion: {facts['version']}\nSummary: {facts['description']}\n"
            f"License: BSD-3-Clause\nRequires-Python: {facts['requires-python']}\nDescription-Content-Type: text/markdown\n\n{readme}")


def write(path, files):
    """A wheel: files {name: (bytes, executable)} and the list of their hashes."""
    record = []
    info = next(name.partition("/")[0] for name in files if name.endswith("/METADATA"))
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as wheel:
        def add(name, content, executable):
            entry = zipfile.ZipInfo(name, EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = (0o100755 if executable else 0o100644) << 16
            wheel.writestr(entry, content)
        for name, (content, executable) in sorted(files.items()):
            add(name, content, executable)
            digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest()).rstrip(b"=").decode()
            record.append(f"{name},sha256={digest},{len(content)}")
        add(f"{info}/RECORD", "\n".join([*record, f"{info}/RECORD,,", ""]), False)


def auditwheel(path):
    """Whether the tag is true, by the tool that the Python package index trusts."""
    tools = DEPS / "wheel-tools"
    if not (tools / "bin" / "auditwheel").exists():
        run_quiet([sys.executable, "-m", "venv", tools], "python -m venv (Debian: python3-venv)")
        run_quiet([tools / "bin" / "python", "-m", "pip", "-q", "install", AUDITWHEEL], f"pip install {AUDITWHEEL}")
    done = subprocess.run([tools / "bin" / "auditwheel", "show", path], text=True, capture_output=True,
                          env=dict(os.environ, PATH=f"{tools / 'bin'}:{os.environ['PATH']}"))
    said = " ".join((done.stdout + done.stderr).split())
    allowed = re.search(r'(?:consistent with the following platform tag|compatible with the following platform tags?): "(\w+)"', said)
    if done.returncode != 0 or not allowed or int(re.search(r"manylinux_2_(\d+)", allowed[1])[1]) > int(re.search(r"2_(\d+)", TAG)[1]):
        raise Failure(f"auditwheel does not agree with the tag {TAG}: {said}")
    return allowed[1]


def wheel(preset):
    setup.ensure_ptxas()
    build.build(preset, TARGETS)
    facts = project()
    base = f"{facts['name'].replace('-', '_')}-{facts['version']}"
    out = ROOT / "build" / "dist"
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as temporary:
        prefix = Path(temporary) / "prefix"
        step("gathering the wheel's files")
        staged(preset, prefix)
        files = {f"{base}.data/data/{path.relative_to(prefix)}": (path.read_bytes(), os.access(path, os.X_OK))
                 for path in prefix.rglob("*") if path.is_file()}
    files[f"{base}.dist-info/METADATA"] = (metadata(facts).encode(), False)
    files[f"{base}.dist-info/WHEEL"] = (f"Wheel-Version: 1.0\nGenerator: gantry\nRoot-Is-Purelib: false\nTag: {TAG}\n".encode(), False)
    files[f"{base}.dist-info/LICENSE"] = ((ROOT / "LICENSE").read_bytes(), False)
    path = out / f"{base}-{TAG}.whl"
    write(path, files)
    note(f"auditwheel: {auditwheel(path)}")
    note(f"{path.relative_to(ROOT)}: {path.stat().st_size / 1e6:.1f} MB, {len(files)} files, sha256 {hashlib.sha256(path.read_bytes()).hexdigest()[:16]}")
    return 0
