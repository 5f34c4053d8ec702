"""Cut TREC SGML into elements, line by line: the files are not XML, so no XML parser reads them."""

from __future__ import annotations

import html
import re
from collections.abc import Iterator
from typing import NamedTuple

from colbert_prf.errors import DatasetError

__all__ = ["Element", "read_elements", "strip_tags"]

_COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
_TAG = re.compile(r"<[/!?]?[A-Za-z][^<>]*>")


class Element(NamedTuple):
    """What stood between an opening tag and its closing tag."""

    line: int
    attributes: str
    body: str


def strip_tags(text: str) -> str:
    """Remove tags and comments, resolve entities, and collapse white space.

    A tag is ``<`` followed by a letter: the sign in ``a < b`` stays.

    Examples
    --------
    >>> strip_tags("<P>AT&amp;T: <!-- no -->a < b</P>")
    'AT&T: a < b'
    """
    bare = _TAG.sub(" ", _COMMENT.sub(" ", text))
    return " ".join(html.unescape(bare).split())


def read_elements(lines: Iterator[tuple[int, str]], tags: tuple[str, ...], name: str) -> Iterator[Element]:
    r"""Yield the elements of the given tags, in any case, holding one in memory at a time.

    Parameters
    ----------
    lines
        Numbered lines. Between elements only tags, comments and white space may stand.
    tags
        The names of the tags; elements do not nest.
    name
        The file, for messages.

    Yields
    ------
    Element
        The line of its opening tag, the attributes of that tag, and the body.

    Examples
    --------
    >>> lines = [(1, "<DOC>"), (2, "<DOCNO>d1</DOCNO> text"), (3, "</DOC>")]
    >>> list(read_elements(iter(lines), ("doc",), "-"))
    [Element(line=1, attributes='', body='\n<DOCNO>d1</DOCNO> text\n')]
    """
    names = "|".join(tags)
    opening = re.compile(rf"<(?:{names})(\s[^<>]*)?>", re.IGNORECASE)
    closing = re.compile(rf"</(?:{names})\s*>", re.IGNORECASE)
    start, attributes, parts = 0, "", list[str]()  # start is 0 between elements
    for number, line in lines:
        position = 0
        while True:
            if not start:
                match = opening.search(line, position)
                _refuse_text(line[position : match.start() if match else None], tags[0], name, number)
                if not match:
                    break
                start, attributes, parts, position = number, (match[1] or "").strip(), [], match.end()
            match = closing.search(line, position)
            inner = line[position : match.start() if match else None]
            if opening.search(inner):
                message = f"a new <{tags[0]}> before the one of line {start} is closed; add </{tags[0]}>"
                raise DatasetError(message, path=name, line=number)
            parts.append(inner)
            if not match:
                break
            yield Element(start, attributes, "\n".join(parts))
            start, position = 0, match.end()
    if start:
        message = f"this <{tags[0]}> is never closed; add </{tags[0]}>, or fetch the file again"
        raise DatasetError(message, path=name, line=start)


def _refuse_text(between: str, tag: str, name: str, number: int) -> None:
    stray = strip_tags(between)
    if stray:
        raise DatasetError(f"text outside <{tag}>: {stray[:40]!r}; put it inside one", path=name, line=number)
