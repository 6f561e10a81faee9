"""All layers, one after the other: `python -m tests.benchmarks.layers`."""

from tests.benchmarks.layers import daemon, frames, http, queue, worker

if __name__ == "__main__":
    http.main()
    queue.main()
    frames.main()
    worker.main()
    daemon.main(profile=False)
