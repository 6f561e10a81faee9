"""The stores of objects: the package that speaks to each, and the digest that each knows of an object."""

import base64
import hashlib
import importlib.util
import os
from collections.abc import Mapping
from typing import Any, NamedTuple


class FetchError(Exception):
    """The object cannot be downloaded; the message names the reason."""


class ObjectStore(NamedTuple):
    """One kind of store.

    Attributes:
        package: that must be installed.
        extra: of tsctl, which brings the package.
        anonymous: options of the filesystem where no credentials are found.
    """

    package: str
    extra: str
    anonymous: Mapping[str, Any]


STORES: Mapping[str, ObjectStore] = {
    "s3": ObjectStore("s3fs", "s3", {"anon": True}),
    "gs": ObjectStore("gcsfs", "gcs", {"token": "anon"}),
    "hf": ObjectStore("huggingface_hub", "hub", {}),
}


class Digest(NamedTuple):
    """A digest that an object must have; `hashed` begins with what is hashed before the content."""

    hashed: Any
    expected: str


def filesystem_of(scheme: str) -> Any:
    """Return fsspec's filesystem of a scheme. Imports the package.

    Raises:
        FetchError: the package is not installed.
    """
    store = STORES[scheme]
    if importlib.util.find_spec(store.package) is None:
        raise FetchError(f"{scheme}:// needs the package {store.package}: pip install 'tsctl[{store.extra}]'")
    if scheme == "hf":
        from huggingface_hub import HfFileSystem

        return HfFileSystem(skip_instance_cache=True)
    options = store.anonymous if not _has_credentials(scheme) else {}
    if scheme == "gs":
        # Not the package's own choice, which asks for a bucket's kind over gRPC first, and needs more rights for it.
        from gcsfs.core import GCSFileSystem

        return GCSFileSystem(skip_instance_cache=True, **options)
    from s3fs import S3FileSystem

    return S3FileSystem(skip_instance_cache=True, **options)


def _has_credentials(scheme: str) -> bool:
    """Return whether the environment, a file or the machine's own service has credentials; public objects need none."""
    if scheme == "s3":
        from botocore.session import get_session

        return get_session().get_credentials() is not None
    if os.environ.get("STORAGE_EMULATOR_HOST"):  # another server of the interface, which knows none of them
        return False
    import google.auth
    from google.auth.exceptions import DefaultCredentialsError

    try:
        google.auth.default()
    except DefaultCredentialsError:
        return False
    return True


def digest_of(scheme: str, filesystem: Any, path: str, details: Mapping[str, Any]) -> Digest | None:
    """Return the digest that the store knows of an object; None if it knows none that can be computed here.

    S3's ETag is the MD5 of an object that was uploaded in one part and is not encrypted with a key of KMS. Hugging
    Face's hub knows the SHA-256 of large files, and of others the SHA-1 that git gives them.
    """
    match scheme:
        case "s3":
            tag = str(details.get("ETag", "")).strip('"')
            if len(tag) != 32 or _is_encrypted(filesystem, path):
                return None
            return Digest(hashlib.md5(usedforsecurity=False), tag)
        case "gs":
            encoded = details.get("md5Hash")
            if not encoded:  # of an object that was composed of others
                return None
            return Digest(hashlib.md5(usedforsecurity=False), base64.b64decode(encoded).hex())
        case _:
            large = details.get("lfs")
            if large is not None:
                return Digest(hashlib.sha256(), large["sha256"])
            blob = details.get("blob_id")
            if not blob:
                return None
            return Digest(hashlib.sha1(b"blob %d\0" % details["size"], usedforsecurity=False), blob)


def _is_encrypted(filesystem: Any, path: str) -> bool:
    """Return whether S3 encrypts an object with a key of KMS or of the client: then its ETag is no MD5."""
    bucket, key, version = filesystem.split_path(path)
    named = {"VersionId": version} if version else {}
    head = filesystem.call_s3("head_object", Bucket=bucket, Key=key, **named)
    return head.get("ServerSideEncryption", "AES256") != "AES256" or "SSECustomerAlgorithm" in head
