"""Links lead somewhere, the site builds, and the reference names everything public."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import colbert_prf
from colbert_prf import baselines, errors

ROOT = Path(__file__).parents[1]
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "colbert_prf").rglob("*.md")])
CODE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]*`", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\(([^)\s]+)\)")
HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
ROLE = re.compile(r":(?:class|meth|func|mod|attr|data|math):|\.\. math::")
LOADED = re.compile(r"<(?:script|img|link|iframe)\b[^>]*\b(?:src|href)=[\"']?(https?:)?//", re.IGNORECASE)


def anchors(page: Path) -> set[str]:
    """The anchors of the headings of a page, as GitHub and the site make them."""
    text = re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.MULTILINE | re.DOTALL)
    plain = (re.sub(r"[`*]|\]\([^)]*\)|\[", "", heading) for heading in HEADING.findall(text))
    return {re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-") for heading in plain}


def broken_links(page: Path) -> list[str]:
    broken = []
    for link in LINK.findall(CODE.sub("", page.read_text(encoding="utf-8"))):
        if re.match(r"[a-z]+:", link):
            continue
        path, _, anchor = link.partition("#")
        target = page.parent / path if path else page
        if not target.exists() or (anchor and target.suffix == ".md" and anchor not in anchors(target)):
            broken.append(link)
    return broken


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_the_links_of_a_page_lead_somewhere(page):
    assert not broken_links(page)


def test_a_broken_link_is_noticed(tmp_path):
    (tmp_path / "other.md").write_text("# A β of `its` own\n")
    page = tmp_path / "page.md"
    page.write_text(
        "# Here\n[a](other.md#a-β-of-its-own) [b](#here) [c](https://nowhere.invalid) `[d](no.md)`\n"
        "[e](no.md) [f](other.md#here) [g](#there)\n"
    )
    assert broken_links(page) == ["no.md", "other.md#here", "#there"]


def test_messages_and_docstrings_name_pages_that_exist():
    for folder in ("colbert_prf", "benchmarks", "scripts", "experiments", "tests"):
        for file in (file for suffix in ("py", "toml", "md") for file in (ROOT / folder).rglob(f"*.{suffix}")):
            for named in re.findall(r"(?<![\w/])docs/[\w/-]+\.\w+", file.read_text(encoding="utf-8")):
                assert (ROOT / named).exists(), f"{file.relative_to(ROOT)} names {named}"


def test_the_reference_has_every_public_name():
    named = {
        name.rpartition(".")[2]
        for page in (ROOT / "docs" / "api").glob("*.md")
        for name in re.findall(r"^::: (\S+)$", page.read_text(encoding="utf-8"), re.MULTILINE)
    }
    public = {*colbert_prf.__all__, *baselines.__all__, "Client", "AsyncClient"}
    assert public - named - set(errors.__all__) <= {"__version__"}


@pytest.mark.slow
@pytest.mark.skipif(
    not (find_spec("material") and find_spec("mkdocstrings")), reason="needs MkDocs: pip install colbert-prf[docs]"
)
def test_the_site_builds_strictly_and_loads_nothing_from_elsewhere(tmp_path):
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", str(tmp_path)]
    quiet = {**os.environ, "NO_MKDOCS_2_WARNING": "1"}
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, env=quiet, check=False)
    assert done.returncode == 0, done.stderr
    pages = sorted(tmp_path.rglob("*.html"))
    assert len(pages) > len(list((ROOT / "docs").rglob("*.md")))  # and 404.html
    for page in pages:
        assert not ROLE.search(page.read_text(encoding="utf-8")), f"{page.name} shows a role of Sphinx as it is written"
        found = [match[0] for match in LOADED.finditer(page.read_text(encoding="utf-8"))]
        assert not [tag for tag in found if 'rel="canonical"' not in tag], page.name
