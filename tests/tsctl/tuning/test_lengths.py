"""What `tsctl tune` says of batches of requests with similar lengths."""

from tsctl.tuning.report import lengths_text


def test_the_gain_comes_with_its_condition_and_its_command() -> None:
    gain = {"least": 19, "median": 47.0, "most": 249, "throughput": 1.62, "p99": 0.71}

    assert lengths_text({"model": "net", "lengths": gain}) == [
        "  requests have 19 to 249 bytes, 47 in the median: if the model pads a batch to its longest,",
        "  forming batches by length gives 1.62 times the requests a second and 0.71 times the p99 (simulated):",
        "  tsctl set net --group-by-length",
    ]


def test_without_a_gain_nothing_is_said() -> None:
    assert lengths_text({"model": "net", "lengths": None}) == lengths_text({"model": "net"}) == []
