"""``colbert-prf mcp``: an index as tools for language-model agents."""

from __future__ import annotations

import click

from colbert_prf.errors import MissingExtraError

__all__ = ["mcp"]


@click.command(short_help="Give an index to a language-model agent.")
@click.argument("index")
def mcp(index: str) -> None:
    """Give INDEX to a language-model agent: the tools search, search_with_feedback and document.

    Speaks the Model Context Protocol over standard input and output. Needs the extra [mcp].

    \b
    Examples:
      colbert-prf mcp my.index
    """
    try:
        from colbert_prf.cli.serve import served_index
        from colbert_prf.server.agents import agent_server
    except ImportError as error:
        raise MissingExtraError("Serving tools to agents", extra="mcp") from error
    agent_server(served_index(index)).run("stdio")
