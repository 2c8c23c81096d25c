"""What the studies published for a cell, a tool and a column. Pure but for the files."""

from bench import reference
from bench.balancing.cells import Column, EchoCell, HttpCell
from bench.reference import Span

Published = Span | str | None
RESOURCES = {"cpu_max": "cpu_max_percent", "pss_mb": "memory_mb", "processes": "pids"}


def rate(cell: HttpCell | EchoCell, tool: str, column: Column) -> Published:
    """Return the study's requests or messages per second."""
    if isinstance(cell, EchoCell):
        return _echo(cell, column, "_rps")
    row = _http_row(cell, tool)
    return row.figures.get(f"{column.published}_rps") if row else None


def errors(cell: HttpCell | EchoCell, tool: str, column: Column) -> Published:
    if isinstance(cell, EchoCell):
        return _echo(cell, column, "_errors")
    row = _http_row(cell, tool)
    return row.figures.get(f"{column.published}_errors") if row else None


def connects(column: Column) -> Published:
    """Return how many of 400 sockets the WebSocket balancing study opened per second."""
    for row in reference.websocket_balancing():
        if row.requests_per_connection == "connects/s":
            return _figure(row.figures, column, "_rps")
    return None


def resource(figure: str, column: Column, *, echo: bool) -> Published:
    """Return CPU in percent, memory in MB or processes, as published for a whole column."""
    name = RESOURCES[figure]
    if echo:
        for row in reference.websocket_balancing():
            if row.requests_per_connection == name:
                return _figure(row.figures, column, "_rps")
    for line in reference.http_balancing():
        if line.tool == name and not echo:
            return line.figures.get(f"{column.published}_rps")
    return None


def _http_row(cell: HttpCell, tool: str) -> reference.HttpBalancing | None:
    wanted = (cell.clients, cell.requests, cell.keepalive, tool)
    for row in reference.http_balancing():
        if (row.connections, row.requests, row.keepalive, row.tool) == wanted:
            return row
    return None


def _echo(cell: EchoCell, column: Column, ending: str) -> Published:
    wanted = (str(cell.messages), cell.connections)
    # The last row was published once, in the detailed view.
    rows = [
        row
        for row in reference.websocket_balancing()
        if (row.requests_per_connection, row.connections) == wanted and row.detailed == cell.detail
    ]
    return _figure(rows[0].figures, column, ending) if rows else None


def _figure(figures: dict[str, Published], column: Column, ending: str) -> Published:
    if column.published is None:
        return None
    for name, value in figures.items():
        if name.startswith(column.published) and name.endswith(ending):
            return value
    return None


def text(value: Published) -> str:
    """Return a published figure as it was printed; nothing where there is none."""
    if value is None or isinstance(value, str):
        return value or ""
    return f"{value.low:g}" if value.low == value.high else f"{value.low:g} to {value.high:g}"


def ratio(value: Published, base: Published) -> str:
    """Return how many times ``base`` a published figure was; nothing where that cannot be said."""
    if not isinstance(value, Span) or not isinstance(base, Span) or not base.low:
        return ""
    low, high = value.low / base.high, value.high / base.low
    return f"{low:.2f}x" if low == high else f"{low:.2f} to {high:.2f}x"
