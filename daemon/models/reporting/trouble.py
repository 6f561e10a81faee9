"""Which versions are in trouble, and why: what `ls`, `top`, the page and `describe` show first.

failed, crashing          no worker is started again, or one ends after the other
errors                    over 1 % of the last minute's requests count against the version
queue                     more than half of what may wait, in jobs or in bytes
ended                     a worker ended within the minute, and was not told to
"""

MOST_ERRORS = 0.01  # of the requests of the last minute
MOST_QUEUED = 0.5  # of what may wait
RECENT = 60.0  # seconds in which the end of a worker is news
STATES = ("failed", "crashing")


def troubles(
    now: float, state: str, requests: int = 0, errors: int = 0, queued: int = 0, room: int = 0, filled: float = 0.0,
    ended: float | None = None,
) -> list[str]:  # fmt: skip
    """Return the troubles in a few words each, the worst first; empty for a version without any.

    Args:
        state: in a word, as it is shown.
        requests, errors: of the last minute.
        queued, room: jobs that wait, and the most that may.
        filled: the share of the bytes that may wait, from 0.0 on.
        ended: when a worker last ended that was not told to, on the clock of `now`; None if none did.
    """
    found = [state] if state in STATES else []
    if errors > MOST_ERRORS * requests:
        # Requests whose clients have left may count as errors, though nobody was answered.
        share = min(1.0, errors / requests) if requests else 1.0
        found.append(f"{share * 100:.2g} % errors" if share < 0.995 else "100 % errors")
    if queued > MOST_QUEUED * room:
        found.append(f"queue {queued} of {room}")
    elif filled > MOST_QUEUED:
        found.append(f"queue {filled * 100:.0f} % of its bytes")
    if ended is not None and now - ended < RECENT:
        found.append(f"a worker ended {now - ended:.0f} s ago")
    return found
