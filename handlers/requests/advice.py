"""Advice in an error, for a body that did not reach the handler: `curl -d TEXT` sends a form."""

from tsctl.handlers import wire

_FORM = "application/x-www-form-urlencoded"


def advice_for(row: wire.Row) -> str:
    """Return a sentence on how to send the body, after a full stop; empty unless the body was a form without fields."""
    if any(len(value) for _, _, value in row.params):
        return ""
    if not any(name.lower() == "content-type" and value.lower().startswith(_FORM) for name, value in row.headers):
        return ""
    return (
        ". The body came as a form without a field, which is how `curl -d` sends it: add"
        " -H 'Content-Type: text/plain' or -H 'Content-Type: application/json', or send it with -T FILE."
    )
