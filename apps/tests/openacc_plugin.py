# SPDX-License-Identifier: BSD-3-Clause
"""GCC's OpenACC plugin for NVIDIA devices: a package of its own. Tests that need it are not run where it is missing, and say so."""
import ctypes

WITHOUT = "not run: there is no libgomp-plugin-nvptx.so.1 (Debian: libgomp-plugin-nvptx1)"


def is_there():
    try:
        ctypes.CDLL("libgomp-plugin-nvptx.so.1")
        return True
    except OSError:
        return False
