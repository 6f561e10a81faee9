"""How long the input of a client is discarded after its last answer: while it goes on, and not for ever.

Closing at once would reset the connection, and an uploader would never see the answer (RFC 9112, section 9.6).
"""

LINGER_MOST = 30.0  # seconds that an uploader may take, in all, to read its rejection and stop


class Lingering:
    """The discarding of one connection's input.

    Args:
        now: in seconds, as all times here are.
    """

    def __init__(self, now: float) -> None:
        self._heard = False  # input arrived since the last check
        self.begin(now)

    def begin(self, now: float) -> None:
        """Allow `LINGER_MOST` from now on."""
        self._ends = now + LINGER_MOST

    def hear(self) -> bool:
        """Note that input was discarded; return whether that is the first since the last check."""
        heard, self._heard = self._heard, True
        return not heard

    def check(self, now: float) -> bool:
        """Return whether to go on: input has arrived since the last check, and time is left."""
        heard, self._heard = self._heard, False
        return heard and now < self._ends
