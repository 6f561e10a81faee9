"""Host, origin, site and cookie: who may use the page."""

import pytest

from tsctl.console.checks import BrowserSession, refusal

OWN = {"host": "127.0.0.1:8765", "origin": "http://127.0.0.1:8765", "sec-fetch-site": "same-origin"}


@pytest.mark.parametrize(
    ("method", "changed", "entering", "expected"),
    [
        pytest.param("POST", {}, False, "", id="the page itself"),
        pytest.param("GET", {"origin": None}, False, "", id="a GET of the page has no origin"),
        pytest.param("GET", {"origin": None, "sec-fetch-site": "none"}, False, "", id="a typed address"),
        pytest.param("GET", {"host": "localhost:8765", "origin": None}, False, "", id="by the name localhost"),
        pytest.param("GET", {"host": "evil.example:8765", "origin": None}, False, "Host", id="a name that is rebound"),
        pytest.param("GET", {"host": "127.0.0.1:80", "origin": None}, False, "Host", id="another port"),
        pytest.param("GET", {"host": None, "origin": None}, False, "Host", id="no host"),
        pytest.param("GET", {"origin": "http://evil.example"}, False, "Origin", id="another origin"),
        pytest.param("POST", {"origin": "null"}, False, "Origin", id="a file or sandbox"),
        pytest.param("POST", {"origin": "http://127.0.0.1:9"}, False, "Origin", id="another port of this host"),
        pytest.param("POST", {"origin": "http://localhost:8765"}, False, "Origin", id="the page's other name"),
        pytest.param("POST", {"origin": None}, False, "missing", id="a change without an origin"),
        pytest.param("PATCH", {"origin": None}, False, "missing", id="a setting without an origin"),
        pytest.param("GET", {"origin": None, "sec-fetch-site": "cross-site"}, False, "site", id="an image elsewhere"),
        pytest.param("GET", {"origin": None, "sec-fetch-site": "same-site"}, False, "site", id="another local port"),
        pytest.param("GET", {"origin": None, "sec-fetch-site": "cross-site"}, True, "", id="the redirect file"),
        pytest.param("GET", {"host": "evil.example", "origin": None}, True, "Host", id="a rebound name may not enter"),
    ],
)
def test_refusal(method: str, changed: dict[str, str | None], entering: bool, expected: str) -> None:
    headers = {name: value for name, value in (OWN | changed).items() if value is not None}

    why = refusal(method, headers, 8765, entering=entering)

    assert (expected in why) if expected else why == ""


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

    why = refusal("POST", own | changed, 8765, secure=True)

    assert (expected in why) if expected else why == ""


def test_the_operators_token_works_each_time_and_its_cookie_only_over_tls() -> None:
    session = BrowserSession(8765, "a-token-of-the-operator", secure=True)

    first, second = (session.claim("a-token-of-the-operator") for _ in range(2))

    assert first == second != ""
    assert first.startswith("__Host-") and first.endswith("; Secure")
    assert session.claim("another") == ""
    assert session.knows(first.partition(";")[0])


def test_a_token_works_once() -> None:
    session = BrowserSession(8765)

    first, second = session.claim(session.token), session.claim(session.token)

    assert "HttpOnly" in first and "SameSite=Strict" in first
    assert second == ""


@pytest.mark.parametrize("guess", ["", "x", "é"])
def test_a_wrong_token_opens_nothing_and_spends_nothing(guess: str) -> None:
    session = BrowserSession(8765)

    assert session.claim(guess) == ""
    assert session.claim(session.token) != ""


def test_only_the_cookie_of_this_page_is_known() -> None:
    session, other = BrowserSession(8765), BrowserSession(8765)
    cookie = session.claim(session.token).partition(";")[0]

    assert session.knows(f"theme=dark; {cookie}")
    assert not other.knows(cookie)
    assert not any(session.knows(each) for each in ("", ";;;", f"{session.name}=", cookie[:-1], f"{cookie}é"))
    assert session.token not in cookie
