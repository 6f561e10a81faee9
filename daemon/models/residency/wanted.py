"""The number of workers of a version: what an operator wishes, what load asks for, and whether it is in memory."""


def wanted_workers(least: int, most: int, chosen: int, *, resident: bool, on_demand: bool) -> int:
    """Return the number of workers that a version shall have now.

    Args:
        least, most: the operator's range; `most` is 0 for none.
        chosen: the number in force, or chosen by load; counts within the range.
        resident: whether the version is loaded, or is to be (state.py).
        on_demand: whether it is unloaded when idle: then it has a worker while it is loaded, whatever `least` is.
    """
    if not resident or not most:
        return 0
    return min(max(chosen, least, int(on_demand)), most)
