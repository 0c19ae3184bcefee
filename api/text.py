# SPDX-License-Identifier: BSD-3-Clause
"""Line breaking for generated C: between parameters, never inside one."""

import textwrap

GLUE = "\0"


def wrap(text: str, width: int, indent: str = "    ") -> list:
    glued = text.replace(" ", GLUE).replace("," + GLUE, ", ")
    lines = textwrap.wrap(
        glued, width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return [line.replace(GLUE, " ") for line in lines]
