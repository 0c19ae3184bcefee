# SPDX-License-Identifier: BSD-3-Clause
"""gantry-bench called wrongly: the line that is said names the program, the option and where help is."""
import options_test


class Mistakes(options_test.Command):
    def test_sizes_that_there_are_not_are_refused(self):
        for size in ("-8", "8Q", "8:", ",", "99999999999G"):
            for words in (("latency", "H", "H"), ("allreduce", "H"), ("io", "contiguous", "H")):
                self.assertIn("is not a size", "".join(self.refused(*words, f"--sizes={size}", "-i", "1")))

    def test_a_mistake_names_the_program_the_option_and_where_help_is(self):
        for words, sentence in ((("latency", "H", "-i", "0"), "latency: --iterations: takes a number above 0, not '0'. See gantry-bench latency --help"),
                                (("allreduce", "H", "-i", "0"), "allreduce: --iterations: takes a number above 0, not '0'. See gantry-bench allreduce --help"),
                                (("latency", "--loud"), "latency: the following argument was not expected: --loud. See gantry-bench latency --help"),
                                (("plot",), "plot: files is required. See gantry-bench plot --help"),
                                ((), "which benchmark? gantry-bench --help lists them")):
            code, out, err = options_test.run(*words, job=1)
            self.assertEqual(code, 2, out + err)
            self.assertIn(sentence, err)

    def test_a_collective_is_told_by_the_bytes_that_it_had(self):
        sizes = options_test.sizes_in(self.good("allreduce", "H", "-m", "3,8,13", "-i", "2", "--type", "int", job=2))
        self.assertEqual(sizes, [4, 8, 12])

    def test_a_machine_that_there_is_not_is_told_once_by_each_rank_that_uses_a_gpu(self):
        code, out, err = options_test.run("latency", "D", "D", "-m", "8", "-i", "1", job=2, GANTRY_MACHINE="nope")
        self.assertEqual(code, 0, out + err)
        self.assertEqual(err.count('no machine is called "nope"'), 2, err)
