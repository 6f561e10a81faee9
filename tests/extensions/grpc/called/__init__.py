"""Calls over gRPC, and all of their answers, in text files that are compared whole.

`## the claim` begins one, with a server of its own. What is arranged is as in tests/api/conversations; what is called:

    > oip ModelInfer {"model_name": "m"}   a service of `OWNERS`, its call, and the message in protobuf's JSON
    > oip ModelStreamInfer [{…}, {…}]      a stream of messages
    < {"model_name": "m"}                  each answer, `< NOT_FOUND: Model not found: m` or another error
    * m/1.0 body "cat"                     what workers got, and `= m/1.0 …` of changed versions, as there
"""

import json
import re
from importlib.metadata import version
from pathlib import Path
from typing import Any

from google.protobuf.json_format import MessageToDict, ParseDict

from tests.api.conversations import talk
from tests.extensions.grpc.client import HEALTH, INFERENCE, GrpcHouse, grpc, grpc_house
from tests.extensions.grpc.test_management import managed
from tsctl.daemon.extensions.grpc.management import SERVICE
from tsctl.daemon.extensions.grpc.oip import SERVICES
from tsctl.daemon.extensions.grpc.protos.messages import message_class, service

OWNERS = {"torchserve": INFERENCE, "management": SERVICE, "health": HEALTH, "oip": SERVICES[0], "other": SERVICES[1]}


async def play(lines: list[str], root: Path, *, manages: bool) -> list[str]:
    """Call again, with files in an empty directory, and return the lines as they would have to be."""
    async with (managed if manages else grpc_house)(root) as served:
        return await talk(lines, served.house, root, lambda asked: _answered(served, asked))


async def _answered(served: GrpcHouse, line: str) -> list[str]:
    word, name, text = f"{line} ".split(" ", 2)
    owner, asked, told = OWNERS[word], json.loads(text or "{}"), list[str]()
    try:
        method = next((each for each in service(owner).methods if each.name == name), None)
        if method is None:
            await served.settled(served.channel.unary_unary(f"/{owner}/{name}")(b""))
            return ["< is there"]
        listed = asked if isinstance(asked, list) else [asked]
        messages = [ParseDict(each, message_class(method.input_type.full_name)()) for each in listed]
        call = served.call(name, iter(messages) if isinstance(asked, list) else messages[0], owner)
        if not method.server_streaming:
            return [_shown(await served.settled(call))]
        while (answer := await served.settled(call.read())) is not grpc.aio.EOF:
            told.append(_shown(answer))
    except grpc.aio.AioRpcError as error:
        told.append(f"< {error.code().name}: {error.details()}")
    return told


def _shown(answer: Any) -> str:
    told = MessageToDict(answer, preserving_proto_field_name=True)
    text = json.dumps(told, ensure_ascii=False, sort_keys=True).replace(json.dumps(version("tsctl")), "VERSION")
    return "< " + re.sub(r'("(?:ns|last_inference)": ")[0-9]+', r"\1NOW", text)
