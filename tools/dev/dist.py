# SPDX-License-Identifier: BSD-3-Clause
"""`dev dist`: the source release build/dist/gantry-VERSION.tar.gz: what is committed, and nothing else. The same commit gives the same bytes.

It builds where it is unpacked, by the same commands (./dev build), and needs no git there.
"""
import gzip
import hashlib
import io
import subprocess
import tarfile

import release
from console import ROOT, Failure, note, step


def archive(commit, folder):
    """The bytes of a commit's release, all files below one folder. git's own archive differs with its version."""
    done = subprocess.run(["git", "-C", ROOT, "archive", "--format=tar", commit], capture_output=True)
    if done.returncode != 0:
        raise Failure(f"a source release is made of a git checkout: {done.stderr.decode().strip()}")
    out = io.BytesIO()
    with tarfile.open(fileobj=io.BytesIO(done.stdout)) as given, gzip.GzipFile(fileobj=out, mode="wb", compresslevel=9, mtime=0) as packed, \
            tarfile.open(fileobj=packed, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for entry in sorted(given.getmembers(), key=lambda entry: entry.name):
            if entry.isdir():
                continue
            content = given.extractfile(entry) if entry.isfile() else None
            entry.name, entry.mtime = f"{folder}/{entry.name}", release.written()
            entry.uid = entry.gid = 0
            entry.uname = entry.gname = ""
            entry.mode, entry.pax_headers = 0o755 if entry.mode & 0o100 else 0o644, {}
            tar.addfile(entry, content)
    return out.getvalue()


def dist():
    name = f"gantry-{release.version()}"
    step("packing the sources")
    if release.git("status", "--porcelain"):
        note("what is not committed is not part of it")
    content = archive("HEAD", name)
    path = ROOT / "build" / "dist" / f"{name}.tar.gz"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content)
    note(f"{path.relative_to(ROOT)}: {len(content) / 1e6:.1f} MB, sha256 {hashlib.sha256(content).hexdigest()[:16]}")
    return 0
