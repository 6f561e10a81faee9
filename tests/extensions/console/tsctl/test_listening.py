"""What an address of the page needs."""

import ssl
from pathlib import Path

import pytest

from tests.certificate import Certificate, make_certificate, needs_openssl
from tsctl.errors import CliError
from tsctl.extensions.console.listening import listening


@pytest.fixture
def made(tmp_path: Path) -> Certificate:
    return make_certificate(tmp_path)


@pytest.fixture
def token_file(tmp_path: Path) -> Path:
    file = tmp_path / "token"
    file.touch(0o600)
    file.write_text("0123456789abcdef\n")
    return file


@pytest.mark.parametrize("address", ["127.0.0.1", "127.1.2.3", "::1"])
def test_loopback_needs_nothing(address: str) -> None:
    at = listening(address, 8765, None, None, None)

    assert (at.tls, at.token) == (None, "")
    assert at.url(8765) == f"http://{'[::1]' if address == '::1' else address}:8765"


@pytest.mark.parametrize("address", ["0.0.0.0", "::", "192.0.2.7", "::ffff:192.0.2.7"])
def test_another_address_is_refused_with_what_it_lacks(address: str, tmp_path: Path, token_file: Path) -> None:
    pem = tmp_path / "x.pem"

    for given, lacking in (
        ((None, None, None), "add `--certificate FILE --key FILE --token-file FILE`"),
        ((None, None, token_file), "add `--certificate FILE --key FILE`"),
        ((pem, pem, None), "add `--token-file FILE`"),
    ):
        with pytest.raises(CliError, match="needs TLS and a token") as refused:
            listening(address, 0, *given)
        assert lacking in refused.value.hint and "ssh -L" in refused.value.hint


@needs_openssl
def test_with_tls_and_a_token_any_address_may_be_served(made: Certificate, token_file: Path) -> None:
    at = listening("192.0.2.7", 0, made.certificate, made.key, token_file)

    assert at.tls is not None and at.tls.minimum_version == ssl.TLSVersion.TLSv1_2
    assert (at.token, at.url(8765)) == ("0123456789abcdef", "https://192.0.2.7:8765")


@pytest.mark.parametrize(
    ("address", "certificate", "key", "token", "why"),
    [
        ("localhost", None, None, None, "`localhost` is not an IP address"),
        ("127.0.0.1", "x.pem", None, None, "`--certificate` needs `--key`"),
        ("127.0.0.1", None, "x.pem", None, "`--key` needs `--certificate`"),
        ("127.0.0.1", "x.pem", "x.pem", None, "cannot use the certificate `.*/x.pem`"),
        ("127.0.0.1", "missing.pem", "missing.pem", None, "cannot use the certificate `.*/missing.pem`"),
        ("127.0.0.1", None, None, "missing", "cannot read the token file"),
    ],
)
def test_what_cannot_be_used_is_named(
    tmp_path: Path, address: str, certificate: str | None, key: str | None, token: str | None, why: str
) -> None:
    (tmp_path / "x.pem").write_text("no certificate")

    with pytest.raises(CliError, match=why):
        listening(address, 0, *(name and tmp_path / name for name in (certificate, key, token)))  # type: ignore[arg-type]


@needs_openssl
def test_a_key_with_a_password_is_refused_without_asking(tmp_path: Path) -> None:
    made = make_certificate(tmp_path, password="secret")

    with pytest.raises(CliError, match="cannot use the certificate"):
        listening("127.0.0.1", 0, made.certificate, made.key, None)


@pytest.mark.parametrize(
    ("text", "mode", "message"),
    [
        pytest.param("0123456789abcdef", 0o644, "others can use the token file", id="readable by others"),
        pytest.param("short", 0o600, "is not one line of 16 to", id="easily guessed"),
        pytest.param("", 0o600, "is not one line of 16 to", id="empty"),
        pytest.param("0123456789 abcdef", 0o600, "is not one line of 16 to", id="two words"),
        pytest.param("0123456789abcdeé", 0o600, "is not one line of 16 to", id="no ASCII"),
    ],
)
def test_a_token_file_is_private_and_hard_to_guess(tmp_path: Path, text: str, mode: int, message: str) -> None:
    file = tmp_path / "token"
    file.write_text(text)
    file.chmod(mode)

    with pytest.raises(CliError, match=message) as refused:
        listening("127.0.0.1", 0, None, None, file)
    assert refused.value.hint
    assert not text or text not in str(refused.value.message)
