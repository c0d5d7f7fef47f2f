"""The graph that orders steps and tasks."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from lockgate.core.model.dag import Cycle, TaskDAG, UnknownNode, reached, turned_round

# Any graph over a few nodes, cycles included; each node may come after any of them.
graphs = st.integers(1, 8).flatmap(
    lambda size: st.permutations(range(size)).flatmap(
        lambda nodes: st.fixed_dictionaries(
            {node: st.lists(st.integers(0, size - 1), max_size=3) for node in nodes}
        )
    )
)


def a_dag(after: dict[str, tuple[str, ...]]) -> TaskDAG[str]:
    dag = TaskDAG.of(after)
    assert isinstance(dag, TaskDAG)
    return dag


def test_a_line_has_each_node_after_the_one_before_it() -> None:
    dag = TaskDAG.line(("red", "green", "verify"))

    assert dag == a_dag({"red": (), "green": ("red",), "verify": ("green",)})
    assert [dag.next_after(node) for node in dag.order] == ["green", "verify", None]


@pytest.mark.req("R18")
def test_each_node_comes_after_those_it_names() -> None:
    dag = a_dag({"verify": ("green",), "red": (), "green": ("red",)})

    assert dag.order == ("red", "green", "verify")


def test_of_nodes_that_may_come_next_the_one_given_first_does() -> None:
    dag = a_dag({"late": ("first",), "second": (), "first": (), "third": ()})

    assert dag.order == ("second", "first", "late", "third")


@pytest.mark.req("R18")
def test_the_next_node_is_the_one_that_follows_in_the_order() -> None:
    dag = a_dag({"a": (), "b": ("a",)})

    assert dag.next_after("a") == "b"
    assert dag.next_after("b") is None
    with pytest.raises(KeyError):
        dag.next_after("c")


def test_a_node_is_ready_when_all_it_comes_after_is_done() -> None:
    dag = a_dag({"a": (), "b": (), "both": ("a", "b")})

    assert dag.ready(frozenset()) == ("a", "b")
    assert dag.ready(frozenset({"a"})) == ("b",)
    assert dag.ready(frozenset({"a", "b"})) == ("both",)
    assert dag.ready(frozenset({"a", "b", "both"})) == ()


def test_a_cycle_is_given_back_as_its_path() -> None:
    found = TaskDAG.of({"free": (), "a": ("free", "b"), "b": ("c",), "c": ("a",), "d": ("a",)})

    assert found == Cycle(("a", "b", "c", "a"))


def test_the_path_leaves_out_what_only_leads_to_the_cycle() -> None:
    found = TaskDAG.of({"start": ("a",), "a": ("b",), "b": ("a",)})

    assert found == Cycle(("a", "b", "a"))


def test_a_node_after_itself_is_a_cycle() -> None:
    found = TaskDAG.of({"a": ("a",)})

    assert found == Cycle(("a", "a"))


def test_a_name_that_is_not_in_the_graph_is_given_back() -> None:
    found = TaskDAG.of({"a": ("ghost",)})

    assert found == UnknownNode("a", "ghost")


def test_no_nodes_are_a_graph_too() -> None:
    dag = a_dag({})

    assert dag.order == ()
    assert dag.ready(frozenset()) == ()


@pytest.mark.req("R19")
def test_the_graph_cannot_be_written_through_its_views() -> None:
    source: dict[str, tuple[str, ...]] = {"a": (), "b": ("a",)}
    dag = a_dag(source)

    source["b"] = ()
    with pytest.raises(TypeError):
        dag.after["b"] = ()  # type: ignore[index]  # the point of the test
    with pytest.raises(AttributeError):
        dag.order = ()  # type: ignore[misc]  # the point of the test

    assert dag.after == {"a": (), "b": ("a",)}


def test_a_chain_of_ten_thousand_is_ordered() -> None:
    chain = {number: (number + 1,) for number in range(10_000)} | {10_000: ()}

    dag = TaskDAG.of(chain)

    assert isinstance(dag, TaskDAG)
    assert dag.order == tuple(range(10_000, -1, -1))


def test_a_cycle_of_ten_thousand_is_found() -> None:
    found = TaskDAG.of({number: ((number + 1) % 10_000,) for number in range(10_000)})

    assert isinstance(found, Cycle)
    assert len(found.path) == 10_001


@given(graphs)
def test_a_graph_is_either_ordered_or_has_a_real_cycle(graph: dict[int, list[int]]) -> None:
    found = TaskDAG.of(graph)

    match found:
        case TaskDAG(order):
            place = {node: index for index, node in enumerate(order)}
            assert sorted(order) == sorted(graph)
            assert all(place[named] < place[node] for node in graph for named in graph[node])
        case Cycle(path):
            assert path[0] == path[-1]
            assert len(set(path)) == len(path) - 1
            assert all(path[at + 1] in graph[node] for at, node in enumerate(path[:-1]))
        case UnknownNode():
            pytest.fail("every name is a node here")


@given(graphs)
def test_an_order_that_holds_already_is_kept(graph: dict[int, list[int]]) -> None:
    earlier = {node: [named for named in graph[node] if named < node] for node in sorted(graph)}

    dag = TaskDAG.of(earlier)

    assert isinstance(dag, TaskDAG)
    assert dag.order == tuple(sorted(graph))


@given(graphs)
def test_taking_what_is_ready_again_and_again_takes_every_node(
    graph: dict[int, list[int]],
) -> None:
    dag = TaskDAG.of({node: [it for it in graph[node] if it < node] for node in graph})
    assert isinstance(dag, TaskDAG)
    done: frozenset[int] = frozenset()

    while ready := dag.ready(done):
        done |= {ready[0]}

    assert done == frozenset(graph)


@given(graphs)
def test_following_the_order_meets_every_node_once(graph: dict[int, list[int]]) -> None:
    dag = TaskDAG.of({node: [it for it in graph[node] if it < node] for node in graph})
    assert isinstance(dag, TaskDAG)
    met = [dag.order[0]]

    while (following := dag.next_after(met[-1])) is not None:
        met.append(following)

    assert tuple(met) == dag.order


def test_what_is_reached_by_two_ways_counts_once_and_a_cycle_ends() -> None:
    waits_for = {2: [1], 3: [1], 4: [2, 3], 1: [4]}

    assert reached(turned_round(waits_for), 1) == {2, 3, 4}
