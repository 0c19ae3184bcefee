# SPDX-License-Identifier: BSD-3-Clause
"""`dev setup`: find what the build needs, and get what is missing from the distribution's packages.

Looking comes first and needs no network: a header is there when the compiler can include it, a program when it is on
the path and new enough. What is missing is installed with apt-get as root; anybody else gets the same packages unpacked
into .deps/ with a private apt state, so nothing outside this folder changes.
"""
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from console import Failure, follow, note, run_quiet, step
from environment import ARCH, DEPS, find_tool, for_tools, real_gpu
from progress import Progress

# program -> (Debian package, oldest version that works)
PROGRAMS = {"cmake": ("cmake", (3, 25)), "ninja": ("ninja-build", (1, 8))}
OPTIONAL_PROGRAMS = {"ccache": ("ccache", (4, 0))}
# Small, and wanted by tests of OpenACC only: library -> Debian package.
OPTIONAL_LIBRARIES = {"libgomp-plugin-nvptx.so.1": "libgomp-plugin-nvptx1"}
FORMATTER = {"clang-format-14": ("clang-format-14", (14, 0))}
# The newest release that knows all architectures from 7.0 to 12.0; what it makes runs on drivers from 525 on.
PTXAS = "nvidia-cuda-nvcc-cu12==12.9.86"
KERNEL_COMPILER = {"clang-19": ("clang-19", (19, 0))}
# header -> Debian package
HEADERS = {
    "fmt/format.h": "libfmt-dev",
    "nlohmann/json.hpp": "nlohmann-json3-dev",
    "CLI/CLI.hpp": "libcli11-dev",
    "gtest/gtest.h": "libgtest-dev",
    "gmock/gmock.h": "libgmock-dev",
    "benchmark/benchmark.h": "libbenchmark-dev",
    "ucp/api/ucp.h": "libucx-dev",
}
# Without it files are read and written by threads alone.
OPTIONAL_HEADERS = {"liburing.h": "liburing-dev"}
# Never unpacked into .deps/: the program loader and the C library must stay the system's own.
SYSTEM_ONLY = re.compile(r"^(libc6|libc-bin|libc6-dev|libgcc-s1|libstdc\+\+6|gcc-.*-base|libcrypt1|base-files|dpkg)$")


def version_of(program):
    path = find_tool(program)
    if not path:
        return None
    done = subprocess.run([path, "--version"], env=for_tools(), text=True, capture_output=True)
    found = re.search(r"(\d+)\.(\d+)", done.stdout)
    return tuple(int(part) for part in found.groups()) if done.returncode == 0 and found else None


def missing_programs(wanted):
    missing = []
    for program, (package, oldest) in wanted.items():
        version = version_of(program)
        if version is None or version < oldest:
            missing.append(package)
    return missing


def compiler():
    return find_tool(os.environ.get("CXX", "c++")) or find_tool("g++")


def missing_headers(wanted):
    """One run of the preprocessor answers for all headers."""
    lines = "".join(f'#if !__has_include(<{header}>)\nmissing {header}\n#endif\n' for header in wanted)
    include = ["-I", str(DEPS / "usr" / "include")] if DEPS.is_dir() else []
    done = subprocess.run([compiler(), "-E", "-P", "-x", "c++", *include, "-"], input=lines, text=True,
                          capture_output=True, env=for_tools())
    if done.returncode != 0:
        raise Failure(f"the C++ compiler {compiler()} does not run: {done.stderr.strip()}")
    return [wanted[line.split()[1]] for line in done.stdout.splitlines() if line.startswith("missing")]


def missing_libraries(wanted):
    folders = [folder for root in (Path("/"), DEPS) for folder in (root / "usr" / "lib").glob("*-linux-gnu")]
    return [package for library, package in wanted.items() if not any((folder / library).exists() for folder in folders)]


def install_as_root(packages):
    env = dict(os.environ, DEBIAN_FRONTEND="noninteractive")
    command = ["apt-get", "install", "-y", "-qq", "--no-install-recommends", "-o", "APT::Status-Fd=1", *packages]
    if apt_get(command, env) == 0:
        return
    # An old or empty package list is the usual reason: refresh it and try once more.
    run_quiet(["apt-get", "update", "-qq"], "apt-get update", env=env)
    said = []
    if apt_get(command, env, said) != 0:
        print("\n".join(said[-60:]))
        raise Failure(f"apt-get install failed: {shlex.join(command)}")


def apt_get(command, env, said=None):
    """Run apt-get, which tells on its APT::Status-Fd how many hundredths are fetched and then installed; returns its exit status."""
    names, progress = {"dlstatus": "% fetched:", "pmstatus": "% installed:"}, {}

    def see(line):
        counted = re.match(r"(dlstatus|pmstatus):[^:]*:([0-9.]+):", line)
        if counted:
            for other in progress.keys() - {counted[1]}:
                progress[other].clear()
            one = progress.setdefault(counted[1], Progress(names[counted[1]]))
            one.at(round(float(counted[2])), 100)
        elif said is not None:
            said.append(line)
    status = follow(command, see, env=env)
    for one in progress.values():
        one.clear()
    return status


def unpack_as_user(packages, into=DEPS):
    """apt with its own state and cache, reading only the system's list of installed packages; then dpkg -x."""
    private = into / "apt"
    for folder in ("state/lists/partial", "cache/archives/partial"):
        (private / folder).mkdir(parents=True, exist_ok=True)
    apt = ["apt-get", "-qq", "-o", f"Dir::State={private}/state", "-o", f"Dir::Cache={private}/cache",
           "-o", "Dir::State::status=/var/lib/dpkg/status", "-o", "Debug::NoLocking=1",
           "-o", "APT::Sandbox::User="]
    run_quiet([*apt, "update"], "apt-get update with a private state")
    plan = run_quiet([*apt, "-s", "--no-install-recommends", "install", *packages], "apt-get -s install")
    wanted = []
    for line in plan.splitlines():
        found = re.match(r"Inst (\S+) (?:\[\S+\] )?\((\S+)", line)
        if found and not SYSTEM_ONLY.match(found.group(1)):
            wanted.append(f"{found.group(1)}={found.group(2)}")
    archives = private / "cache" / "archives"
    note(f"{len(wanted)} packages into {into}")
    run_quiet([*apt, "download", *wanted], "apt-get download", cwd=archives)
    unpacking, progress = sorted(archives.glob("*.deb")), Progress("unpacked")
    for done, archive in enumerate(unpacking, 1):
        run_quiet(["dpkg", "-x", archive, into], f"unpacking {archive.name}")
        archive.unlink()
        progress.at(done, len(unpacking))
    shutil.rmtree(private, ignore_errors=True)


def provide(packages):
    if shutil.which("apt-get") is None:
        raise Failure("missing: " + " ".join(packages) + " (Debian's names); install them with this system's "
                      "package manager and run this again")
    step("getting " + " ".join(packages))
    try:
        (install_as_root if os.geteuid() == 0 else unpack_as_user)(packages)
    except Failure as failure:
        raise Failure(f"{failure}\n     Without a network, let an administrator install: {' '.join(packages)}") from None


def ensure(formatter=False):
    """Make the build possible; quick and silent about what is there already."""
    if compiler() is None:
        if os.geteuid() != 0:
            raise Failure("no C++ compiler: ask an administrator for g++ 12 or newer, then run this again")
        provide(["g++"])
    missing = missing_programs(PROGRAMS) + missing_headers(HEADERS)
    if formatter and not has_formatter():
        missing += missing_programs(FORMATTER)
    if not missing:
        return
    # ccache only makes rebuilds faster, few tests need OpenACC, and files go by threads as well: they alone are no reason to fetch anything.
    provide(missing + missing_programs(OPTIONAL_PROGRAMS) + missing_headers(OPTIONAL_HEADERS) + missing_libraries(OPTIONAL_LIBRARIES))
    still = missing_programs(PROGRAMS) + missing_headers(HEADERS)
    if still:
        raise Failure("still missing after installing: " + " ".join(still))


def has_formatter():
    return formatter_path() is not None


def formatter_path():
    """clang-format 14: another release formats some lines differently."""
    for name in ("clang-format-14", "clang-format"):
        version = version_of(name)
        if version and version[0] == 14:
            return find_tool(name)
    return None


def kernel_compiler():
    """clang-19, the one compiler of the committed PTX, or None."""
    return None if missing_programs(KERNEL_COMPILER) else find_tool("clang-19")


def ensure_kernel_compiler():
    """Only kernels need it (40 MB to fetch), so a build does not ask for it."""
    missing = missing_programs(KERNEL_COMPILER)
    if missing:
        provide(missing)


def ensure_ptxas():
    """NVIDIA's assembler, which compiles the kernels for each architecture (cmake/kernels.cmake): of a CUDA toolkit, else of its wheel.
    Without both the driver compiles them at first use, so nothing here is a reason to stop."""
    if find_tool("ptxas") or Path("/usr/local/cuda/bin/ptxas").exists():
        return
    step(f"getting ptxas ({PTXAS})")
    with tempfile.TemporaryDirectory() as folder:
        fetched = subprocess.run([sys.executable, "-m", "pip", "-q", "download", "--no-deps", "--only-binary=:all:", "-d", folder, PTXAS],
                                 text=True, capture_output=True)
        wheels = list(Path(folder).glob("*.whl"))
        if fetched.returncode != 0 or not wheels:
            note("not found: the driver will compile the kernels on first use")
            return
        program = DEPS / "usr" / "bin" / "ptxas"
        program.parent.mkdir(parents=True, exist_ok=True)
        with zipfile.ZipFile(wheels[0]) as wheel:
            program.write_bytes(wheel.read("nvidia/cuda_nvcc/bin/ptxas"))
        program.chmod(0o755)


def report():
    step("what the build uses")
    for program in ("c++", "cmake", "ninja", "ccache", "python3"):
        version = version_of(program)
        shown = ".".join(map(str, version)) if version else "not found"
        note(f"{program:8} {shown:10} {find_tool(program) or ''}")
    private = DEPS / "usr"
    devices, why_not = real_gpu()
    note(f"GPU      {devices} CUDA device(s)" if devices else f"GPU      the simulated one ({why_not})")
    note(f"libraries {'from .deps/ first, then ' if private.is_dir() else 'from '}the system ({ARCH})")
