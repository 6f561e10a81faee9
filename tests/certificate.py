"""A certificate for `localhost` and 127.0.0.1, made by the openssl program."""

import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest

needs_openssl = pytest.mark.skipif(shutil.which("openssl") is None, reason="needs the program openssl")


class Certificate(NamedTuple):
    certificate: Path
    key: Path

    @property
    def flags(self) -> tuple[str, ...]:
        """Return the flags with which a daemon speaks TLS."""
        return ("--certificate-file", str(self.certificate), "--private-key-file", str(self.key))


def make_certificate(folder: Path, *, password: str = "", rsa_bits: int = 0) -> Certificate:
    """Make a certificate that signs itself, and its key, as PEM files; the key is elliptic, or RSA of so many bits."""
    made = Certificate(folder / "certificate.pem", folder / "key.pem")
    protection = ["-passout", f"pass:{password}"] if password else ["-nodes"]
    key = [f"rsa:{rsa_bits}"] if rsa_bits else ["ec", "-pkeyopt", "ec_paramgen_curve:prime256v1"]
    subprocess.run(
        [
            "openssl", "req", "-x509", "-newkey", *key, *protection,
            "-days", "2", "-subj", "/CN=localhost", "-addext", "subjectAltName=DNS:localhost,IP:127.0.0.1",
            "-out", made.certificate, "-keyout", made.key,
        ],
        check=True,
        capture_output=True,
    )  # fmt: skip
    return made
