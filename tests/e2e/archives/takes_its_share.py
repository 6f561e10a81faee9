"""Its first worker takes so much memory that some two hundred like it fit, whatever other processes free meanwhile.

The others take none, so that a machine survives a daemon that starts hundreds.
"""

from pathlib import Path

SHARE = 250


class Takes:
    def load(self):
        try:
            Path(__file__).with_name("taken").touch(exist_ok=False)
        except FileExistsError:
            return
        with open("/proc/meminfo") as file:
            left = next(int(line.split()[1]) * 1024 for line in file if line.startswith("MemAvailable:"))
        self.held = bytearray(b"x" * (left // SHARE))

    def predict(self, body: bytes) -> bytes:
        return body
