"""The command ``colbert-prf``: one file per command; only this room knows the terminal."""

from __future__ import annotations

import sys
import warnings
from collections.abc import Sequence
from contextlib import suppress
from typing import NoReturn

import click

from colbert_prf.cli.bm25 import bm25
from colbert_prf.cli.demo import demo
from colbert_prf.cli.evaluate import evaluate
from colbert_prf.cli.expansions import expansions
from colbert_prf.cli.experiment import experiment
from colbert_prf.cli.export import export
from colbert_prf.cli.index import add, delete, index, merge, upsert, verify
from colbert_prf.cli.info import info
from colbert_prf.cli.mcp import mcp
from colbert_prf.cli.plot import plot
from colbert_prf.cli.run import run
from colbert_prf.cli.search import search
from colbert_prf.cli.serve import serve
from colbert_prf.cli.sweep import sweep
from colbert_prf.cli.term_weights import term_weights
from colbert_prf.cli.train import train
from colbert_prf.errors import ColbertPrfError
from colbert_prf.version import __version__

__all__ = ["cli", "main"]

INTERRUPTED = 130


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110})
@click.version_option(__version__, package_name="colbert-prf")
def cli() -> None:
    """Late-interaction (ColBERT) retrieval with pseudo-relevance feedback, on an ordinary CPU.

    \b
    Try it:
      colbert-prf demo
      colbert-prf demo "sort a dictionary by value"
      colbert-prf index passages.tsv my.index
      colbert-prf search my.index "do goldfish grow"
    """


for command in (
    demo,
    index,
    search,
    serve,
    mcp,
    bm25,
    plot,
    add,
    upsert,
    delete,
    merge,
    verify,
    info,
    run,
    evaluate,
    experiment,
    sweep,
    expansions,
    train,
    export,
    term_weights,
):
    cli.add_command(command)


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run a command; our errors and the system's become one line and exit code 1, wrong usage exit code 2."""
    try:
        if any("\0" in argument for argument in arguments or ()):  # a shell gives none, and click has no word for it
            raise click.UsageError("an argument has a NUL character in it, which no path or name may have")
        with warnings.catch_warnings():
            warnings.showwarning = _show_warning  # type: ignore[assignment]  # it needs the message alone
            code = cli.main(args=arguments, prog_name="colbert-prf", standalone_mode=False)
        sys.stdout.flush()
    except click.ClickException as error:
        error.show()
        sys.exit(error.exit_code)
    except ColbertPrfError as error:
        click.echo("Error: " + " ".join(str(error).split()), err=True)
        sys.exit(1)
    except (KeyboardInterrupt, click.Abort):
        click.echo("Interrupted.", err=True)
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader, such as `head`, has seen enough; closing now keeps Python from complaining at exit.
        sys.stderr.close()
        sys.exit(0)
    except OSError as error:
        click.echo(f"Error: {error.filename or 'output'}: {error.strerror or error}", err=True)
        with suppress(OSError):
            sys.stdout.close()
        sys.exit(1)
    except SystemExit:
        if type(sys.stdout).__name__ == "PacifyFlushWrapper":  # click's, after a pipe whose reader has gone
            sys.exit(0)
        raise
    sys.exit(code if isinstance(code, int) else 0)


def _show_warning(message: Warning | str, *_: object) -> None:
    click.echo("Warning: " + " ".join(str(message).split()), err=True)
