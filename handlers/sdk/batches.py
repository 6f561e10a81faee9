"""The batches that a model's file takes, as its first dimension was exported."""

from typing import NamedTuple


class FileBatches(NamedTuple):
    """How many rows a model takes at a time.

    Attributes:
        least: fewer are padded, and the answers of the padding dropped; at least 1.
        most: more run one part after the other; 0 for any number.
    """

    least: int = 1
    most: int = 0

    def note(self, file: str) -> str:
        """Return the sentence for the model's author; empty if any batch is taken."""
        if not self.most:
            return f"`{file}` takes batches of at least {self.least}: smaller ones are padded" if self.least > 1 else ""
        how = "exactly" if self.least == self.most else "at most"
        padded = ", and smaller ones are padded" if self.least > 1 else ""
        return (
            f"`{file}` takes batches of {how} {self.most}, as it was exported: no larger ones are made{padded}. Export"
            " it with a dynamic first dimension for others"
        )


ANY = FileBatches()
