# SPDX-License-Identifier: BSD-3-Clause
"""the library has no writable global data except what tools/check/globals.txt allows, with reasons

One Engine owns everything, so that tests can run many in one process. Read with nm from the built layer libraries; tables of
constant pointers (.data.rel.ro) are written by the loader only and do not count.
"""
import re
import subprocess
import sys

import _rule

ALLOWED = _rule.ROOT / "tools" / "check" / "globals.txt"
WRITABLE = re.compile(r"\.(t?data|t?bss)(?!\.rel\.ro)")
COMPILERS_OWN = re.compile(r"^(guard variable for |DW\.ref\.|__|\.)|__PRETTY_FUNCTION__|__func__")
THIRD_PARTY = re.compile(r"^(fmt|nlohmann|std|CLI)::")


def writable_globals(library):
    """(member, demangled name) of each writable object of an archive."""
    listing = subprocess.run(["nm", "-C", "--format=sysv", "--defined-only", str(library)], text=True,
                             capture_output=True, check=True).stdout
    member = library.name
    for line in listing.splitlines():
        header = re.match(r"Symbols from .*\[(.*)\]", line)
        member = header[1] if header else member
        # name | value | class | type | size | line | section; a demangled name may hold bars, so count from the end
        fields = [field.strip() for field in line.rsplit("|", 6)]
        if len(fields) == 7 and fields[3] in ("OBJECT", "TLS", "COMMON") and WRITABLE.match(fields[6]):
            name = fields[0].replace("(anonymous namespace)::", "")
            name = re.sub(r"\[abi:\w+\]|\(.*\)( const)?", "", name)
            if not COMPILERS_OWN.search(name) and not THIRD_PARTY.match(name):
                yield member, name


allowed = {line.split()[0] for line in ALLOWED.read_text().splitlines() if line and not line.startswith("#")}
folder = _rule.ROOT / "build" / _rule.arguments().preset
libraries = sorted(folder.glob("libgantry_*.a"))
found = sorted({f"{library.name}({member}): {name}" for library in libraries if library.name != "libgantry_fakes.a"
                for member, name in writable_globals(library) if name not in allowed})
for line in found:
    print(line)
if not libraries:
    print(f"no layer library in build/{folder.name}: ./dev build first")
sys.exit(1 if found or not libraries else 0)
