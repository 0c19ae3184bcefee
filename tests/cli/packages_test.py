# SPDX-License-Identifier: BSD-3-Clause
"""`dev dist` and `dev deb`: what they pack is whole, the same twice, and works where it is unpacked."""
import gzip
import os
import shutil
import subprocess
import sys
import tarfile
import tempfile
import unittest
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD = Path(os.environ["GANTRY_BUILD_FOLDER"])
sys.path.append(str(ROOT / "tools" / "dev"))
import deb  # noqa: E402
import dist  # noqa: E402
import release  # noqa: E402


def run(*words, **options):
    return subprocess.run([str(word) for word in words], text=True, capture_output=True, timeout=280, **options)


class Packages(unittest.TestCase):
    def setUp(self):
        folder = tempfile.TemporaryDirectory()
        self.addCleanup(folder.cleanup)
        self.folder = Path(folder.name)

    def assert_succeeds(self, done, said=""):
        self.assertEqual(done.returncode, 0, done.stdout + done.stderr)
        self.assertIn(said, done.stdout)

    def unpack_release(self):
        if release.git("rev-parse", "HEAD") is None:
            self.skipTest("a source release is made of a git checkout, which this is not")
        content = dist.archive("HEAD", "gantry-1")
        self.assertEqual(content, dist.archive("HEAD", "gantry-1"))
        packed = self.folder / "gantry.tar.gz"
        packed.write_bytes(content)
        with tarfile.open(packed) as tar:
            tar.extractall(self.folder)
        return self.folder / "gantry-1"

    def test_the_source_release_is_what_is_committed_and_knows_its_version(self):
        root = self.unpack_release()
        committed = release.git("ls-tree", "-rz", "--name-only", "HEAD").strip("\0").split("\0")
        self.assertEqual(sorted(str(path.relative_to(root)) for path in root.rglob("*") if not path.is_dir()), sorted(committed))
        self.assertEqual(release.version(root), release.version())
        self.assert_succeeds(run(root / "dev", "--help"), "The one command of this repository")

    def test_a_prefix_that_cannot_be_made_is_one_sentence(self):
        done = run(sys.executable, ROOT / "tools" / "dev" / "main.py", "install", "/proc/no-prefix")
        self.assertEqual((done.returncode, done.stdout), (1, ""))
        self.assertEqual(done.stderr, "dev: cannot install into /proc/no-prefix: No such file or directory; name a folder that you may write to\n")

    def test_the_source_release_builds_where_it_is_unpacked(self):
        if "TESTS_ALL" not in os.environ:
            self.skipTest("builds the library, which takes minutes: ./dev test --all")
        root = self.unpack_release()
        build = [root / "dev", "build", "mpi_abi", "mpiexec"]
        self.assertEqual(subprocess.run(build, timeout=7000).returncode, 0)
        self.assert_succeeds(run(root / "build/release/bin/mpicc", ROOT / "docs/examples/hello.c", "-o", self.folder / "hello"))
        self.assert_succeeds(run(root / "build/release/bin/mpiexec", "-n", 2, self.folder / "hello"))

    def test_debian_packages_run_where_they_are_unpacked(self):
        if shutil.which("dpkg-deb") is None:
            self.skipTest("Debian packages are made on Debian: there is no dpkg-deb")
        root = self.folder / "root"
        packages = deb.pack(BUILD, self.folder, level=0)
        self.assertEqual([package.name.partition("_")[0] for package in packages], ["libgantry", "gantry", "libgantry-dev"])
        for package in packages:
            self.assert_succeeds(run("dpkg", "-x", package, root))
            self.assertIn(f"Version: {release.version()}\n", run("dpkg-deb", "--field", package).stdout)
        programs = root / "usr/bin"
        self.assert_succeeds(run(programs / "mpicc.gantry", ROOT / "docs/examples/hello.c", "-o", self.folder / "hello"))
        self.assert_succeeds(run(programs / "mpiexec.gantry", "-n", 2, self.folder / "hello"), "2")
        self.assert_succeeds(run(programs / "mpiexec.gantry", "-n", 2, BUILD / "tests/mpich_program"), "all right on: Gantry")
        self.assert_succeeds(run(programs / "gantry", "info"), release.version())
        for program in programs.iterdir():
            page = gzip.open(root / "usr/share/man/man1" / f"{program.name}.1.gz", "rt").read()
            self.assertIn("Gantry", page)
            self.assertNotIn("/prefix/", page)  # where it was packed

    def test_the_wheel_works_in_an_environment_of_its_own(self):
        if "TESTS_ALL" not in os.environ:
            self.skipTest("fetches mpi4py and auditwheel: ./dev test --all")
        self.assertEqual(subprocess.run([ROOT / "dev", "wheel"], timeout=7000).returncode, 0)
        self.assertIn(subprocess.run([ROOT / "tests" / "wheel" / "run"], timeout=7000).returncode, (0, 77))


if __name__ == "__main__":
    unittest.main()
