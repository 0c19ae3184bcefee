# SPDX-License-Identifier: BSD-3-Clause
"""`dev deb`: Debian packages in build/dist/, of the prefix that `dev install` makes.

- libgantry: the library, and those that stand for other MPIs
- gantry: mpiexec, gantry, gantry-bench
- libgantry-dev: headers, mpicc, pkg-config and CMake files

The prefix lies whole in /usr/lib/TRIPLET/gantry, so that nothing of another MPI is in its way: what mpicc links finds its library by the run
path. Its programs are in /usr/bin as mpiexec.gantry, mpicc.gantry and so on, as Debian names those of other MPIs; gantry and gantry-bench as they are.
The same sources and compiler give the same bytes.
"""
import gzip
import os
import re
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import build
import release
import setup
from console import ROOT, Failure, note, run_quiet, step
from environment import build_folder, find_tool, for_tools
from install import is_elf

DEVELOPMENT = ("mpicc", "mpicxx", "mpic++", "mpicc_abi", "mpicxx_abi")
# Name: (section, what else it needs, what it is and for whom).
PACKAGES = {
    "libgantry": ("libs", "", "MPI for GPUs - library\n The library of Gantry, an MPI for programs that pass host and device memory,\n"
                  " in the standard ABI of MPI 5.0, and libraries by which programs that were\n built for MPICH or Open MPI run on it."),
    "gantry": ("net", "libgantry (= {version})", "MPI for GPUs - launcher and tools\n The mpiexec of Gantry for one machine; gantry, which says which way\n"
               " messages take, checks and tunes the machine; and gantry-bench."),
    "libgantry-dev": ("libdevel", "libgantry (= {version})", "MPI for GPUs - development files\n What compiles programs for Gantry, or for any MPI with the"
                      " standard ABI:\n headers, mpicc and mpicxx, files for pkg-config and CMake."),
}


def package_of(place):
    """The package of a file of the prefix, by its place there."""
    if place.parts[0] in ("include", "share") or "pkgconfig" in place.parts or "cmake" in place.parts or place.suffix == ".so":
        return "libgantry-dev"
    if place.parts[0] == "bin":
        return "libgantry-dev" if place.name in DEVELOPMENT else "gantry"
    return "gantry" if place.parts[0] == "libexec" else "libgantry"


def program_name(name):
    return name if name.startswith("gantry") else f"{name}.gantry"


def libc_needed(root):
    """The oldest C library whose names all files of the package find."""
    found = {(2, 34)}
    for path in root.rglob("*"):
        if path.is_file() and not path.is_symlink() and is_elf(path):
            said = subprocess.run(["objdump", "-T", path], text=True, capture_output=True).stdout
            found |= {tuple(map(int, number.split("."))) for number in re.findall(r"GLIBC_(\d+\.\d+)", said)}
    return ".".join(map(str, max(found)))


def maintainer():
    if "DEBEMAIL" in os.environ:
        return f"{os.environ.get('DEBFULLNAME', 'Gantry')} <{os.environ['DEBEMAIL']}>"
    return release.git("log", "-1", "--format=%an <%ae>") or "Gantry <nobody@example.org>"


def manual(page, shown, program, version):
    """A manual page that holds what the program says with --help."""
    said = run_quiet([program, "--help"], f"{shown} --help").strip().replace(str(program), shown).replace("\\", "\\e").splitlines()
    said = [("\\&" if line.startswith((".", "'")) else "") + line.replace("-", "\\-") for line in said]
    text = [f'.TH {shown.upper()} 1 "" "Gantry {version}"', ".SH NAME", f"{shown} \\- part of Gantry, an MPI for GPUs", ".SH DESCRIPTION", ".nf", *said, ".fi", ""]
    page.parent.mkdir(parents=True, exist_ok=True)
    page.write_bytes(gzip.compress("\n".join(text).encode(), 9, mtime=0))


def documents(root, name, version):
    folder = root / "usr/share/doc" / name
    folder.mkdir(parents=True)
    licence = (ROOT / "LICENSE").read_text(encoding="utf-8")
    (folder / "copyright").write_text(licence, encoding="utf-8")
    date = time.strftime("%a, %d %b %Y %H:%M:%S +0000", time.gmtime(release.written()))
    entry = f"gantry ({version}) unstable; urgency=medium\n\n  * See CHANGELOG.md of the source release.\n\n -- {maintainer()}  {date}\n"
    (folder / "changelog.gz").write_bytes(gzip.compress(entry.encode(), 9, mtime=0))


def control(root, name, version, triplet):
    section, needs, text = PACKAGES[name]
    depends = [needs.format(version=version)] if needs else []
    if any(path.is_file() and is_elf(path) for path in root.rglob("*")):
        depends.append(f"libc6 (>= {libc_needed(root)})")
    if name == "libgantry-dev":
        depends.append("gcc | c-compiler")
    size = sum(path.lstat().st_size for path in root.rglob("*") if not path.is_dir()) // 1024 + 1
    folder = root / "DEBIAN"
    folder.mkdir()
    lines = [f"Package: {name}", "Source: gantry", f"Version: {version}", f"Architecture: {triplet}", f"Maintainer: {maintainer()}",
             f"Installed-Size: {size}", f"Depends: {', '.join(depends)}"]
    if name == "libgantry":
        lines.append("Recommends: libucx0, liburing2")  # loaded at run time: the network between machines, io_uring
    lines += [f"Section: {section}", "Priority: optional", f"Description: {text}"]
    (folder / "control").write_text("\n".join(lines) + "\n")
    sums = subprocess.run("find usr -type f -print0 | LC_ALL=C sort -z | xargs -0 md5sum", shell=True, cwd=root, text=True, capture_output=True, check=True)
    (folder / "md5sums").write_text(sums.stdout)


def pack(built, out, level=9):
    """The packages of what is in a build folder; their files."""
    if shutil.which("dpkg-deb") is None:
        raise Failure("dpkg-deb is missing: Debian packages are made on Debian")
    version = release.version()
    architecture = run_quiet(["dpkg", "--print-architecture"], "dpkg").strip()
    triplet = run_quiet([setup.compiler(), "-dumpmachine"], "the compiler").strip()
    made = []
    with tempfile.TemporaryDirectory() as temporary:
        prefix = Path(temporary) / "prefix"
        run_quiet([find_tool("cmake"), "--install", built, "--prefix", prefix, "--strip", "--component", "gantry"],
                  "the installation", env=for_tools())
        shutil.rmtree(prefix / "libexec" / "gantry" / "ompi-abi", ignore_errors=True)  # of gantry-bench --library
        for name in PACKAGES:
            root = Path(temporary) / name
            for path in sorted(prefix.rglob("*")):
                place = path.relative_to(prefix)
                if (path.is_dir() and not path.is_symlink()) or package_of(place) != name:
                    continue
                target = root / "usr/lib" / triplet / "gantry" / place
                target.parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(path, target, follow_symlinks=False)
                if place.parts[0] == "bin":
                    link = root / "usr/bin" / program_name(place.name)
                    link.parent.mkdir(parents=True, exist_ok=True)
                    link.symlink_to(f"../lib/{triplet}/gantry/bin/{place.name}")
                    manual(root / "usr/share/man/man1" / f"{link.name}.1.gz", link.name, path, version)
            documents(root, name, version)
            control(root, name, version, architecture)
            for path in [root, *root.rglob("*")]:
                if not path.is_symlink():
                    path.chmod(0o755 if path.is_dir() or os.access(path, os.X_OK) and path.parent.name != "DEBIAN" and ".so" not in path.name else 0o644)
                os.utime(path, (release.written(), release.written()), follow_symlinks=False)
            package = Path(out) / f"{name}_{version}_{architecture}.deb"
            run_quiet(["dpkg-deb", "--root-owner-group", "-Zxz", f"-z{level}", "--build", root, package], "dpkg-deb",
                      env=dict(os.environ, SOURCE_DATE_EPOCH=str(release.written())))
            made.append(package)
    return made


def deb(preset):
    setup.ensure_ptxas()
    build.build(preset, build.PRODUCT)
    out = ROOT / "build" / "dist"
    out.mkdir(parents=True, exist_ok=True)
    step("packing for Debian")
    for package in pack(build_folder(preset), out):
        note(f"{package.relative_to(ROOT)}: {package.stat().st_size / 1e6:.2f} MB")
    return 0
