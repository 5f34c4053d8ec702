"""Progress bars for long work: on a terminal only, on standard error, so that output pipes cleanly."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

__all__ = ["progress_bar"]


@contextmanager
def progress_bar(
    description: str, *, total: int | None = None, unit: str = "passages", shown: bool = True
) -> Iterator[Callable[[int], object]]:
    """Show a progress bar with speed and time left, and yield a function that advances it.

    Parameters
    ----------
    description
        The name of the work.
    total
        The number of units; without it the bar shows only how many are done.
    unit
        The name of the units, in the plural.
    shown
        Whether to show the bar; it is never shown if standard error is not a terminal.

    Examples
    --------
    >>> with progress_bar("Counting", total=2, shown=False) as advance:
    ...     _ = advance(2)
    """
    if not (shown and sys.stderr.isatty()):
        yield lambda count: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, ProgressColumn, TextColumn, TimeRemainingColumn
    from rich.text import Text

    class SpeedColumn(ProgressColumn):
        def render(self, task: object) -> Text:
            speed = getattr(task, "finished_speed", None) or getattr(task, "speed", None)
            return Text(f"{speed:,.0f} {unit}/s" if speed else "", style="dim")

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        SpeedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as progress:
        task = progress.add_task(description, total=total)
        yield lambda count: progress.advance(task, count)
