# SPDX-License-Identifier: BSD-3-Clause
"""Every rule of `dev check` finds a planted breach, says where it is, and accepts the right form.

A check that cannot fail is worse than none. Each case writes one small file into an empty copy of the repository's
layout and runs one check on it.
"""
import json
import os
import shutil
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parents[2]
LICENCE = "// SPDX-License-Identifier: BSD-3-Clause\n"


class Checks(unittest.TestCase):
    def setUp(self):
        self.root = Path(tempfile.mkdtemp(prefix="gantry-checks-"))
        self.addCleanup(shutil.rmtree, self.root)
        for folder in ("check", "dev"):
            shutil.copytree(REPOSITORY / "tools" / folder, self.root / "tools" / folder,
                            ignore=shutil.ignore_patterns("__pycache__"))

    def run_check(self, name, place, content, env=None):
        path = self.root / place
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        return subprocess.run([sys.executable, "-B", str(self.root / "tools" / "check" / f"{name}.py")],
                              env=dict(os.environ, **(env or {})), text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)

    def refused(self, name, place, content, line, words):
        done = self.run_check(name, place, LICENCE + content)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn(f"{place}:{line}:", done.stdout)
        self.assertIn(words, done.stdout)

    def accepted(self, name, place, content):
        done = self.run_check(name, place, LICENCE + content)
        self.assertEqual((done.returncode, done.stdout), (0, ""))

    def test_a_layer_may_not_include_one_above_it(self):
        self.refused("layers", "src/p2p/a.cpp", '#include "mpi/comm/comm.hpp"\n', 2, "above it")

    def test_a_layer_may_not_include_its_sibling(self):
        self.refused("layers", "src/device/a.cpp", '#include "transport/transport.hpp"\n', 2, "sibling")

    def test_plan_sees_only_facts_of_other_layers(self):
        self.refused("layers", "src/plan/a.cpp", '#include "device/device.hpp"\n', 2, "facts.hpp")
        self.accepted("layers", "src/plan/a.cpp", '#include "device/facts.hpp"\n#include "base/status.hpp"\n')

    def test_a_folder_that_is_no_layer_is_refused(self):
        self.refused("layers", "src/misc/a.cpp", "", 1, "no layer")

    def test_a_capturing_lambda_may_not_be_a_coroutine(self):
        self.refused("coroutines", "src/p2p/a.cpp",
                     "auto f = [&peer](int n) -> Task<Status> {\n    co_await peer.send(n);\n    co_return {};\n};\n", 2,
                     "capturing lambda")
        self.accepted("coroutines", "src/p2p/a.cpp",
                      "auto f = [](Peer* peer) -> Task<Status> {\n    co_return co_await peer->send();\n};\n")

    def test_a_capturing_lambda_beside_an_await_is_no_coroutine(self):
        self.accepted("coroutines", "src/p2p/a.cpp",
                      "Task<Status> f(Peer* peer) {\n    peer->each([peer](int n) { return n; });\n"
                      "    co_return co_await peer->send();\n}\n")

    def copy_kernels(self):
        shutil.copytree(REPOSITORY / "src" / "device" / "kernels", self.root / "src" / "device" / "kernels")
        ptx = "src/device/kernels/ptx/copy_many.ptx"
        return ptx, (self.root / ptx).read_text()

    def test_ptx_that_its_source_does_not_give_is_refused(self):
        ptx, text = self.copy_kernels()
        done = self.run_check("kernels", ptx, text)
        if done.returncode == 77:
            self.skipTest(done.stdout.strip())
        self.assertEqual((done.returncode, done.stdout), (0, ""))
        done = self.run_check("kernels", ptx, text.replace("membar.sys", "membar.gl"))
        self.assertEqual(done.returncode, 1, done.stdout)
        line = text[:text.index("membar.sys")].count("\n") + 1
        self.assertIn(f"{ptx}:{line}: not what clang-19 makes of copy_many.cu", done.stdout)
        self.run_check("kernels", ptx, text)
        self.assertIn("orphan.ptx:1: no source", self.run_check("kernels", "src/device/kernels/ptx/orphan.ptx", "").stdout)

    def test_without_its_compiler_the_check_of_the_ptx_says_not_run(self):
        ptx, text = self.copy_kernels()
        done = self.run_check("kernels", ptx, text, {"PATH": str(self.root)})
        self.assertEqual((done.returncode, done.stdout[:9]), (77, "not run: "))

    def test_no_await_in_a_conditional_expression(self):
        self.refused("coroutines", "src/p2p/a.cpp",
                     "Task<int> f(bool b) {\n    int n = b ? co_await g() : 0;\n    co_return n;\n}\n", 3, "conditional")

    def test_no_task_is_made_in_a_conditional_expression(self):
        self.refused("coroutines", "src/p2p/a.cpp",
                     "Task<int> f(bool a) {\n    Task<int> way = a ? g(1) : h(2);\n    int n = co_await way;\n    co_return n;\n}\n", 3,
                     "conditional")

    def test_no_await_in_a_switch_condition(self):
        self.refused("coroutines", "src/p2p/a.cpp",
                     "Task<int> f() {\n    switch (co_await g()) {\n        case 1: break;\n    }\n    co_return 1;\n}\n", 3,
                     "switch")

    def test_no_braced_temporary_in_an_awaiting_expression(self):
        self.refused("coroutines", "src/p2p/a.cpp",
                     "Task<int> f() {\n    co_await g(Chunk{1, 2});\n    co_return 1;\n}\n", 3, "braced temporary")
        self.accepted("coroutines", "src/p2p/a.cpp",
                      "Task<int> f() {\n    Chunk chunk{1, 2};\n    co_await g(chunk);\n    co_return 1;\n}\n")

    def test_a_comment_about_awaiting_is_only_a_comment(self):
        self.accepted("coroutines", "src/p2p/a.cpp", "// co_await in a ? b : c goes wrong\nTask<int> f() { co_return 1; }\n")

    def test_the_environment_is_read_only_by_config(self):
        self.refused("environment_variables", "src/job/a.cpp", 'auto p = std::getenv("PMI_FD");\n', 2, "config")
        (self.root / "src/job/a.cpp").unlink()
        self.accepted("environment_variables", "src/base/config.cpp", 'auto p = std::getenv("PMI_FD");\n')

    def test_a_vendors_header_stays_in_its_folder(self):
        self.refused("vendor_headers", "src/p2p/a.cpp", "#include <ucp/api/ucp.h>\n", 2, "src/transport/ucx")
        (self.root / "src/p2p/a.cpp").unlink()
        self.accepted("vendor_headers", "src/transport/ucx/a.cpp", "#include <ucp/api/ucp.h>\n")

    def test_nvidias_headers_are_used_nowhere(self):
        self.refused("vendor_headers", "src/device/cuda/a.cpp", "#include <cuda.h>\n", 2, "NVIDIA")

    def test_a_source_without_its_licence_line_is_refused(self):
        done = self.run_check("licence", "src/base/a.cpp", "int one();\n")
        self.assertIn("src/base/a.cpp:1:", done.stdout)
        self.assertEqual(done.returncode, 1)

    def test_unfinished_work_is_no_word_in_the_code(self):
        self.refused("words", "src/base/a.cpp", "// TO" + "DO later\n", 2, "unfinished")

    def test_a_path_of_one_machine_is_refused(self):
        self.refused("words", "src/base/a.cpp", "// see /ro" + "ot/notes\n", 2, "one machine")

    def test_two_sides_of_a_merge_are_refused(self):
        self.refused("words", "tools/dev/a.py", "<" * 7 + " HEAD\nONE = 1\n" + "=" * 7 + "\nONE = 2\n", 2, "both sides of a merge")

    def test_a_program_that_python_cannot_read_is_refused(self):
        self.assertEqual(self.run_check("python", "tools/dev/a.py", "one = 1\n").returncode, 0)
        done = self.run_check("python", "tools/dev/a.py", "one = 1\nif one\n    two = 2\n")
        self.assertEqual((done.returncode, done.stdout), (1, "tools/dev/a.py:2: expected ':'\n"))

    def test_a_file_of_many_ideas_is_refused(self):
        self.refused("words", "src/base/a.cpp", "int one();\n" * 500, 501, "which two ideas")

    def test_a_figure_of_the_results_is_there_once_with_all_its_fields(self):
        fields = {"test": "latency", "placement": "D-D", "bytes": 8, "value": 1, "unit": "us", "floor": None, "page": "day.md", "section": None,
                  "date": "2026-11-24", "device": "a GPU", "gpus": 1, "driver": "1", "command": None, "commit": None}
        folder = self.root / "bench" / "results"
        folder.mkdir(parents=True)
        (folder / "README.md").write_text(" ".join(f"`{name}`" for name in [*fields, "progress", "ucx"]))
        (folder / "day.md").write_text("# A day\n")
        less = {name: value for name, value in fields.items() if name != "date"}
        overlap = [{**fields, "progress": progress} for progress in ("calls", "thread")]

        def check(*lines, place="h200-device.jsonl"):
            text = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
            done = self.run_check("results", f"bench/results/{place}", text)
            (folder / place).unlink()
            return done.stdout

        self.assertEqual(check(fields, {**fields, "bytes": 64, "ucx": 2}, *overlap), "")
        self.assertIn("h200-device.jsonl:2: the figure of line 1 again", check(fields, {**fields, "value": 2}))
        self.assertIn("jsonl:1: no field 'date'", check(less))
        self.assertIn("jsonl:1: field 'Open MPI' is not explained", check({**fields, "Open MPI": 3}))
        self.assertIn("jsonl:1: there is no page night.md", check({**fields, "page": "night.md"}))
        self.assertIn("jsonl:2: no JSON object", check(fields, "8 B: 1 us"))
        self.assertEqual(check(less, less, place="h200-device-earlier.jsonl"), "")
        self.assertIn("earlier.jsonl:1: field 'Intel MPI' is not explained", check({**less, "Intel MPI": 3}, place="h200-device-earlier.jsonl"))

    def test_a_link_leads_to_a_page_and_a_heading(self):
        page = self.root / "docs" / "page.md"
        page.parent.mkdir(parents=True)
        page.write_text("# Who copies what?\n\n```\n# no heading\n```\n")

        def check(line, place="README.md"):
            return self.run_check("links", place, line + "\n").stdout

        self.assertEqual(check("[a](docs/page.md), [b](docs/page.md#who-copies-what), [c](https://nowhere.example)"), "")
        self.assertEqual(check("```\n[x](gone.md)\n```"), "")
        self.assertIn("README.md:1: there is no docs/gone.md", check("[a](docs/gone.md)"))
        self.assertIn("docs/page.md has no heading 'no-heading'", check("[a](docs/page.md#no-heading)"))
        (self.root / "README.md").unlink()
        self.assertEqual(check("// docs/page.md", place="src/base/a.cpp"), "")
        self.assertIn("a.cpp:1: there is no docs/gone.md", check("// docs/gone.md, 3", place="src/base/a.cpp"))

    def test_the_wire_page_shows_the_counts_of_its_test(self):
        for place in ("tests/world/wire_count_test.cpp", "docs/wire.md"):
            (self.root / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / place, self.root / place)
        page = (REPOSITORY / "docs" / "wire.md").read_text()
        row = "| network | H to H | 8 B | eager | 1 / 32 | 0 / 0 | 0 | 0 then 0 |\n"
        self.assertIn(row, page)

        def check(text):
            return self.run_check("wire_counts", "docs/wire.md", text).stdout

        self.assertEqual(check(page), "")
        line = page[:page.index(row)].count("\n") + 1
        for wrong in (page.replace(row, ""), page.replace(row, row.replace("32", "33")), page.replace(row, row + row)):
            self.assertIn(f"docs/wire.md:{line + (wrong.count(row) == 2)}: the test has here", check(wrong))
        self.assertIn("the test has here", check("# No table\n"))

    def test_the_readme_shows_the_figures_of_the_results(self):
        for place in ("bench/speed_chart", "bench/results/h200-device.jsonl", "docs/pictures/latency.svg"):
            (self.root / place).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(REPOSITORY / place, self.root / place)
        readme = (REPOSITORY / "README.md").read_text()

        def check(text):
            return self.run_check("readme", "README.md", text).stdout

        self.assertEqual(check(readme), "")
        self.assertIn("README.md:1: the table lacks '| 8 B |", check(readme.replace("| 8 B | 5", "| 8 B | 4")))
        self.assertIn("README.md:151: ", check(readme + "more\n" * 150))
        results = self.root / "bench" / "results" / "h200-device.jsonl"
        newer = [json.loads(line) for line in results.read_text().splitlines()]
        for line in newer:
            line["value"] += 1
        results.write_text("".join(json.dumps(line) + "\n" for line in newer))
        self.assertIn("latency.svg:1: not the figures of bench/results", check(readme))

    def test_a_writable_global_is_found_in_the_built_library(self):
        source = self.root / "counter.cpp"
        source.write_text("namespace gantry { int counter = 1; const char* const kNames[] = {\"a\"}; int one() { return counter; }\n"
                          "const char* name(int i) { return kNames[i]; } }\n")
        folder = self.root / "build" / "release"
        folder.mkdir(parents=True)
        subprocess.run(["c++", "-fPIC", "-c", source, "-o", folder / "counter.o"], check=True)
        subprocess.run(["ar", "rc", folder / "libgantry_base.a", folder / "counter.o"], check=True)
        done = self.run_check("globals", "src/base/a.cpp", LICENCE)
        self.assertEqual(done.stdout.split(), ["libgantry_base.a(counter.o):", "gantry::counter"])
        self.assertEqual(done.returncode, 1)

    def count_messages(self, env=None, **counted):
        """The check of what messages cost, where counting finds `files` files and `instructions` instructions of whatever is counted."""
        return self.run_check("message_cost", "bench/instructions", f"""
import collections
def gantry_only(costs):
    return costs
def personality_only(costs):
    return sum(costs.values())
def measure(build, kind, arguments, two_nodes, through=None):
    return [collections.Counter({{f"p2p/{{i}}.cpp": {counted["instructions"]} / {counted["files"]} for i in range({counted["files"]})}})] * 2
""", env)

    @unittest.skipUnless(shutil.which("valgrind"), "there is no valgrind")
    def test_a_message_passes_no_more_files_and_costs_no_more_instructions(self):
        done = self.count_messages(files=1, instructions=2)
        self.assertEqual(done.returncode, 0, done.stdout)
        self.assertIn("MPI_Send of 8 B of host memory: 1 files: lower the bound", done.stdout)
        done = self.count_messages(files=100, instructions=100)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("MPI_Send of 8 B of host memory: 100 files, at most", done.stdout)
        done = self.count_messages(files=1, instructions=10 ** 6)
        self.assertEqual(done.returncode, 1, done.stdout)
        self.assertIn("MPI_Allreduce of 8 B, last rank: 1000000 instructions, at most", done.stdout)

    def test_without_valgrind_what_messages_cost_is_not_counted(self):
        done = self.count_messages({"PATH": str(self.root)}, files=100, instructions=100)
        self.assertEqual((done.returncode, done.stdout[:9]), (77, "not run: "))


if __name__ == "__main__":
    unittest.main()
