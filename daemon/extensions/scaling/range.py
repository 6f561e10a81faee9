"""The range of the rule; `Staffing` combines its choice with the rest (residency/wanted.py)."""


def clamped(chosen: int, least: int, most: int) -> int:
    """Return the number of workers that there should be.

    Args:
        chosen: by the rule, or the number that there is; 0 while none should run, which is never the rule's choice.
        least, most: the operator's range. At least one worker stays also if it begins at 0: without any, requests are
            refused.
    """
    return min(max(chosen, 1, least), most) if chosen else 0
