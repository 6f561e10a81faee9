"""A body that goes around the parser hides no request, and its end is where its length says."""

import tracemalloc
from dataclasses import replace

import pytest

from tests.http.hostile.outcome import END, Outcome, outcome
from tests.http.peer import GET, LIMITS, Server, chunked, get
from tsctl.daemon.core.arena import SHARED_FROM, Arena

SIZE = SHARED_FROM + 0xAB
EVIL = get("/evil")
BODY = (EVIL + b"0\r\n\r\n") * (SIZE // len(EVIL)) + b"." * SIZE
BODY = BODY[:SIZE]
SEEN = "POST / " + BODY.decode()
POST = b"POST / HTTP/1.1\r\nHost: a\r\n"
LENGTH = b"Content-Length: %d\r\n" % SIZE
CUTS = [1, 30, len(POST + LENGTH), len(POST + LENGTH) + 2, 1000, SIZE, -len(GET) - 1, -len(GET), -len(GET) + 1, -1]


@pytest.fixture(scope="module")
def arena() -> Arena:
    return Arena(1024**2)


@pytest.mark.parametrize(
    ("head", "expected"),
    [
        pytest.param(LENGTH, [SEEN, "GET / "], id="a length"),
        pytest.param(b"Content-Length: 000%d\t\r\n" % SIZE, [SEEN, "GET / "], id="a length with zeros and a tab"),
        pytest.param(LENGTH + b"Connection: upgrade\r\nUpgrade: x\r\n", [SEEN, END], id="an offer to upgrade"),
        pytest.param(LENGTH + b"Connection: close\r\n", [SEEN, END], id="the last request"),
        pytest.param(LENGTH * 2, [400], id="equal lengths"),
        pytest.param(LENGTH + b"Content-Length: 0\r\n", [400], id="different lengths"),
        pytest.param(b"Content-Length: 0\r\n" + LENGTH, [400], id="nothing, then a length"),
        pytest.param(LENGTH + b"Transfer-Encoding: chunked\r\n", [400], id="a length and chunks"),
        pytest.param(b"Transfer-Encoding: chunked\r\n" + LENGTH, [400], id="chunks and a length"),
        pytest.param(LENGTH + b"Connection: upgrade\r\nUpgrade: x\r\nTransfer-Encoding: chunked\r\n", [400],
                     id="an offer to upgrade, a length and chunks"),
        pytest.param(b"Content-Length: +%d\r\n" % SIZE, [400], id="a sign"),
        pytest.param(b"Content-Length: %d, %d\r\n" % (SIZE, SIZE), [400], id="a list"),
        pytest.param(b"Content-Length : %d\r\n" % SIZE, [400], id="a space before the colon"),
        pytest.param(b"Content-Length: %x\r\n" % SIZE, [400], id="hexadecimal"),
        pytest.param(b"Content-Length: %d\r\n" % (2**63), [413], id="a length that nobody can store"),
    ],
)  # fmt: skip
def test_it_ends_where_its_length_says_or_is_refused(head: bytes, expected: Outcome, arena: Arena) -> None:
    stream = POST + head + b"\r\n" + BODY + GET

    assert outcome(stream, storage=arena) == expected
    for cut in CUTS:
        assert outcome(stream[:cut], stream[cut:], storage=arena) == expected, cut
    assert arena.used == 0


def test_what_follows_it_is_held_to_the_rules(arena: Arena) -> None:
    stream = POST + LENGTH + b"\r\n" + BODY

    assert outcome(stream + b"\0", storage=arena) == [SEEN, 400]
    assert outcome(stream + b"left over", storage=arena) == [SEEN, 400], "a length that is too short"
    assert outcome(stream + stream + EVIL, storage=arena) == [SEEN, SEEN, "GET /evil "]
    assert outcome(stream + POST + LENGTH * 2 + b"\r\n" + BODY, storage=arena) == [SEEN, 400]


def test_a_length_that_is_too_long_waits_for_the_rest(arena: Arena) -> None:
    stream = POST + b"Content-Length: %d\r\n\r\n" % (SIZE + len(EVIL) + 1) + BODY + EVIL

    assert outcome(stream, storage=arena) == []
    assert outcome(stream + b"!", storage=arena) == [SEEN + EVIL.decode() + "!"]


def test_small_chunks_cost_little_more_memory_than_they_hold() -> None:
    server = Server(limits=replace(LIMITS, max_body=100_000))
    peer = server.connect()
    data = chunked(*[b"ab"] * 40_000)
    tracemalloc.start()
    try:
        peer.send(data)
        held, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    (exchange,) = server.exchanges
    assert exchange.request.body == b"ab" * 40_000
    assert held < 200_000 and most < 1_000_000
