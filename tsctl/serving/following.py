"""The output of a served model, without what is shown already."""


def without_block(lines: list[str], block: str) -> list[str]:
    """Return the lines without the first run of lines that is `block`: a traceback that is shown already."""
    wanted = block.splitlines()
    for start in range(len(lines) - len(wanted) + 1):
        if wanted and lines[start : start + len(wanted)] == wanted:
            return lines[:start] + lines[start + len(wanted) :]
    return lines
