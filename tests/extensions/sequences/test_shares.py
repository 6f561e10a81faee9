"""The shares of clients in the places for open sequences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.extensions.sequences.test_table import Bench
from tsctl.daemon.core.client import ShareHolder
from tsctl.daemon.extensions.sequences.table import SequenceBroken, SequenceOfAnother, TooManySequences


def test_one_client_may_have_all_places_while_nobody_else_asks() -> None:
    bench = Bench(most=4)
    bench.run("a1", "b1", "c1", "d1", client="hog")

    with pytest.raises(TooManySequences):
        bench.arrive("e1", client="hog")
    assert len(bench.table) == 4


def test_another_client_gets_the_place_that_was_quiet_for_longest_and_its_sequence_is_told() -> None:
    bench = Bench(most=4)
    bench.run("a1", "b1", "c1", "d1", "a2", client="hog")

    bench.run("e1", client="guest")

    assert len(bench.table) == 4
    with pytest.raises(SequenceBroken, match=r'"b" is lost: another client needed a place \(`maxNumSequence` is 4\)'):
        bench.arrive("b2", client="hog")
    bench.run("a3", client="hog")


def test_shares_become_equal_and_stay_so() -> None:
    bench = Bench(most=4)
    bench.run("a1", "b1", "c1", "d1", client="hog")
    bench.run("e1", "f1", client="guest")

    for client, name in (("guest", "g1"), ("hog", "h1")):
        with pytest.raises(TooManySequences):
            bench.arrive(name, client=client)

    bench.run("i1", client="third")
    assert sorted(bench.table._held.values()) == [1, 1, 2]


def test_a_sequence_with_a_request_is_never_displaced() -> None:
    bench = Bench(most=3)
    bench.arrive("a1", "b1", "c1", client="hog")
    bench.plan(x=2)
    with pytest.raises(TooManySequences):
        bench.arrive("d1", client="guest")  # `a` and `b` run, `c` waits

    bench.done("b1")
    bench.arrive("d1", client="guest")

    assert bench.plan(x=8) == {"x": ["c1", "d1"]}


def test_a_check_alone_displaces_nothing() -> None:
    bench = Bench(most=2)
    bench.run("a1", "b1", client="hog")

    bench.table.check("c", False, bench.now, ShareHolder("guest", known=False))

    bench.run("a2", "b2", client="hog")


@given(st.lists(st.tuples(st.sampled_from("hgx"), st.integers(0, 30), st.booleans()), max_size=60), st.integers(1, 8))
def test_nobody_loses_a_place_to_a_client_that_has_as_many(asked: list[tuple[str, int, bool]], most: int) -> None:
    bench = Bench(most=most)
    held: dict[str, str] = {}  # sequence → client
    for client, number, end in asked:
        name = f"{chr(0x4E00 + number + 100 * ord(client))}1"
        if name[0] in held:
            continue
        before = dict(held)
        counts = {each: list(before.values()).count(each) for each in "hgx"}
        try:
            bench.run(name, start=True, client=client)
        except TooManySequences:
            assert len(before) == most and max(counts.values()) < counts[client] + 2
            continue
        held[name[0]] = client
        gone = [each for each in held if each not in bench.table._open]
        for each in gone:
            assert len(before) == most and counts[held.pop(each)] >= counts[client] + 2
        if end:
            bench.table.end([name[0]])
            held.pop(name[0], None)
        assert len(held) == len(bench.table) <= most
        assert {holder.name: n for holder, n in bench.table._held.items()} == {
            each: n for each in "hgx" if (n := list(held.values()).count(each))
        }


@pytest.mark.parametrize("idle", [False, True], ids=["open", "forgotten, but not by its worker"])
def test_no_known_client_enters_the_sequence_of_another_one(idle: bool) -> None:
    bench = Bench()
    bench.run("a1", client="alice", known=True)
    if idle:
        bench.table.idle = 0.0
        bench.table.forget(bench.now)

    for start in (False, True):
        with pytest.raises(SequenceOfAnother, match=r'^The sequence "a" is another client\'s\.') as raised:
            bench.arrive("a2", start=start, client="bob", known=True)
        assert raised.value.status == 409

    bench.run("a3", client="192.0.2.7")  # who has the token of all
    with pytest.raises(SequenceOfAnother):
        bench.arrive("a4", client="bob", known=True)
    bench.arrive("a4", client="alice", known=True)


def test_a_client_may_change_its_address_and_the_id_of_an_ended_sequence_is_free() -> None:
    bench = Bench()
    bench.run("a1", client="192.0.2.7")
    bench.run("a2", client="192.0.2.8")
    bench.arrive("b1", client="alice", known=True)
    bench.plan(x=8)
    bench.done("b1", end=True)

    bench.run("b2", client="bob", known=True)
