"""The servers that are compared, by name. Each is one file with a `Peer` in it.

All are given the same: one worker, batches of at most eight, a delay of 10 ms, and else their defaults. Our own
is there a second time and more, with `optimize`, and with a plain handler in place of a typed one.
"""

from tests.lab.benchmarks.peers.litserve import LitServe
from tests.lab.benchmarks.peers.mosec import Mosec
from tests.lab.benchmarks.peers.open_inference import KServe, MLServer
from tests.lab.benchmarks.peers.ours import Ours, PlainHandler
from tests.lab.benchmarks.peers.peer import Peer
from tests.lab.benchmarks.peers.torchserve import TorchServe
from tests.lab.benchmarks.peers.triton import Triton

_ALL = (
    Ours(), Ours("compile"), Ours("bf16"), Ours("bf16", "compile"), PlainHandler(),
    TorchServe(), Mosec(), LitServe(), KServe(), MLServer(), Triton(),
)  # fmt: skip
PEERS: dict[str, Peer] = {peer.name: peer for peer in _ALL}
