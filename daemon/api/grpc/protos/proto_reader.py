"""Read the part of proto3 that the files in `protos` use: neither generated code nor protoc is needed.

Understood: package, import, messages in messages, `optional`, `repeated`, `map`, `oneof`, enums in messages that
are declared before they are used, services with streams.
"""

import re
from collections.abc import Iterator

from google.protobuf.descriptor_pb2 import DescriptorProto, FieldDescriptorProto, FileDescriptorProto

_TOKEN = re.compile(r'//[^\n]*|\s+|(?P<token>[\w.]+|"[^"]*"|[{}()<>=;,])|(?P<wrong>.)', re.DOTALL)
_SCALARS = frozenset({"bool", "bytes", "double", "float", "int32", "int64", "string", "uint32", "uint64"})


class ProtoError(ValueError):
    """A .proto file holds something that this reader does not understand."""


class ProtoReader:
    """One pass over the text of a file; `file` is its description afterwards.

    Args:
        name: the name under which other files import this one.
        text: the file.
        package: replaces the package that the file names; empty to keep that.

    Raises:
        ProtoError: the text is outside the part of proto3 that is understood.
    """

    def __init__(self, name: str, text: str, package: str = "") -> None:
        self.file = FileDescriptorProto(name=name, syntax="proto3")
        self._package = package
        self._enums: set[str] = set()
        self._tokens = [*_tokens(text), ""]
        self._at = 0
        while (word := self._next()) != "":
            self._top(word)

    def _next(self) -> str:
        token = self._tokens[self._at]
        self._at += bool(token)  # the end stays the end
        return token

    def _expect(self, *tokens: str) -> None:
        for token in tokens:
            if (found := self._next()) != token:
                raise ProtoError(f"{self.file.name}: expected `{token}`, found `{found}`")

    def _top(self, word: str) -> None:
        match word:
            case "syntax":
                self._expect("=", '"proto3"', ";")
            case "package":
                named = self._next()
                self.file.package = self._package or named
                self._expect(";")
            case "import":
                self.file.dependency.append(self._next().strip('"'))
                self._expect(";")
            case "message":
                message = self.file.message_type.add(name=self._next())
                self._message(message, f".{self.file.package}.{message.name}")
            case "service":
                self._service()
            case _:
                raise ProtoError(f"{self.file.name}: expected a message or a service, found `{word}`")

    def _message(self, message: DescriptorProto, path: str) -> None:
        self._expect("{")
        while (word := self._next()) != "}":
            match word:
                case "message":
                    inner = message.nested_type.add(name=self._next())
                    self._message(inner, f"{path}.{inner.name}")
                case "enum":
                    self._enum(message)
                case "oneof":
                    choice = len(message.oneof_decl)
                    message.oneof_decl.add(name=self._next())
                    self._expect("{")
                    while (kind := self._next()) != "}":
                        self._field(message, kind).oneof_index = choice
                case "map":
                    self._map(message, path)
                case "repeated":
                    self._field(message, self._next()).label = FieldDescriptorProto.LABEL_REPEATED
                case "optional":
                    self._field(message, self._next()).proto3_optional = True
                case _:
                    self._field(message, word)
        # Presence of an `optional` field is a oneof of its own, behind those that are written.
        for field in message.field:
            if field.proto3_optional:
                field.oneof_index = len(message.oneof_decl)
                message.oneof_decl.add(name=f"_{field.name}")

    def _field(self, message: DescriptorProto, kind: str) -> FieldDescriptorProto:
        field = message.field.add(name=self._next(), label=FieldDescriptorProto.LABEL_OPTIONAL)
        self._expect("=")
        field.number = self._number()
        self._expect(";")
        _set_type(field, kind)
        if kind in self._enums:
            field.type = FieldDescriptorProto.TYPE_ENUM
        return field

    def _enum(self, message: DescriptorProto) -> None:
        enum = message.enum_type.add(name=self._next())
        self._enums.add(enum.name)
        self._expect("{")
        while (word := self._next()) != "}":
            self._expect("=")
            enum.value.add(name=word, number=self._number())
            self._expect(";")

    def _map(self, message: DescriptorProto, path: str) -> None:
        self._expect("<")
        key = self._next()
        self._expect(",")
        value = self._next()
        self._expect(">")
        name = self._next()
        entry = message.nested_type.add(name="".join(word.capitalize() for word in name.split("_")) + "Entry")
        entry.options.map_entry = True
        for number, (part, kind) in enumerate((("key", key), ("value", value)), start=1):
            _set_type(entry.field.add(name=part, number=number, label=FieldDescriptorProto.LABEL_OPTIONAL), kind)
        self._expect("=")
        field = message.field.add(name=name, number=self._number(), label=FieldDescriptorProto.LABEL_REPEATED)
        _set_type(field, f"{path}.{entry.name}")
        self._expect(";")

    def _number(self) -> int:
        if not (word := self._next()).isdecimal():
            raise ProtoError(f"{self.file.name}: expected a number, found `{word}`")
        return int(word)

    def _service(self) -> None:
        service = self.file.service.add(name=self._next())
        self._expect("{")
        while (word := self._next()) != "}":
            if word != "rpc":
                raise ProtoError(f"{self.file.name}: expected `rpc`, found `{word}`")
            method = service.method.add(name=self._next())
            method.client_streaming, method.input_type = self._side()
            self._expect("returns")
            method.server_streaming, method.output_type = self._side()
            self._expect(";")

    def _side(self) -> tuple[bool, str]:
        self._expect("(")
        word = self._next()
        streaming = word == "stream"
        kind = self._next() if streaming else word
        self._expect(")")
        return streaming, kind


def _tokens(text: str) -> Iterator[str]:
    for match in _TOKEN.finditer(text):
        if match["wrong"]:
            raise ProtoError(f"unexpected character `{match['wrong']}`")
        if match["token"]:
            yield match["token"]


def _set_type(field: FieldDescriptorProto, kind: str) -> None:
    if kind in _SCALARS:
        field.type = getattr(FieldDescriptorProto, f"TYPE_{kind.upper()}")
    else:
        field.type = FieldDescriptorProto.TYPE_MESSAGE
        field.type_name = kind
