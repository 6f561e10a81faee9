"""A model with a route as lines: its versions with their shares."""

from collections.abc import Sequence

from tsctl.top.columns import Line, Styled, left, right, short, width, within
from tsctl.top.figures import ModelFigures, share_text

_MOST = 5  # versions


def route_lines(models: Sequence[ModelFigures], model: ModelFigures, columns: int) -> list[Line]:
    """Return a title and the versions that the route of a model names, the shown one marked; empty without a route."""
    if "share" not in model.now:
        return []
    versions = [each for each in models if each.key[0] == model.key[0] and (each.now["share"] or each.now["shadow"])]
    if model not in versions:
        versions.append(model)
    name = max(width("VERSION"), *(width(each.key[1]) for each in versions))
    lines: list[Line] = [[Styled(f"  {left('VERSION', name)}   SHARE  REQ/S  ERR/S  P50 ms  P99 ms", "bold")]]
    for each in versions[:_MOST]:
        numbers = [(short(each.per_second), 5), (short(each.errors), 5), (short(each.p50), 6), (short(each.p99), 6)]
        texts = [right(share_text(each.now), 6), *(right(text, room) for text, room in numbers)]
        mark = ">" if each is model else " "
        lines.append([Styled(f"{mark} {left(each.key[1], name)}  {'  '.join(texts)}", "red" if each.errors else "")])
    return [within(line, columns) for line in lines]
