"""Takes so much memory that some two hundred workers fit, whatever other processes free meanwhile."""

SHARE = 250


class Takes:
    def load(self):
        with open("/proc/meminfo") as file:
            left = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
        self.held = bytearray(b"x" * (left // SHARE))

    def predict(self, body: bytes) -> bytes:
        return body
