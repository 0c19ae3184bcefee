# SPDX-License-Identifier: BSD-3-Clause
"""`dev site`: the pages as a static site with search, in build/site/html/, by MkDocs with Material (from the Python package index, kept in .deps/).

The pages stay where they are and as they are: all Markdown files of the repository, and what they show or link to, are gathered in
build/site/pages/ at the same places, so the same links work. Chapters are folders, titles the first headings. One page is written here: the
functions of mpi-ext.h.in, which are this library's own. A link that leads nowhere fails the build.
"""
import html
import re
import shutil
import subprocess
import sys
import urllib.parse
from pathlib import Path

import release
from console import ROOT, Failure, note, run_quiet, step
from environment import DEPS

MKDOCS = ("mkdocs-material==9.8.2",)
FENCE = re.compile(r"^```.*?^```", re.S | re.M)
LINK = re.compile(r"!?\[[^\]]*\]\(([^()\s]+)\)")
EXTENSIONS = "reference/extensions.md"
# Title: the pages, in order; a folder is all its pages, README first.
CHAPTERS = (
    ("Start", ("README.md", "docs/user/getting-started.md", "docs/user/programs.md", "docs/user/mpi4py.md", "docs/user/launching.md")),
    ("Use", ("docs/user",)),
    ("Reference", (EXTENSIONS, "docs/coverage.md", "docs/tuning.md", "docs/wire.md")),
    ("How it works", ("ARCHITECTURE.md", "docs/design")),
    ("Applications", ("apps", "apps/lbm", "apps/awp")),
    ("Measurements", ("bench/results",)),
    ("Change it", ("CONTRIBUTING.md", "STYLE.md", "CHANGELOG.md", "simgpu")),
)


def sources(root=ROOT):
    """The pages of a checkout or an unpacked release."""
    skipped = (".deps", ".carry", "build", ".git")
    return sorted(path.relative_to(root) for path in root.rglob("*.md") if path.relative_to(root).parts[0] not in skipped)


def linked(page, text):
    """Files of the repository that a page links to, by their places."""
    for match in LINK.finditer(FENCE.sub("", text)):
        place = urllib.parse.unquote(match[1].partition("#")[0])
        target = (ROOT / page.parent / place).resolve()
        if place and not re.match(r"[a-z]+:", place) and target.is_file():
            yield target.relative_to(ROOT)


def extensions_page():
    """Each function of mpi-ext.h with the comment above it; a comment speaks of the functions up to the next one."""
    header = (ROOT / "api" / "mpi-ext.h.in").read_text(encoding="utf-8")
    body = header[header.index('extern "C" {'):]
    lines = ["# Functions beyond the standard", "", "What `mpi-ext.h` declares. Names and values are those of Open MPI and MPICH, so programs that ask "
             "for them find them.", ""]
    for comment, code in re.findall(r"/\*((?s:.*?))\*/\n((?:(?!/\*|#if|#endif).*\n)+)", body):
        functions = re.findall(r"^(?:int|void) (MPIX_\w+)\(", code, re.M)
        constants = re.findall(r"^#define (MPIX_\w+)", code, re.M)
        for name in functions or constants[:1]:
            lines.append(f"## {name}")
            lines.append("")
        lines += [html.escape(" ".join(comment.replace("\n *", " ").split()), quote=False), "", "```c", code.strip(), "```", ""]
    return "\n".join(lines)


def gather(folder):
    """The tree that MkDocs reads."""
    shutil.rmtree(folder, ignore_errors=True)
    pages = {place: (ROOT / place).read_text(encoding="utf-8") for place in sources()}
    for place, text in pages.items():
        for file in (place, *linked(place, text)):
            target = folder / file
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / file, target)
    # A list right behind a line of text is a list on the repository's pages, and would not be one here.
    for place, text in pages.items():
        (folder / place).write_text(with_blank_lines(text), encoding="utf-8")
    (folder / EXTENSIONS).parent.mkdir(parents=True, exist_ok=True)
    (folder / EXTENSIONS).write_text(extensions_page(), encoding="utf-8")
    return sorted(pages)


def with_blank_lines(text):
    out, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        starts = re.match(r"([-*] |\d+\. |\|)", line)
        before = out[-1] if out else ""
        if not fenced and starts and before.strip() and not before.startswith((" ", line[0])) and not re.match(r"([-*] |\d+\. |\|)", before):
            out.append("")
        out.append(line)
    return "\n".join(out)


def title(folder, place):
    found = re.search(r"^# +(.*)$", (folder / place).read_text(encoding="utf-8"), re.M)
    return re.sub(r"[`*]", "", found[1]) if found else Path(place).stem


def navigation(folder, pages):
    """The chapters as MkDocs wants them; every page stands in one."""
    shown, lines = set(), []
    for name, places in CHAPTERS:
        lines.append(f"  - {name}:")
        for place in places:
            if place.endswith(".md"):
                chosen = [Path(place)]
            else:
                chosen = sorted((page for page in pages if str(page.parent) == place and page not in shown), key=lambda page: (page.name != "README.md", page.name))
            for page in chosen:
                shown.add(page)
                lines.append(f'    - "{title(folder, page)}": {page}')
    left = set(pages) - shown
    if left:
        raise Failure(f"no chapter of tools/dev/pages.py has {', '.join(map(str, sorted(left)))}")
    return lines


def configuration(folder, pages):
    settings = (ROOT / "tools" / "site" / "mkdocs.yml").read_text(encoding="utf-8").replace("@VERSION@", release.version())
    return "\n".join([settings.rstrip(), f"docs_dir: {folder}", f"site_dir: {folder.parent / 'html'}", "nav:", *navigation(folder, pages), ""])


def mkdocs():
    """The generator, in an environment of its own."""
    tools = DEPS / "site-tools"
    if not (tools / "bin" / "mkdocs").exists():
        run_quiet([sys.executable, "-m", "venv", tools], "python -m venv (Debian: python3-venv)")
        run_quiet([tools / "bin" / "python", "-m", "pip", "-q", "install", *MKDOCS], f"pip install {' '.join(MKDOCS)}")
    return tools / "bin" / "mkdocs"


def site():
    folder = ROOT / "build" / "site" / "pages"
    step("gathering the pages")
    pages = gather(folder)
    (folder.parent / "mkdocs.yml").write_text(configuration(folder, pages), encoding="utf-8")
    step("building the site")
    done = subprocess.run([mkdocs(), "build", "--strict", "--quiet", "-f", folder.parent / "mkdocs.yml"], text=True, capture_output=True)
    if done.returncode != 0:
        print(done.stdout + done.stderr)
        raise Failure("the site does not build")
    note(f"{len(pages) + 1} pages: build/site/html/index.html")
    return 0
