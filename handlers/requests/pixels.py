"""How many pixels of the images of a batch are decoded at a time: as many as one may have. Samples of sounds likewise.

A file of 250 kB holds 88 million pixels, which take 350 MB: eight such rows in one batch took 3 GiB. Rows that do not
fit wait until those before them have been answered: the function is called again for them.
"""

from typing import Any, final

from tsctl.handlers.sdk.errors import TooManyPixels, UnreadablePayload

MOST_OF_A_ROW = 4  # times as many as one image: a request may have several, or instances


@final
class Pixels:
    """The pixels of the rows that are decoded together.

    Attributes:
        most: of one image, and of all rows together but for one that is alone; None for any number.
    """

    def __init__(self) -> None:
        self.most: Any = None  # handlers set it in Pillow, also to 1e9, which is a float
        self._kept = self._row = 0

    def begin_batch(self) -> None:
        """Begin with no row."""
        self._kept = self._row = 0

    def begin_row(self) -> None:
        """Begin with the next row; the pixels of the last one do not count if it was not kept."""
        self._row = 0

    def keep(self) -> None:
        """Count the pixels of the row: it is decoded."""
        self._kept += self._row
        self._row = 0

    def admit(self, pixels: int) -> None:
        """Count an image of the next row.

        Raises:
            UnreadablePayload: the row's own images are too many.
            TooManyPixels: it does not fit beside the images of the rows before.
        """
        if self.most is not None and self._row + pixels > MOST_OF_A_ROW * self.most:
            most = int(MOST_OF_A_ROW * self.most)
            raise UnreadablePayload(
                f"the request has {self._row + pixels} pixels or samples up to here, and at most {most} are decoded:"
                " send fewer in each request"
            )
        if self._kept and self.most is not None and self._kept + self._row + pixels > self.most:
            raise TooManyPixels
        self._row += pixels
