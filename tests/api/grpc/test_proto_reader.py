"""The reader of .proto files refuses what it does not understand."""

import pytest

from daemon.api.grpc.protos.proto_reader import ProtoError, ProtoReader


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        pytest.param('syntax = "proto2";', 'expected `"proto3"`, found `"proto2"`', id="proto2"),
        pytest.param("enum E { A = 0; }", "expected a message or a service, found `enum`", id="enum"),
        pytest.param("message M { int32 a = x; }", "expected a number, found `x`", id="no number"),
        pytest.param("message M { int32 a = 1 [packed = true]; }", r"unexpected character `\[`", id="field options"),
        pytest.param("message M { enum E { A = -1; } }", "unexpected character `-`", id="negative"),
        pytest.param("message M { int32 a = 1;", "expected `=`, found ``", id="not closed"),
        pytest.param("service S { option x = 1; }", "expected `rpc`, found `option`", id="option of a service"),
    ],
)
def test_unknown_text_is_refused_with_its_reason(text: str, reason: str) -> None:
    with pytest.raises(ProtoError, match=reason):
        ProtoReader("some.proto", text)


def test_comments_and_imports_are_read() -> None:
    file = ProtoReader("a.proto", '// first\nimport "b.proto"; // second\npackage p.q;\nmessage M {} // last').file

    assert (list(file.dependency), file.package, [each.name for each in file.message_type]) == (
        ["b.proto"],
        "p.q",
        ["M"],
    )
