"""The endpoint contract: what every variant serves, asked of one that runs.

Nothing is measured before this holds. Each clause is a generator of breaches, one sentence each,
and the sentence says what was asked, what came, and what should have come.
"""

import http.client
from collections.abc import Callable, Iterator

from bench.contract import replies, sockets, topics
from bench.variants import Variant

Clause = Callable[[str, Variant], Iterator[str]]
CLAUSES: tuple[Clause, ...] = (*replies.CLAUSES, *sockets.CLAUSES, *topics.CLAUSES)
OF_2016: tuple[Clause, ...] = (replies.identity, replies.hello, sockets.echo_one_by_one)


def violations(base_url: str, variant: Variant) -> list[str]:
    """Return every breach of the contract by ``variant`` at ``base_url``; empty if it holds."""
    clauses = CLAUSES if variant.stack == "today" else OF_2016
    return [breach for clause in clauses for breach in _breaches(clause, base_url, variant)]


def _breaches(clause: Clause, base_url: str, variant: Variant) -> Iterator[str]:
    """Yield the clause's breaches; a connection that fails is one of them."""
    try:
        yield from clause(base_url, variant)
    except (OSError, http.client.HTTPException, sockets.WebSocketException) as error:
        yield f"{clause.__name__}: {type(error).__name__}: {error}"
