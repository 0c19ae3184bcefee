# SPDX-License-Identifier: BSD-3-Clause
"""committed generated files are what their generator writes today"""
import subprocess
import sys

import _rule

generator = _rule.ROOT / "api" / "generate.py"
if generator.exists():
    done = subprocess.run([sys.executable, str(generator), "--check"], cwd=_rule.ROOT, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    if done.returncode != 0:
        print(done.stdout.strip())
        sys.exit(1)
