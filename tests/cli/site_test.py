# SPDX-License-Identifier: BSD-3-Clause
"""`dev site`: what the generator is given."""
import os
import re
import subprocess
import sys
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.append(str(ROOT / "tools" / "dev"))
import pages  # noqa: E402


class Site(unittest.TestCase):
    def test_every_page_stands_in_a_chapter_and_has_what_it_links_to(self):
        with tempfile.TemporaryDirectory() as folder:
            gathered = pages.gather(Path(folder))
            self.assertGreater(len(gathered), 90)
            configuration = pages.configuration(Path(folder), gathered)
            for page in gathered:
                self.assertEqual(len(re.findall(rf"^    - .*: {re.escape(str(page))}$", configuration, re.M)), 1, page)
                for place in pages.linked(page, (ROOT / page).read_text()):
                    self.assertTrue((Path(folder) / place).exists(), f"{page} links to {place}")

    def test_each_function_of_our_own_is_a_heading(self):
        page = pages.extensions_page()
        header = (ROOT / "api" / "mpi-ext.h.in").read_text()
        functions = re.findall(r"^(?:int|void) (MPIX_\w+)\(", header, re.M)
        self.assertGreater(len(functions), 5)
        for function in functions:
            self.assertIn(f"\n## {function}\n", page)

    def test_a_list_behind_a_line_of_text_begins_with_a_blank_line(self):
        self.assertEqual(pages.with_blank_lines("text:\n- one\n- two\n```\n- code\n```"), "text:\n\n- one\n- two\n```\n- code\n```")

    def test_the_site_is_built_with_search_and_no_dead_link(self):
        if "TESTS_ALL" not in os.environ:
            self.skipTest("fetches the generator: ./dev test --all")
        done = subprocess.run([ROOT / "dev", "site"], text=True, capture_output=True)
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        html = ROOT / "build" / "site" / "html"
        self.assertIn("MPIX_Query_cuda_support", (html / "search" / "search_index.json").read_text())
        self.assertIn("docs/user/programs.html", (html / "index.html").read_text())


if __name__ == "__main__":
    unittest.main()
