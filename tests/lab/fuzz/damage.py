"""Examples, damaged: what a campaign does by coverage, hypothesis does here by chance."""

from collections.abc import Sequence

from hypothesis import strategies as st

_MOST = 2048  # bytes


@st.composite
def damaged(draw: st.DrawFn, examples: Sequence[bytes], words: Sequence[bytes]) -> bytes:
    """An example in which some pieces were left out, put in, or put in the place of others."""
    data = draw(st.sampled_from(examples))
    pieces = st.binary(max_size=4) | st.sampled_from([*words, *examples])
    for _ in range(draw(st.integers(0, 4))):
        place = draw(st.integers(0, len(data)))
        left_out = draw(st.integers(0, 8))
        data = data[:place] + draw(pieces) + data[place + left_out :]
    return data[:_MOST]
