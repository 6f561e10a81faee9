"""Builds null_cuda.c against the torch that is installed, once for each of its versions."""

import hashlib
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable
from functools import cache
from importlib.util import find_spec
from pathlib import Path

from tests.places import ROOT

SOURCE = Path(__file__).parent / "null_cuda.c"
CACHE = ROOT / ".null-gpu"  # ignored by git
CUDA = "13"  # signatures of its functions change with the first number
LIBRARY = "libnull_cuda.so"
NAMES = ("libcuda.so.1", "libnvidia-ml.so.1")  # under which torch and the daemon load it by themselves
# What torch calls of CUDA, all of which has to be there; what remains is in libraries that are only opened when used.
WANTED = re.compile(r"^(?:__)?(?:cuda|cublas)\w+$|^cu(?!File|dnn|sparse|solver|rand|fft|pti)[A-Z]\w+$")
COMPUTES = re.compile("gemm|gemv|dot|rsm|getr|gels|geqrf", re.IGNORECASE)  # of cuBLAS: its call is a kernel


class Unavailable(RuntimeError):
    """There can be no null card here; the message says why."""


@cache
def folder() -> Path:
    """Return the folder with the library, by all its names; build it if that is not there.

    Raises:
        Unavailable: there is no compiler, or no build of torch for this CUDA.
    """
    libraries, includes = _torch(), _headers()
    compiler, lister = shutil.which("cc"), shutil.which("nm")
    if compiler is None or lister is None:
        raise Unavailable("there is no C compiler (`cc`, and `nm` that comes with it)")
    text = SOURCE.read_text()
    key = hashlib.sha256(text.encode() + Path(__file__).read_bytes())
    for each in (*libraries, Path(compiler)):
        key.update(f"{each} {each.stat().st_size} {each.stat().st_mtime_ns}".encode())
    made = CACHE / key.hexdigest()[:16]
    if not made.is_dir():
        rest = nothings(_undefined(lister, libraries), text)
        _build(compiler, includes, rest, made)
    return made


def nothings(wanted: Iterable[str], text: str) -> str:
    """Return functions that do nothing, for what is wanted and not defined in the text."""
    missing = [name for name in sorted(set(wanted)) if re.search(rf"\b{name}\(", text) is None]
    returned = [(name, "null_launch() != 0" if COMPUTES.search(name) else "0") for name in missing]
    return "int null_launch(void);\n" + "".join(f"int {name}(void) {{ return {value}; }}\n" for name, value in returned)


def _torch() -> list[Path]:
    """Return the libraries that call CUDA."""
    found = find_spec("torch")
    place = None if found is None or found.origin is None else Path(found.origin).parent
    version = (place / "version.py").read_text() if place else ""
    built = re.search(r"^cuda\b.*= '(\d+)\.", version, re.MULTILINE)
    if place is None or built is None:
        raise Unavailable("torch is built without CUDA")
    if built[1] != CUDA:
        raise Unavailable(f"torch is built for CUDA {built[1]}, and null cards are of CUDA {CUDA}")
    libraries = sorted((place / "lib").glob("libtorch*.so")) + sorted((place / "lib").glob("libc10*.so"))
    vision = find_spec("torchvision")
    if vision is not None and vision.origin is not None:
        libraries += sorted(Path(vision.origin).parent.glob("*.so"))
    return libraries


def _headers() -> list[Path]:
    """Return the folders of CUDA's headers, which come with torch's packages, or with CUDA's compiler.

    Those of the runtime may be in one, which is of this CUDA, and what they include in another.
    """
    places = [Path(each, *kind) for each in sys.path for kind in (
        ("nvidia", f"cu{CUDA}", "include"), ("triton", "backends", "nvidia", "include"),
    )]  # fmt: skip
    places.append(Path("/usr/local/cuda/include"))
    runtimes = [place for place in places if _is_ours(place / "cuda_runtime_api.h")]
    included = [place for place in places if (place / "crt" / "host_defines.h").is_file()]
    if not runtimes or not included:
        raise Unavailable(f"there are no headers of CUDA {CUDA}: pip installs them with torch, and with triton")
    return [runtimes[0], included[0]]


def _is_ours(header: Path) -> bool:
    return (
        header.is_file()
        and re.search(rf"^#define CUDART_VERSION +{CUDA}\d{{3}}$", header.read_text(), re.M) is not None
    )


def _undefined(lister: str, libraries: Iterable[Path]) -> set[str]:
    command = [lister, "--dynamic", "--undefined-only", "--format=just-symbols", *map(str, libraries)]
    listed = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {name for name in (line.partition("@")[0] for line in listed.split()) if WANTED.match(name)}


def _build(compiler: str, includes: Iterable[Path], rest: str, made: Path) -> None:
    """Compile into a folder that appears with everything in it: other processes may build it, too."""
    CACHE.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as temporary:
        draft = Path(temporary) / "made"
        draft.mkdir()
        (Path(temporary) / "rest.c").write_text(rest)
        command = [compiler, "-shared", "-fPIC", "-O1", "-w", *(f"-I{place}" for place in includes)]
        done = subprocess.run(
            [*command, str(SOURCE), f"{temporary}/rest.c", "-o", str(draft / LIBRARY)], capture_output=True, text=True
        )
        if done.returncode:
            raise Unavailable(f"null_cuda.c does not compile: {done.stderr.strip()}")
        for name in NAMES:
            (draft / name).symlink_to(LIBRARY)
        try:
            os.rename(draft, made)
        except OSError:
            if not made.is_dir():
                raise
