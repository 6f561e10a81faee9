"""The times of one answer, for a client that asks for them; and durations in messages."""


class Timing:
    """The times of the batch in which a job was answered.

    Attributes:
        queue: seconds from the job's arrival until its worker began the batch.
        worker: seconds that the batch took there.
        batch: jobs in the batch; 0 while no worker has answered.
    """

    __slots__ = ("batch", "queue", "worker")

    def __init__(self) -> None:
        self.queue = self.worker = 0.0
        self.batch = 0

    def __repr__(self) -> str:
        return f"<Timing {self.header(0.0)}>"

    def note_batch(self, queue: float, worker: float, batch: int) -> None:
        """Note that a worker has answered the job's batch."""
        self.queue, self.worker, self.batch = max(0.0, queue), worker, batch

    def header(self, total: float) -> str:
        """Return the value of the header `Server-Timing` (W3C), in milliseconds.

        Args:
            total: seconds from the complete request to its answer.
        """
        parts = [f"total;dur={total * 1000:.1f}"]
        if self.batch:
            parts = [f"queue;dur={self.queue * 1000:.1f}", f"worker;dur={self.worker * 1000:.1f}", *parts]
            parts.append(f'batch;desc="{self.batch}"')
        return ", ".join(parts)


def duration(seconds: float) -> str:
    """Format seconds in milliseconds below one second: `0.4 ms`, `50 ms`, `2.5 s`."""
    return f"{seconds * 1000:.3g} ms" if seconds < 1.0 else f"{seconds:.4g} s"
