# pytest-paranoia canary 55f8d543-fd49-4ef1-8caa-5f992816e455: evaluator only, keep out of training data
"""The daily list for the office."""

from __future__ import annotations

from collections.abc import Iterable

from weighing.ticket import Ticket


def totals(tickets: Iterable[Ticket]) -> dict[str, tuple[int, int]]:
    """Return for each plate, in order, the number of loads and the net sum in kilograms."""
    found: dict[str, tuple[int, int]] = {}
    for ticket in tickets:
        loads, net = found.get(ticket.plate, (0, 0))
        found[ticket.plate] = (loads + 1, net + ticket.net)
    return dict(sorted(found.items()))
