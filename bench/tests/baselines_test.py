# SPDX-License-Identifier: BSD-3-Clause
"""gantry-bench beside what programs do by hand: every baseline moves the right bytes, and is refused where there is none."""
import json

import options_test
from options_test import run


class Baselines(options_test.Command):
    def test_rows_beside_copies_by_hand(self):
        for name in ("latency", "bibw"):
            row = self.document(name, "D", "D", "-m", "48K", "-i", "2", "-w", "3", "--layout", "48:112", "--baseline", "all", job=2)["rows"][0]
            self.assertEqual([way["name"] for way in row["ways"]], ["Gantry", "staged", "user-pipelined"])

    def test_put_and_get_beside_copies_by_hand(self):
        for name in ("put", "get"):
            rows = self.document(name, "D", "D", "-m", "8,300K", "-i", "2", "--sync", "fence", "--baseline", "staged", job=2)["rows"]
            self.assertEqual([[way["name"] for way in row["ways"]] for row in rows], [["Gantry", "staged"]] * 2)
        self.assertIn("must be in device memory", "".join(self.refused("put", "D", "H", "--sync", "fence", "--baseline", "staged")))
        self.assertIn("--sync fence", "".join(self.refused("put", "D", "D", "--baseline", "staged")))

    def test_ranks_of_a_collective_take_the_gpus_in_turn(self):
        for words, shared in (((), False), (("--gpus", "1"), True)):
            code, out, err = run("allreduce", "D", "-m", "8", "-i", "2", *words, job=2)
            self.assertEqual(code, 0, out + err)
            self.assertEqual("shared GPU" in err, shared, err)

    def test_collectives_beside_copies_by_hand(self):
        for operation, ways in (("alltoall", ["Gantry", "staged", "messages"]), ("bcast", ["Gantry", "staged"]),
                                ("gather", ["Gantry", "staged"]), ("allreduce", ["Gantry", "staged"]), ("exscan", ["Gantry", "staged"])):
            with self.subTest(operation):
                lines = [json.loads(line) for line in
                         self.good(operation, "D", "-m", "3K", "-i", "2", "--baseline", "all", "--json", job=3).splitlines()]
                self.assertEqual([line["way"] for line in lines], ways)
                self.assertTrue(all(line["low"] <= line["us"] <= line["high"] for line in lines), lines)
        for words, sentence in (("H", "device memory"), ("D --form nonblocking", "blocking calls")):
            self.assertIn(sentence, "".join(self.refused("bcast", *words.split(), "--baseline", "staged")))
        self.assertIn("of alltoall", "".join(self.refused("bcast", "D", "--baseline", "messages")))
