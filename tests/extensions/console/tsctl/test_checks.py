"""Host, origin, site and secret: who may use the page."""

import json

import pytest

from tests.kit.said import said_in
from tsctl.extensions.console.checks import BrowserSession, body_length, refusal

OWN = {"host": "127.0.0.1:8765", "origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-origin"}


@said_in("checks.txt")
def test_refusal(given: str) -> str:
    headers = OWN | json.loads(given)
    method, opening = headers.pop("method"), headers.pop("opening", False)
    sent = {name: value for name, value in headers.items() if value is not None}
    return refusal(method, sent, "127.0.0.1:8765", opening=opening)


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        pytest.param({}, "", id="the page itself, by whatever name"),
        pytest.param({"origin": "http://models.example"}, "Origin", id="the same host without TLS"),
        pytest.param({"origin": "https://evil.example"}, "Origin", id="another host"),
        pytest.param({"origin": "null"}, "Origin", id="a sandbox"),
        pytest.param({"sec-fetch-site": "same-site"}, "site", id="another name below the same domain"),
    ],
)
def test_refusal_over_tls(changed: dict[str, str], expected: str) -> None:
    own = {"host": "models.example", "origin": "https://models.example", "sec-fetch-site": "same-origin"}

    why = refusal("POST", own | changed, "127.0.0.1:8765", secure=True)

    assert (expected in why) if expected else why == ""


def test_the_operators_token_works_each_time() -> None:
    session = BrowserSession("a-token-of-the-operator")

    first, second = (session.claim("a-token-of-the-operator") for _ in range(2))

    assert first == second != ""
    assert session.claim("another") == ""
    assert session.knows(f"Bearer {first}")


def test_a_token_works_once_and_the_next_one_is_told() -> None:
    session = BrowserSession()
    told: list[str] = []
    session.renewed = told.append
    token = session.token

    first, second = session.claim(token), session.claim(token)

    assert (first != "", second) == (True, "")
    assert told == [session.token] != [token]
    assert session.claim(told[0]) == first


@pytest.mark.parametrize("guess", ["", "x", "é"])
def test_a_wrong_token_opens_nothing_and_spends_nothing(guess: str) -> None:
    session = BrowserSession()

    assert session.claim(guess) == ""
    assert session.claim(session.token) != ""


def test_only_the_secret_of_this_page_is_known() -> None:
    session, other = BrowserSession(), BrowserSession()
    token = session.token
    secret = session.claim(token)

    assert session.knows(f"Bearer {secret}") and session.knows(f"bearer {secret}")
    assert not other.knows(f"Bearer {secret}")
    guesses = ("", "Bearer", "Bearer ", secret, f"Bearer {secret[:-1]}", f"Bearer {secret}é", f"Basic {secret}")
    assert not any(session.knows(each) for each in guesses)
    assert not session.knows(f"Bearer {token}") and not session.knows(f"Bearer {session.token}")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("0", 0), ("10", 10), ("0000000010", 10), ("11", 11), ("99", 11), ("9" * 5000, 11), ("0" * 5000 + "7", 7),
        ("", None), ("-1", None), ("+1", None), ("1_0", None), (" 1", None), ("²", None), ("١", None), ("1e3", None),
    ],
)  # fmt: skip
def test_a_length_is_a_number_or_too_large_or_none(text: str, expected: int | None) -> None:
    assert body_length(text, 10) == expected
