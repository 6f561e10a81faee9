"""Builds the image of the Dockerfile and runs it, without a registry and without a container runtime's daemon.

python -m tests.deploy.image [--torch WORDS] [--no-compile] [-- FLAG …]; further flags are buildah's.

The base is made of Debian's packages by debootstrap, the image by buildah in chroot isolation, which needs root and
nothing else. The image then serves an archive as user 1000 on a read-only root, in namespaces of its own, answers, is
asked by its own health check, and ends on SIGTERM. All of it is in one folder, which is removed.

The machine's configuration of pip is a secret of the build, and its folders of wheels and certificates are mounted:
the arguments of `python -m tests.lab image-check` name them.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.e2e.container import Container
from tsctl.container.torchserve import STORE
from tsctl.daemon.marfile import Packing, write_archive

ROOT = Path(__file__).parents[2]
TOOLS = ("buildah", "debootstrap", "unshare", "nsenter", "setpriv", "curl", "ip")
SUITE = "bookworm"
PACKAGES = "python3,python3-venv,ca-certificates"
COMPILER = "gcc libc6-dev python3-dev"  # Debian's own Python has its headers in a package
BASE, IMAGE = "localhost/tsctl-base", "localhost/tsctl"
ROOM = 20 * 2**30  # bytes that must be free: vfs copies every layer
ARCHIVE = ROOT / "tests" / "e2e" / "archives" / "doubles.py"


class Builder:
    """buildah with its storage in a folder."""

    def __init__(self, folder: Path) -> None:
        self._storage = [
            "buildah", "--storage-driver", "vfs", "--root", str(folder / "storage"), "--runroot", str(folder / "run"),
        ]  # fmt: skip
        self._environment = os.environ | {"BUILDAH_ISOLATION": "chroot", "TMPDIR": str(folder)}

    def __call__(self, *words: str) -> str:
        """Run a command; return its last line."""
        done = subprocess.run(
            [*self._storage, *words], env=self._environment, stdout=subprocess.PIPE, text=True, check=True
        )
        return done.stdout.strip().rpartition("\n")[2]

    def inspect(self, image: str) -> dict[str, Any]:
        """Return the configuration of an image, with the members of the Open Container Initiative's and Docker's."""
        command = [*self._storage, "inspect", "--type", "image", image]
        done = subprocess.run(command, env=self._environment, capture_output=True, text=True, check=True)
        config: dict[str, Any] = json.loads(done.stdout)["Docker"]["config"]
        return config

    def build(self, *flags: str) -> None:
        subprocess.run(
            [*self._storage, "build", "--layers=false", "--format", "docker", *flags, "--tag", IMAGE, str(ROOT)],
            env=self._environment, check=True, stdout=sys.stderr,
        )  # fmt: skip


def make_base(builder: Builder, folder: Path) -> None:
    """Make the base image of Debian's packages, from the mirror that DEBIAN_MIRROR names, or debootstrap's own."""
    root = folder / "base"
    mirror = [os.environ["DEBIAN_MIRROR"]] if os.environ.get("DEBIAN_MIRROR") else []
    say(f"debootstrap {SUITE}")
    command = ["debootstrap", "--variant=minbase", f"--include={PACKAGES}", SUITE, str(root), *mirror]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    container = builder("from", "scratch")
    builder("add", "--quiet", container, str(root), "/")
    builder("commit", "--quiet", container, BASE)
    builder("rm", container)
    shutil.rmtree(root)


def check(builder: Builder, folder: Path) -> None:
    """Serve an archive with the image.

    Raises:
        AssertionError: the image does otherwise than the guide says.
    """
    store, work = folder / "model-store", folder / "work"
    store.mkdir()
    work.mkdir()
    write_archive(Packing(model_name="doubles", version="1.0", handler=str(ARCHIVE)), store)
    image = builder.inspect(IMAGE)
    container = builder("from", IMAGE)
    root = Path(builder("mount", container))
    running = Container.of_an_image(work, root, image, ["serve", "--models", "ALL"], {STORE: store})
    try:
        running.wait_until_ready()
        body = ["-H", "content-type: application/json", "-d", "[1, 2]"]
        answer = running.run("curl", "-sS", "http://127.0.0.1:8080/predictions/doubles", *body).stdout
        assert json.loads(answer) == [2, 4], answer
        health = running.execute_in(root, image, *image["Healthcheck"]["Test"][1:])
        assert health.returncode == 0, health.stdout + health.stderr
        listed = running.execute_in(root, image, "tsctl", "ls")
        assert "doubles" in listed.stdout, listed.stderr
        version = running.execute_in(root, image, "torchserve", "--version")
        assert version.stdout.startswith("tsctl "), version.stderr
        assert running.stop() == 0, running.output
    except BaseException:
        say(running.output)
        raise
    finally:
        running.kill()
        builder("rm", container)


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", file=sys.stderr, flush=True)


def main(arguments: Sequence[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.deploy.image")
    parser.add_argument("--torch", default="torch torchvision", help="what pip installs first")
    parser.add_argument("--no-compile", action="store_true", help="leave out the C compiler")
    parser.add_argument("flags", nargs="*", help="of `buildah build`, after `--`")
    given = parser.parse_args(arguments)
    missing = [tool for tool in TOOLS if shutil.which(tool) is None]
    if os.getuid() != 0 or missing:
        say(f"not built: {'needs root' if os.getuid() else 'needs ' + ', '.join(missing)}")
        return 1
    folder = Path(tempfile.mkdtemp(prefix="tsctl-image-", dir="/var/tmp"))
    folder.chmod(0o755)
    try:
        if shutil.disk_usage(folder).free < ROOM:
            say(f"not built: {folder} has less than {ROOM >> 30} GiB free")
            return 1
        builder = Builder(folder)
        make_base(builder, folder)
        say("buildah build")
        compiler = [f"--build-arg=COMPILER={COMPILER}", f"--build-arg=COMPILE={0 if given.no_compile else 1}"]
        builder.build(f"--build-arg=BASE={BASE}", f"--build-arg=TORCH={given.torch}", *compiler, *given.flags)
        say("run")
        check(builder, folder)
    finally:
        shutil.rmtree(folder)
    say("the image was built, and serves")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
