"""Headers with options are read as python-multipart reads them, and in bounded time."""

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from python_multipart.multipart import parse_options_header

from tsctl.daemon.api.inference.multipart import MOST_OPTIONS, parse_options
from tsctl.daemon.core.errors import BadRequest


@given(st.text(st.sampled_from('ab=;"\\ \t*N'), max_size=30) | st.text(st.characters(max_codepoint=255), max_size=30))
@example('form-data; name="k"; filename="a;b.png"')
@example('form-data; name="a\\"b"; NAME = "c"')
@example('form-data; name="a\\\\"; filename="x"')
@example('form-data; name="without an end; filename=x')
@example("form-data; name*=utf-8''x; name=y;;")
@example('"form;data"; name=x')
def test_a_header_means_what_it_means_to_python_multipart(value: str) -> None:
    kind, options = parse_options_header(value)

    found, own = parse_options(value)

    own.pop("filename*", None)  # which python-multipart ignores
    assert (found.encode("latin-1"), _encoded(own)) == (kind, options)


def _encoded(options: dict[str, str]) -> dict[bytes, bytes]:
    """As python-multipart gives them; of a path it keeps only the file's name, which nobody here asks for."""
    encoded = {name.encode("latin-1"): value.encode("latin-1") for name, value in options.items()}
    value = options.get("filename", "")
    if value[1:3] == ":\\" or value[:2] == "\\\\":
        encoded[b"filename"] = value.split("\\")[-1].encode("latin-1")
    return encoded


@pytest.mark.parametrize("value", [";" * 8000, "a" + ";b" * 4000, 'a; b="' + ";" * 8000])
def test_more_options_than_anybody_needs_are_refused(value: str) -> None:
    with pytest.raises(BadRequest, match=f"more than {MOST_OPTIONS} semicolons"):
        parse_options(value)
    allowed = "form-data" + "".join(f"; o{number}=x" for number in range(MOST_OPTIONS))
    assert len(parse_options(allowed)[1]) == MOST_OPTIONS
