"""The options of commands that can hand their work to a Ray cluster, and what they say."""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import click

__all__ = ["LOCAL", "Cluster", "cluster_options"]

Command = TypeVar("Command", bound=Callable[..., Any])
Cluster = dict[str, Any]
"""What the options say, as keywords of :func:`colbert_prf.distributed.create_index`."""
LOCAL = "local"


def cluster_options(command: Command) -> Command:
    """The options of a command that a cluster may work on; it gets them as ``cluster``, which is None without --ray."""
    options = [
        click.option(
            "--ray",
            "address",
            metavar="[HOST:PORT]",
            is_flag=False,
            flag_value=LOCAL,
            help="Let the workers of a Ray cluster encode: of the one at this address, of the one on this machine "
            "(auto), or of a local one, which ends with the command.",
        ),
        click.option(
            "--workers",
            type=click.IntRange(min=1),
            help="The most worker processes, which share the CPUs of the cluster. Default: one for each CPU.",
        ),
        click.option(
            "--passages-per-segment",
            type=click.IntRange(min=1),
            metavar="COUNT",
            help="Passages of CORPUS that a worker encodes at once. Default: 50000.",
        ),
    ]

    @wraps(command)
    def bundled(*, address: str | None, workers: int | None, passages_per_segment: int | None, **others: Any) -> Any:
        given = {"workers": workers, "passages_per_segment": passages_per_segment}
        given = {name: value for name, value in given.items() if value is not None}
        if address is None and given:
            raise click.UsageError(f"--{next(iter(given)).replace('_', '-')} needs --ray.")
        cluster = None if address is None else {"address": None if address == LOCAL else address, **given}
        return command(cluster=cluster, **others)

    decorated: Any = bundled
    for option in reversed(options):
        decorated = option(decorated)
    return decorated  # type: ignore[no-any-return]
