"""The check of texts that every encoder makes before it tokenizes them."""

from __future__ import annotations

from colbert_prf.errors import TextError

__all__ = ["valid_document", "valid_query"]


def valid_document(text: str) -> str:
    """Return a text with lone surrogates, which are no characters, replaced by U+FFFD, as every decoder does.

    Raises
    ------
    TextError
        If the text is not a string.

    Examples
    --------
    >>> valid_document("gold\\ud800fish")
    'gold\ufffdfish'
    """
    if not isinstance(text, str):
        raise TextError(f"a text must be a string, found {type(text).__name__}: {text!r}")
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def valid_query(text: str) -> str:
    """Return a query that is not empty, with lone surrogates replaced.

    Raises
    ------
    TextError
        If the query is not a string, or is empty: all documents would match it equally.

    Examples
    --------
    >>> valid_query(" ")
    Traceback (most recent call last):
        ...
    colbert_prf.errors.TextError: the query is empty; give at least one word
    """
    text = valid_document(text)
    if not text.strip():
        raise TextError("the query is empty; give at least one word")
    return text
