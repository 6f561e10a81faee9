"""The servers that are compared, by name. Each is one file with a `Peer` in it; `Loop` is the work without a server.

All are given the same: one worker, batches of at most eight, a delay of 10 ms, and else their defaults. Our own
is there a second time and more, with `optimize`. The others are the predecessor, the one that comes nearest to us, and
those that people serve embeddings with.
"""

from tests.lab.benchmarks.peers.others import Infinity, LitServe, Loop, Mosec
from tests.lab.benchmarks.peers.ours import Ours
from tests.lab.benchmarks.peers.peer import Peer
from tests.lab.benchmarks.peers.torchserve import TorchServe

_ALL: tuple[Peer | Loop, ...] = (
    Ours(), Ours("compile"), Ours("bf16"), Ours("bf16", "compile"), Ours("onnxruntime"), TorchServe(), Mosec(),
    LitServe(), Infinity(), Loop("torch"), Loop("onnxruntime"),
)  # fmt: skip
PEERS: dict[str, Peer | Loop] = {peer.name: peer for peer in _ALL}
