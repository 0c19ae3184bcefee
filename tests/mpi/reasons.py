# SPDX-License-Identifier: BSD-3-Clause
"""What a case said of why it did not run (tests/mpi/main.cpp), among all else that it said."""


def why_not(said):
    return next((line for line in said.splitlines() if line.startswith("not run: ")), "not run: it did not say why")
