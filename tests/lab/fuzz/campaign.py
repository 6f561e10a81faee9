"""One target under libFuzzer, in a process of its own.

    python -m tests.lab.fuzz.campaign TARGET FOLDER [libFuzzer's flags] [a file, to try just that]

FOLDER/corpus keeps what runs code that nothing else ran, and what breaks a claim is written to FOLDER.
"""

import sys
from pathlib import Path

import atheris

from tests.lab.fuzz.targets import target

_READERS = ["tsctl", "javaproperties", "yaml"]
# At most 4 KiB of input, 10 s and 1 GiB for it: who needs more is a crash, too.
_LIMITS = ["-max_len=4096", "-timeout=10", "-rss_limit_mb=1024"]


def main() -> None:
    name, folder = sys.argv[1], Path(sys.argv[2])
    with atheris.instrument_imports(include=_READERS):
        chosen = target(name)
    corpus, examples, words = folder / "corpus", folder / "examples", folder / "words"
    corpus.mkdir(parents=True, exist_ok=True)
    examples.mkdir(exist_ok=True)
    for number, example in enumerate(chosen.examples):
        (examples / str(number)).write_bytes(example)
    words.write_text("".join(f'"{_escaped(word)}"\n' for word in (b"\0", *chosen.words)))  # an empty file is refused
    flags = [f"-artifact_prefix={folder}/", f"-dict={words}", *_LIMITS, *sys.argv[3:]]
    atheris.Setup([sys.argv[0], str(corpus), str(examples), *flags], chosen.check)
    atheris.Fuzz()


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)


if __name__ == "__main__":
    main()
