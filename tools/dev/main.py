# SPDX-License-Identifier: BSD-3-Clause
"""The arguments of `dev`; each subcommand is one file beside this one."""
import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent))
from console import Failure  # noqa: E402

DESCRIPTION = """\
The one command of this repository. Start with:
  ./dev demo      sets up, builds, and moves 4 MiB from device to device between two processes
  ./dev test      builds and runs every test; no GPU is needed, a simulated one is part of the build
"""


def parser():
    top = argparse.ArgumentParser(prog="dev", description=DESCRIPTION,
                                  formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = top.add_subparsers(dest="command", metavar="COMMAND", required=True)

    def command(name, text, preset=True):
        one = commands.add_parser(name, help=text, description=text)
        if preset:
            import build
            one.add_argument("--preset", choices=build.presets(), default="release",
                             help="which build: %(choices)s (default: %(default)s)")
        return one

    def device_options(one):
        one.add_argument("--gpu", choices=("auto", "real", "simulated"), default="auto",
                         help="which GPU (default: a real one if there is one)")
        one.add_argument("--machine", default="c2050-qdr", help="what the simulated GPU imitates (default: %(default)s)")

    demo = command("demo", "set up, build, and run the main job with both baselines beside it")
    device_options(demo)
    test = command("test", "build and run the tests; the last line counts them")
    test.add_argument("filter", nargs="?", help="regular expression on test names")
    test.add_argument("--real-gpu", action="store_true", help="use the system's CUDA driver instead of the simulated GPU")
    test.add_argument("--exclude", metavar="FILTER", help="regular expression on names of tests not to run")
    test.add_argument("--target", action="append", default=[], help="build only this Ninja target (may be repeated)")
    test.add_argument("--retry", action="store_true", help="run a failing test once more; both results are shown")
    test.add_argument("--all", action="store_true", help="random tests with all their seeds, and packages and the site; takes long")
    build = command("build", "build into build/PRESET/")
    build.add_argument("targets", nargs="*", help="Ninja targets (default: everything)")
    install = command("install", "install a relocatable prefix: library, mpicc, mpiexec, tools")
    install.add_argument("prefix", help="folder to install into")
    install.add_argument("--with-tests", action="store_true",
                         help="also the test programs and the simulated GPU, to carry to another machine")
    command("wheel", "the Python wheel gantry-mpi in build/dist/: library, personalities, mpiexec, mpicc, tools, simulated GPU")
    command("dist", "the source release in build/dist/: what is committed, as a tar.gz that builds where it is unpacked", preset=False)
    command("deb", "Debian packages in build/dist/: library, tools, development files")
    command("site", "the pages as a static site with search in build/site/html/", preset=False)
    bench = command("bench", "build and run gantry-bench, e.g.: dev bench bw D D")
    device_options(bench)
    bench.add_argument("-n", dest="ranks", type=int, default=2, help="number of ranks (default: 2)")
    bench.add_argument("arguments", nargs=argparse.REMAINDER, help="arguments of gantry-bench")
    fmt = command("fmt", "format the sources", preset=False)
    fmt.add_argument("files", nargs="*")
    check = command("check", "format, layers, naming rules: everything about the sources that a program can check")
    check.add_argument("names", nargs="*", help="only these checks")
    command("ptx", "compile the kernels to the PTX that is committed beside them (fetches clang-19)", preset=False)
    command("setup", "find what the build needs and get what is missing (packages; .deps/ when not root)", preset=False)
    return top


def main():
    chosen = parser().parse_args()
    if chosen.command == "demo":
        import demo
        return demo.demo(chosen.preset, chosen.gpu, chosen.machine)
    if chosen.command == "test":
        import tests
        return tests.test(chosen.preset, chosen.filter, chosen.real_gpu, chosen.exclude, chosen.target,
                          chosen.retry, chosen.all)
    if chosen.command == "build":
        import build
        return build.build(chosen.preset, chosen.targets)
    if chosen.command == "install":
        import install
        return install.install(chosen.preset, chosen.prefix, chosen.with_tests)
    if chosen.command == "wheel":
        import wheel
        return wheel.wheel(chosen.preset)
    if chosen.command == "dist":
        import dist
        return dist.dist()
    if chosen.command == "deb":
        import deb
        return deb.deb(chosen.preset)
    if chosen.command == "site":
        import pages
        return pages.site()
    if chosen.command == "bench":
        import bench
        return bench.bench(chosen.preset, chosen.gpu, chosen.machine, chosen.ranks, chosen.arguments)
    if chosen.command == "fmt":
        import fmt
        return fmt.fmt(chosen.files)
    if chosen.command == "check":
        import check
        return check.check(chosen.preset, chosen.names)
    if chosen.command == "ptx":
        import ptx
        return ptx.ptx()
    import setup
    setup.ensure()
    return setup.report()


if __name__ == "__main__":
    try:
        sys.exit(main())
    except Failure as failure:
        print(f"dev: {failure}", file=sys.stderr)
        sys.exit(1)
    except KeyboardInterrupt:
        sys.exit(130)
