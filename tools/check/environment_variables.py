# SPDX-License-Identifier: BSD-3-Clause
"""the library reads environment variables only through base/config"""
import _rule

inside = [path for path in _rule.below("src") if not str(path.relative_to(_rule.ROOT)).startswith("src/base/config.")]
_rule.forbid(inside, r"\b(secure_)?getenv\s*\(|\benviron\b",
             "reads the environment: use config::environment(name), or a row of base/params.def")
_rule.finish()
