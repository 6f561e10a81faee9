"""All layers, one after the other: `python -m tests.lab.benchmarks.layers`."""

from tests.lab.benchmarks.layers import daemon, frames, http, queue, worker

if __name__ == "__main__":
    http.main()
    queue.main()
    frames.main()
    worker.main()
    daemon.main(profile=False)
