# SPDX-License-Identifier: BSD-3-Clause
"""Run a command with the network between all ranks, also those of this node: over_network.py COMMAND...

Exit code 77 (not run) with the reason where there is no UCX: nothing else could carry the messages.
"""
import ctypes
import os
import sys

library = os.environ.get("GANTRY_UCX") or "libucp.so.0"
if os.path.isdir(library):
    library = os.path.join(library, "libucp.so.0")
try:
    ctypes.CDLL(library)
except OSError as refused:
    print(f"not run: the network needs UCX ({refused}); `apt install libucx0` or set GANTRY_UCX")
    sys.exit(77)
os.environ["GANTRY_SHM"] = "off"
os.execvp(sys.argv[1], sys.argv[1:])
