"""A program that downloads one object: `s3://BUCKET/KEY`, `gs://BUCKET/OBJECT`, or `hf://OWNER/REPO[@REVISION]/FILE`.

The daemon starts it for a registration, so that the clients of these stores, and what they import, are never in the
daemon. Credentials and endpoints are those of the daemon's environment, as each client documents them.

    stdin    one line of JSON: url, file, limit (bytes), tag (a file)
    stdout   lines of JSON: {"done": bytes, "total": bytes}, then {"end": ""} or {"end": "what failed"}, with
             "full": errno where the disk, or its user's quota, is full
"""
