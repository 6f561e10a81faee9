"""wrk: the load generator for everybody. One thread, keep-alive, a closed loop."""

import json
import random
import shutil
import subprocess
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SHUFFLED = 8  # times that each of several bodies is among those that are sent
TIMEOUT = 30  # seconds that wrk waits for an answer before it counts a time-out

# Prints what was counted as one JSON line; latencies are in microseconds.
_SCRIPT = """\
local function read(name)
  local file = io.open(name, "rb")
  local bytes = file:read("*a")
  file:close()
  return bytes
end
wrk.method = "POST"
local names, requests, at = {{{names}}}, {{}}, 0
if #names == 1 then
  wrk.body = read(names[1])
else
  init = function()
    for number, name in ipairs(names) do requests[number] = wrk.format(nil, nil, nil, read(name)) end
  end
  request = function()
    at = at % #requests + 1
    return requests[at]
  end
end
done = function(summary, latency, requests)
  local e = summary.errors
  print(string.format(
    'RESULT {{"requests": %d, "duration": %d, "connect": %d, "read": %d, "write": %d, "status": %d, "timeout": %d, '
      .. '"p50": %d, "p95": %d, "p99": %d}}',
    summary.requests, summary.duration, e.connect, e.read, e.write, e.status, e.timeout,
    latency:percentile(50), latency:percentile(95), latency:percentile(99)))
end
"""


class NoWrk(RuntimeError):
    """wrk is not installed, or did not run; the message says which."""


@dataclass(frozen=True, slots=True)
class Load:
    """The results of wrk; latencies in seconds.

    Attributes:
        errors: connections that failed, answers that did not come or had no status of 2xx or 3xx.
    """

    requests: int
    seconds: float
    errors: int
    p50: float
    p95: float
    p99: float

    @property
    def rate(self) -> float:
        """Good answers a second."""
        return max(0, self.requests - self.errors) / self.seconds if self.seconds else 0.0


def version() -> str:
    """Raises: NoWrk, if there is none."""
    if shutil.which("wrk") is None:
        raise NoWrk("there is no program `wrk`: `python -m tests.lab system-packages` installs it")
    said = subprocess.run(["wrk", "-v"], capture_output=True, text=True).stdout
    return said.split("[")[0].strip()


def parse(output: str) -> Load:
    """Read what the program printed.

    Raises:
        NoWrk: it printed no figures.
    """
    line = next((line for line in output.splitlines() if line.startswith("RESULT ")), None)
    if line is None:
        raise NoWrk(f"wrk printed no figures:\n{output}")
    found = json.loads(line.removeprefix("RESULT "))
    errors = sum(found[kind] for kind in ("connect", "read", "write", "status", "timeout"))
    seconds = {name: found[name] / 1e6 for name in ("p50", "p95", "p99")}
    return Load(found["requests"], found["duration"] / 1e6, errors, **seconds)


def run(url: str, bodies: Sequence[Path], connections: int, seconds: float) -> Load:
    """Send bodies over and over for `seconds`, rounded to whole ones.

    Several are sent in a mixed order, which is equal in all calls: in turn, each batch of eight of eight texts would
    have the longest of them, and nobody could learn what padding costs.

    Raises:
        NoWrk: it is not there, or did not run.
    """
    version()
    if len(bodies) > 1:
        bodies = random.Random(1).sample([*bodies] * SHUFFLED, len(bodies) * SHUFFLED)
    with tempfile.NamedTemporaryFile("w", suffix=".lua") as program:
        program.write(_SCRIPT.format(names=", ".join(json.dumps(str(body)) for body in bodies)))
        program.flush()
        command = ["wrk", "-t1", f"-c{connections}", f"-d{max(1, round(seconds))}s", f"--timeout={TIMEOUT}s"]
        done = subprocess.run([*command, "-s", program.name, url], capture_output=True, text=True)
    if done.returncode:
        raise NoWrk(f"wrk ended with exit code {done.returncode}:\n{done.stdout}{done.stderr}")
    return parse(done.stdout)
