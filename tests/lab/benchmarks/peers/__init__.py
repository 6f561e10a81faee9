"""The servers that are compared, by name. Each is one file with a `Peer` in it.

All are given the same: one worker, batches of at most eight, a delay of 10 ms, and else their defaults. Our own
is there a second time and more, with `optimize`. The others are the predecessor, and the one that comes nearest to us.
"""

from tests.lab.benchmarks.peers.mosec import Mosec
from tests.lab.benchmarks.peers.ours import Ours
from tests.lab.benchmarks.peers.peer import Peer
from tests.lab.benchmarks.peers.torchserve import TorchServe

_ALL = (Ours(), Ours("compile"), Ours("bf16"), Ours("bf16", "compile"), TorchServe(), Mosec())
PEERS: dict[str, Peer] = {peer.name: peer for peer in _ALL}
