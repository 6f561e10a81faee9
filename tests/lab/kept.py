"""Which unpacked directories a state directory should have, read from its snapshot as JSON."""

import json
from pathlib import Path


def kept_directories(snapshot: Path) -> set[str]:
    """Return the names: of registered versions, and of registered models before their latest changes (`rollback`)."""
    document = json.loads(snapshot.read_bytes())
    registered = {entry["name"] for entry in document["models"]}
    earlier = [entry for each in document["earlier"] if each["name"] in registered for entry in each["versions"]]
    return {entry["unpacked"] for entry in (*document["models"], *earlier) if entry["unpacked"] is not None}
