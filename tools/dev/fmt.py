# SPDX-License-Identifier: BSD-3-Clause
"""`dev fmt`: clang-format over our C and C++ files, or over the ones named."""
from pathlib import Path

import setup
import sources
from console import run, step
from environment import for_tools

FORMATTED = (".cpp", ".hpp", ".h", ".c", ".cu")


def targets(names):
    # Generated files are written in their final form by their generator.
    return [Path(name).resolve() for name in names] if names else [
        path for path in sources.code(FORMATTED) if "generated" not in path.read_text(errors="replace")[:400].lower()]


def fmt(names):
    setup.ensure(formatter=True)
    chosen = targets(names)
    step(f"formatting {len(chosen)} files")
    for start in range(0, len(chosen), 100):
        run([setup.formatter_path(), "-i", *chosen[start:start + 100]], "clang-format", env=for_tools())
    return 0
