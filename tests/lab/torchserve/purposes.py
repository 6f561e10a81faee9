"""What stays different on purpose: the messages of refusals, each with its reason and the way forward.

A refusal whose message is in no row is a defect of tsctl.
"""

import re
from typing import NamedTuple

from tests.lab.torchserve.verdict import Outcome, Row


class Refusal(NamedTuple):
    """A kind of refusal: a pattern of its message, its reason, and what an operator does instead."""

    message: str
    reason: str
    instead: str


REFUSALS: tuple[Refusal, ...] = (
    Refusal(
        r"^model-config\.yaml: `minWorkers` is `a`;",
        "TorchServe ignores a value of the wrong type, as its test with this file expects; here it is an error",
        "a whole number for `minWorkers`",
    ),
    Refusal(
        r"management address `[^`]*` needs a token",
        "no key file is written: whoever may manage models runs code, so the operator names the token",
        "`--token-file FILE`; or `--disable-token-auth`, as most of TorchServe's pages have it",
    ),
    Refusal(
        r"(disable_token_authorization|token_expiration_min): ",
        "a token here does not expire and is not made by the daemon, so the file asks for protection that is not there",
        "`--token-file` and `--inference-token-file`, and the key removed",
    ),
    Refusal(
        r"keystore(_pass|_type)?: |enable_grpc_ssl: ",
        "keys are read as PEM, not from Java's store",
        "`openssl pkcs12 -in STORE -out …`, then `certificate_file` and `private_key_file`",
    ),
    Refusal(
        r"OpenSSL refuses the certificate as too weak",
        "a key of 1024 bits can be broken, and this machine's OpenSSL does not load it",
        "a certificate whose key has at least 2048 bits",
    ),
    Refusal(
        r"is neither ARCHIVE nor NAME=ARCHIVE",
        "a start that leaves out a model which was named would look like success; TorchServe warns and goes on",
        "`--models NAME=ARCHIVE`, without a space after the `=`",
    ),
)  # fmt: skip


def judge_refusal(name: str, message: str) -> Row:
    """Return the row of a refused case: by design if the table knows the message, else a defect."""
    for refusal in REFUSALS:
        if re.search(refusal.message, message):
            return Row(name, Outcome.REFUSED, message)
    return Row(name, Outcome.DEFECT, message)
