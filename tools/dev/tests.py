# SPDX-License-Identifier: BSD-3-Clause
"""`dev test`: build, run CTest, count.

Every case of every test program is one CTest test (tests/CMakeLists.txt). The exit code of a case says whether it passed;
a case that could not run here (no GPU, too few cores) is skipped and its reason is printed.
"""
import re
import shutil
import xml.etree.ElementTree as xml
from dataclasses import dataclass, field

import build
from console import ROOT, Failure, cores, follow, note, step
from environment import build_folder, find_tool, for_tools, real_gpu, simulated_gpu
from progress import Progress


@dataclass
class Counts:
    passed: int = 0
    failed: int = 0
    skipped: int = 0
    failures: list = field(default_factory=list)

    def add(self, other):
        self.passed += other.passed
        self.failed += other.failed
        self.skipped += other.skipped
        self.failures += other.failures

    def closing_line(self):
        skipped = f", {self.skipped} skipped" if self.skipped else ""
        return f"{self.passed} passed, {self.failed} failed{skipped}"


def choose_driver(preset, real):
    if real:
        devices, why_not = real_gpu()
        if not devices:
            raise Failure(f"--real-gpu: {why_not}")
        step(f"device tests use the system's driver ({devices} device{'s' if devices > 1 else ''})")
    elif simulated_gpu(preset):
        step("device tests use the simulated GPU")
    else:
        step("the simulated GPU is not built: device tests will find no driver")
    env = for_tools()
    env["GANTRY_TEST_GPU"] = "real" if real else "simulated"  # read by tests/CMakeLists.txt
    # Reports of the sanitizers must fail the test that caused them. The runtime of GCC 12 takes a block of thread-local
    # memory that lies 16 bytes behind a page for one of glibc 2.19, and LeakSanitizer then reads wherever its first words
    # point (sanitizers' issue 1322): it is not to note such blocks, which it knows as the dynamic linker's anyhow.
    # Local variables stay on the stack, by which Gantry knows them: GCC 13 would move them elsewhere.
    env.setdefault("ASAN_OPTIONS", "detect_leaks=1:abort_on_error=0:exitcode=99:intercept_tls_get_addr=0:detect_stack_use_after_return=0")
    env.setdefault("LSAN_OPTIONS", f"suppressions={ROOT / 'tests' / 'leaks.txt'}:print_suppressions=0")
    env.setdefault("UBSAN_OPTIONS", "print_stacktrace=1")
    env.setdefault("TSAN_OPTIONS", "halt_on_error=1:exitcode=99")
    return env


class CtestOutput:
    """Of what CTest says: failures as they come, and how far it is as a progress line."""

    def __init__(self):
        self.progress = Progress("tested")

    def see(self, line):
        counted = re.match(r"\s*(\d+)/(\d+) Test\s+#\d+: (.*)", line)
        if not counted:
            if "No tests were found" in line or line.startswith("CMake Error"):
                self.progress.clear()
                note(line.strip())
            return
        done, total, what = int(counted[1]), int(counted[2]), re.sub(r"\.{3,}", "", counted[3])
        if not re.search("Passed|Skipped|Disabled", what):
            self.progress.clear()
            note(f"{done}/{total} {what}")
        self.progress.at(done, total)


# Of GoogleTest's output, what every case prints.
BOILERPLATE = re.compile(r"Running main\(\)|Note: Google Test filter|\[(=+|-+| {2}PASSED  | {7}OK )\]")


def last_lines(text, count):
    lines = [line for line in text.strip().splitlines() if line.strip() and not BOILERPLATE.match(line)]
    return "\n".join("       " + line for line in lines[-count:])


def reason_of_skip(output):
    """What the test said: GoogleTest prints the streamed reason on the line after the place, unittest in quotes."""
    quoted = re.search(r"skipped ['\"](.*)['\"]$", output, re.M)
    if quoted:
        return quoted[1]
    lines = [line.strip() for line in output.splitlines() if line.strip()]
    for index, line in enumerate(lines):
        if line.endswith(": Skipped") and index + 1 < len(lines):
            return lines[index + 1]
        if line.lower().startswith("skip"):
            return line
        if line.startswith("not run: "):
            return line.removeprefix("not run: ")
    return "no reason given"


def read_results(report):
    counts = Counts()
    reasons = {}
    for case in xml.parse(report).getroot().iter("testcase"):
        output = case.findtext("system-out") or ""
        name = case.get("name")
        if case.get("status") == "fail" or case.find("failure") is not None:
            counts.failed += 1
            counts.failures.append(name)
            print(f"\n---- {name} failed ----\n{last_lines(output, 40)}", flush=True)
        elif case.get("status") == "run":
            counts.passed += 1
        elif case.get("status") != "disabled":  # Disabled cases are helpers that other cases start.
            counts.skipped += 1
            reasons.setdefault(reason_of_skip(output), []).append(name)
    for reason, names in reasons.items():
        note(f"skipped {len(names)} ({names[0]}{', ...' if len(names) > 1 else ''}): {reason}")
    return counts


def run_tests(preset, test_filter=None, real=False, exclude=None, targets=(), retry=False, every_seed=False):
    """Build and run one preset's tests; prints failures, returns the counts."""
    build.build(preset, targets)
    env = choose_driver(preset, real)
    if every_seed:
        env["TESTS_ALL"] = "1"  # read by tests/all.hpp and tests/mpi
    folder = build_folder(preset)
    report = folder / "test-results.xml"
    report.unlink(missing_ok=True)
    command = [find_tool("ctest") or shutil.which("ctest"), "--test-dir", folder, f"-j{cores()}", "--timeout", "7200" if every_seed else "300",
               "--output-on-failure", "--no-tests=error", "--output-junit", report]
    if test_filter:
        command += ["-R", test_filter]
    if exclude:
        command += ["-E", exclude]
    if retry:
        command += ["--repeat", "until-pass:2"]
    step(f"testing build/{preset}" + (f", only {test_filter}" if test_filter else ""))
    status = follow(command, CtestOutput().see, env)
    if not report.exists():
        raise Failure(f"ctest wrote no results (exit {status}); run: ctest --test-dir {folder}")
    counts = read_results(report)
    if counts.passed + counts.failed + counts.skipped == 0:
        raise Failure("no test matches" + (f" {test_filter}" if test_filter else ""))
    if status != 0 and not counts.failed:
        raise Failure(f"ctest ended with {status} although no test failed")
    return counts


def test(preset, test_filter, real, exclude=None, targets=(), retry=False, every_seed=False):
    counts = run_tests(preset, test_filter, real, exclude, targets, retry, every_seed)
    if counts.failures:
        step("failed: " + " ".join(counts.failures))
        note(f"again: ./dev test --preset {preset} '^{re.escape(counts.failures[0])}$'")
    print(counts.closing_line(), flush=True)
    return 1 if counts.failed else 0
