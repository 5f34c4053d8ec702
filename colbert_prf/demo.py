"""The corpus every user has: the documentation inside Python's own standard library, cut into passages."""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib
import inspect
import os
import re
import shutil
import sys
import sysconfig
from collections.abc import Iterator
from pathlib import Path

from colbert_prf.encoder import Encoder
from colbert_prf.errors import IndexFormatError
from colbert_prf.index import Index
from colbert_prf.index.manifest import FORMAT_VERSION
from colbert_prf.storage.layout import IndexLayout

__all__ = ["QUESTIONS", "demo_index", "demo_passages"]

QUESTIONS = (
    "stop a process that takes too long",
    "find the closest matching word",
    "compare two files and show the differences",
    "create a temporary folder that is deleted afterwards",
)

Definition = ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef

BUILTIN_TYPES = (str, bytes, list, dict, set, tuple, int, float, range)
COMPILED_MODULES = ("itertools", "math", "time", "zlib", "select", "sys")
SOURCE_MODULES = (
    "abc argparse ast asyncio.events asyncio.locks asyncio.queues asyncio.tasks base64 bisect calendar collections "
    "concurrent.futures._base configparser contextlib copy csv dataclasses datetime decimal difflib email.message "
    "enum fileinput fnmatch fractions functools getpass gettext glob graphlib gzip hashlib heapq hmac html "
    "html.parser http.client http.cookies http.server inspect io ipaddress json json.decoder json.encoder locale "
    "logging logging.config logging.handlers lzma mailbox mimetypes multiprocessing.pool "
    "multiprocessing.shared_memory numbers operator os pathlib pdb pickle platform posixpath pprint profile queue "
    "random re sched secrets selectors shelve shlex shutil signal smtplib socket socketserver sqlite3 ssl stat "
    "statistics string subprocess sysconfig tarfile tempfile textwrap threading timeit tokenize traceback types typing "
    "unittest.case unittest.mock urllib.parse urllib.request urllib.robotparser uuid venv warnings weakref "
    "webbrowser xml.dom.minidom xml.etree.ElementTree zipfile"
).split()

MAX_PASSAGES = 4000
WORDS_PER_PASSAGE = 90
MIN_WORDS = 8
RULER = re.compile(r"[*=~^#-]{3,}")


def demo_passages() -> list[tuple[str, str]]:
    """Collect the language reference and the docstrings of the standard library.

    Returns
    -------
    passages
        Pairs of id and text, the same for every run of one Python version: 2,000 to 4,000 of them.
    """
    passages: dict[str, str] = {}
    for name, text in (*_language_topics(), *_builtin_docstrings(), *_source_docstrings()):
        for number, passage in enumerate(_cut(text)):
            passages.setdefault(f"{name}#{number}" if number else name, f"{name}: {passage}")
    return list(passages.items())[:MAX_PASSAGES]


def demo_index(encoder: Encoder, *, cache: Path | None = None, progress: bool = True) -> Index:
    """Index the passages, once: the index is kept in the user's cache folder.

    Parameters
    ----------
    encoder
        Its fingerprint names the index.
    cache
        Another folder than the user's.
    progress
        Whether a bar may be shown.
    """
    passages = demo_passages()
    # An index of another format is not ours to open: this one gets another name.
    digest = hashlib.sha256(
        repr((FORMAT_VERSION, encoder.fingerprint, passages)).encode("utf-8", "replace")
    ).hexdigest()[:16]
    path = (cache or _user_cache()) / f"demo-{digest}.index"
    if IndexLayout(path).manifest.is_file():
        try:
            return Index.open(path, encoder=encoder)
        except IndexFormatError:
            shutil.rmtree(path)  # damaged: it can be made again
    path.parent.mkdir(parents=True, exist_ok=True)
    return Index.create(path, passages, encoder=encoder, resume=True, progress=progress)


def _user_cache() -> Path:
    if sys.platform == "win32":
        base = os.environ.get("LOCALAPPDATA") or "~/AppData/Local"
    else:
        base = os.environ.get("XDG_CACHE_HOME") or "~/.cache"
    return Path(base).expanduser() / "colbert-prf"


def _language_topics() -> Iterator[tuple[str, str]]:
    topics: dict[str, str] = importlib.import_module("pydoc_data.topics").topics
    for name in sorted(topics):
        yield f"python.{name}", topics[name]


def _builtin_docstrings() -> Iterator[tuple[str, str]]:
    for name, value in sorted(vars(builtins).items()):
        if callable(value) and not name.startswith("_") and value.__doc__:
            yield name, value.__doc__
    owners: list[tuple[str, object]] = [(kind.__name__, kind) for kind in BUILTIN_TYPES]
    owners += [(name, importlib.import_module(name)) for name in COMPILED_MODULES]
    for owner_name, owner in owners:
        for name, value in sorted(vars(owner).items()):
            if name.endswith("hook"):  # other libraries put theirs in its place
                value = getattr(owner, f"__{name}__", value)
            if not name.startswith("_") and (text := inspect.getdoc(value)) and callable(value):
                yield f"{owner_name}.{name}", text


def _source_docstrings() -> Iterator[tuple[str, str]]:
    """Read docstrings out of the sources, so that nothing is imported."""
    library = Path(sysconfig.get_path("stdlib"))
    for module in SOURCE_MODULES:
        stem = library.joinpath(*module.split("."))
        file = next((f for f in (stem.with_suffix(".py"), stem / "__init__.py") if f.is_file()), None)
        if file is not None:
            tree = ast.parse(file.read_text(encoding="utf-8"))
            yield from _walk(module, tree)


def _walk(name: str, node: ast.Module | Definition) -> Iterator[tuple[str, str]]:
    if text := ast.get_docstring(node):
        yield name, text
    for child in node.body:
        if isinstance(child, Definition) and not child.name.startswith("_"):
            yield from _walk(f"{name}.{child.name}", child)


def _cut(text: str) -> Iterator[str]:
    """Join paragraphs up to about ninety words; a longer paragraph stands alone."""
    passage: list[str] = []
    for paragraph in text.split("\n\n"):
        words = [word for word in paragraph.split() if not RULER.fullmatch(word)]
        if len(passage) >= MIN_WORDS and len(passage) + len(words) > WORDS_PER_PASSAGE:
            yield " ".join(passage)
            passage = []
        passage += words
    if len(passage) >= MIN_WORDS:
        yield " ".join(passage)
