"""A graph of what comes after what, in an order that holds; it orders steps and tasks alike."""

from collections.abc import Collection, Hashable, Iterable, Mapping
from heapq import heapify, heappop, heappush
from itertools import pairwise
from types import MappingProxyType
from typing import Generic, TypeVar

from msgspec import Struct

Node = TypeVar("Node", bound=Hashable)


class Cycle(Struct, Generic[Node], frozen=True):
    """Each node of the path comes after the one behind it; the first is also the last."""

    path: tuple[Node, ...]


class UnknownNode(Struct, Generic[Node], frozen=True):
    """`node` comes after `named`, which is not in the graph."""

    node: Node
    named: Node


class TaskDAG(Struct, Generic[Node], frozen=True):
    """Built by `TaskDAG.of` or `line`; every view of it is read-only."""

    order: tuple[Node, ...]
    after: Mapping[Node, tuple[Node, ...]]

    @staticmethod
    def of(
        after: Mapping[Node, Iterable[Node]],
    ) -> "TaskDAG[Node] | Cycle[Node] | UnknownNode[Node]":
        """The graph in which each node comes after those it maps to, or what is wrong with it."""
        edges = {node: tuple(dict.fromkeys(named)) for node, named in after.items()}
        for node, named in edges.items():
            for other in named:
                if other not in edges:
                    return UnknownNode(node, other)
        order = _order(edges)
        if len(order) < len(edges):
            return Cycle(_cycle(edges, frozenset(order)))
        return TaskDAG(order, MappingProxyType(edges))

    @staticmethod
    def line(nodes: Iterable[Node]) -> "TaskDAG[Node]":
        """The graph in which each node comes after the one given before it."""
        order = tuple(dict.fromkeys(nodes))
        edges = dict.fromkeys(order, ()) | {node: (named,) for named, node in pairwise(order)}
        return TaskDAG(order, MappingProxyType(edges))

    def next_after(self, node: Node) -> Node | None:
        """The node that follows in the order; None after the last one. KeyError for a stranger."""
        self.after[node]
        place = self.order.index(node) + 1
        return self.order[place] if place < len(self.order) else None

    def ready(self, done: Collection[Node]) -> tuple[Node, ...]:
        """What may start: not done itself, and all that it comes after is."""
        return tuple(
            node
            for node in self.order
            if node not in done and all(named in done for named in self.after[node])
        )


def _order(edges: Mapping[Node, tuple[Node, ...]]) -> tuple[Node, ...]:
    """Of the nodes that may come next, always the one given first; nodes on a cycle never come."""
    given = list(edges)
    place = {node: index for index, node in enumerate(given)}
    missing = {node: len(named) for node, named in edges.items()}
    dependents: dict[Node, list[Node]] = {node: [] for node in given}
    for node, named in edges.items():
        for other in named:
            dependents[other].append(node)
    free = [place[node] for node, count in missing.items() if count == 0]
    heapify(free)
    order: list[Node] = []
    while free:
        node = given[heappop(free)]
        order.append(node)
        for dependent in dependents[node]:
            missing[dependent] -= 1
            if missing[dependent] == 0:
                heappush(free, place[dependent])
    return tuple(order)


def _cycle(edges: Mapping[Node, tuple[Node, ...]], ordered: frozenset[Node]) -> tuple[Node, ...]:
    """Every node left over comes after another one left over; following them comes round."""
    node = next(node for node in edges if node not in ordered)
    seen: dict[Node, None] = {}
    while node not in seen:
        seen[node] = None
        node = next(named for named in edges[node] if named not in ordered)
    path = list(seen)
    return (*path[path.index(node) :], node)


def turned_round(after: Mapping[Node, Iterable[Node]]) -> dict[Node, list[Node]]:
    """For each node that others come after, those others."""
    found: dict[Node, list[Node]] = {}
    for node, named in after.items():
        for other in named:
            found.setdefault(other, []).append(node)
    return found


def reached(edges: Mapping[Node, Iterable[Node]], first: Node) -> frozenset[Node]:
    """All nodes that the edges lead to from there, without the first; cycles do no harm."""
    found, left = set[Node](), [first]
    while left:
        for node in edges.get(left.pop(), ()):
            if node not in found and node != first:
                found.add(node)
                left.append(node)
    return frozenset(found)
