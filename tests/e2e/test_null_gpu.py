"""A real daemon whose workers are on null cards (tests/kit/null_gpu): there is no GPU on the machines of the tests."""

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.e2e.on_cards import BATCH, PIXELS, pack_image_classifier, pack_on_card, send_batch, start_on
from tests.e2e.served import Served, eventually, running
from tests.kit.null_gpu.cards import Cards, Delta, Did, OnCards, cards_or_skip
from tests.kit.shelf import needs
from tsctl.handlers.builtin.support.readers import SLOTS


@pytest.fixture(scope="module")
def cards(tmp_path_factory: pytest.TempPathFactory) -> Cards:
    return cards_or_skip(tmp_path_factory.mktemp("null"), 2)


@pytest.fixture(scope="module")
def served(cards: Cards, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A daemon on two cards with a template, and a model with a worker on each."""
    with Served(tmp_path_factory.mktemp("served")) as served:
        served.environment["TSCTL_TEMPLATE"] = "true"
        start_on(served, cards)
        served.register("on_card", "--workers", "2")
        yield served


@pytest.fixture(scope="module")
def classifies(served: Served, cards: Cards) -> OnCards:
    """A worker with an image classifier that has run a batch: a first one makes what later ones find."""
    served.tsctl("register", pack_image_classifier(served, "images"), "--workers", "1")
    send_batch(served, "images")
    [pid] = served.pids("images")
    return cards.of(pid)


@pytest.fixture(scope="module")
def batch(served: Served, classifies: OnCards) -> Delta:
    """What a batch of images did."""
    with Delta(classifies) as done:
        send_batch(served, "images")
    return done


def test_no_worker_has_a_context_on_a_card_that_is_not_its_own(served: Served, cards: Cards) -> None:
    archive = pack_image_classifier(served, "second", config="deviceIds: [1]\nhandler: {profile: true}\n")
    served.tsctl("register", archive, "--workers", "1")
    send_batch(served, "second")
    served.register("typed_on_card", "--workers", "1", name="stores", config="deviceIds: [1]\n")
    answer = served.predict("stores", [1, 2])

    second, stores = ([cards.of(pid)["contexts"] for pid in served.pids(name)] for name in ("second", "stores"))
    each = [cards.of(pid)["contexts"] for pid in served.pids("on_card")]
    served.tsctl("unregister", "second")
    served.tsctl("unregister", "stores")
    assert second == [0b10]
    assert (answer.json, stores) == ({"row": [1, 2]}, [0b10]), "its rows are the first that go there"
    assert sorted(each) == [0b01, 0b10]


def test_a_batch_that_does_not_fit_is_told_from_a_broken_context(served: Served, cards: Cards) -> None:
    before = served.pids("on_card")

    failed = served.ask("/predictions/on_card", b"3000")

    assert (failed.status, "CUDA out of memory" in failed.json["message"]) == (507, True)
    assert served.ask("/predictions/on_card", b"1").status == 200
    assert served.pids("on_card") == before


@needs("fitting")
def test_where_four_rows_fit_on_the_card_and_eight_do_not_all_are_answered_and_no_other_eight_is_sent(
    served: Served,
) -> None:
    config = "isolate: true\nbatchSize: 8\nmaxBatchDelay: 60000\nbatching: fixed\n"
    served.register("on_card", "--workers", "1", name="fits", config=config)
    for _ in range(2):
        with ThreadPoolExecutor(8) as clients:
            answers = clients.map(lambda _: served.ask("/predictions/fits", b"300"), range(8))
            assert [answer.status for answer in answers] == [200] * 8

    batching = served.describe("fits")["tsctl"]["batching"]
    served.tsctl("unregister", "fits")
    assert batching["sizes"] == {"4": 2, "8": 1}
    assert (batching["cap"]["most"], batching["cap"]["tooLarge"]) == (4, 8)


# Normalisation and the best classes are in the graph, beside whose kernels the bytes of images are copied.
OF_A_BATCH = {
    "to_card_pinned": 1, "to_card_pageable": 0, "to_card_bytes": BATCH * PIXELS, "from_card_pinned": 1,
    "from_card_pageable": 0, "default_to_card": 0, "default_from_card": 0, "replays": 1, "launches": 0, "captures": 0,
    "allocations": 0, "stream_syncs": 0, "device_syncs": 0,
}  # fmt: skip


def test_a_batch_of_images_is_a_pinned_copy_each_way_and_a_replay_for_which_one_thread_waits_once(batch: Delta) -> None:
    assert {name: batch[name] for name in OF_A_BATCH} == OF_A_BATCH
    assert batch.waits == [1]


def test_neither_the_thread_that_reads_a_batch_nor_the_one_that_infers_waits_for_the_card(batch: Delta) -> None:
    reads, infers, answers = Did(waits=0, copies=1, kernels=0), Did(0, 0, 1), Did(1, 0, 0)

    assert sorted(batch.threads) == sorted([reads, infers, answers])


def test_the_memory_that_readers_write_to_is_pinned(classifies: OnCards) -> None:
    assert classifies["pinned"] >= (1 + SLOTS) * BATCH * PIXELS


@pytest.mark.parametrize(
    ("name", "further"),
    [
        ("other", ""),
        pytest.param("narrow", "optimize: [fast_images, bf16, graph]\n", marks=needs("optimizing")),
    ],
)
def test_a_batch_that_is_prepared_otherwise_goes_the_same_way(
    name: str, further: str, served: Served, cards: Cards
) -> None:
    config = f"resize: 200\ncrop: 192\nmean: [0.5, 0.5, 0.5]\nstd: [0.5, 0.5, 0.5]\n{further}"
    served.tsctl("register", pack_image_classifier(served, name, config=config), "--workers", "1")
    [pid] = served.pids(name)
    send_batch(served, name)

    with Delta(cards.of(pid)) as done:
        send_batch(served, name)

    served.tsctl("unregister", name)
    assert (done["to_card_pinned"], done["to_card_bytes"]) == (1, BATCH * 3 * 192 * 192)
    assert (done["replays"], done["launches"]) == (1, 0)


def test_a_batch_of_an_object_detector_crosses_the_bus_once_as_bytes_and_comes_back_in_one_wait(
    served: Served, cards: Cards
) -> None:
    archive = pack_on_card(served, "object_detector", "finds_corners", "FindsCorners", "corners")
    served.tsctl("register", archive, "--workers", "1")
    [pid] = served.pids("corners")
    send_batch(served, "corners")  # the first one allocates

    with Delta(cards.of(pid)) as done:
        send_batch(served, "corners")

    served.tsctl("unregister", "corners")
    assert (done["to_card_pinned"], done["to_card_pageable"], done["to_card_bytes"]) == (1, 0, BATCH * 3 * 320 * 240)
    assert (done["from_card_pinned"], done["from_card_pageable"], done.waits) == (2, 0, [1]), "one for each dtype"
    assert done["launches"] == 5, "the bytes become numbers together, by 3 kernels; 2 join the answers"


def test_neither_the_daemon_nor_a_template_calls_cuda_and_nobody_forks_after_it(
    served: Served, cards: Cards, classifies: OnCards
) -> None:
    assert {each.pid for each in cards if running(each.pid)} == {*served.pids("on_card"), classifies.pid}
    assert {each["forks"] for each in cards} == {0}


def test_a_model_that_is_unloaded_leaves_nothing_on_a_card(served: Served, cards: Cards) -> None:
    before = cards.in_use()
    served.register("on_card", "--workers", "1", name="another")
    assert cards.in_use() > before

    served.tsctl("unregister", "another")

    eventually(lambda: cards.in_use() == before, lambda: f"the cards are as before: {[*cards]}")
