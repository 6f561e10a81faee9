"""One model as lines: what it does, its workers, its batches as they form, its last events."""

import time
from collections.abc import Sequence

from tsctl.extension import Styled, extensions
from tsctl.extensions.live.columns import (
    Line,
    ScreenSize,
    clean,
    flowing,
    left,
    middle,
    right,
    short,
    sparkline,
    width,
    within,
)
from tsctl.extensions.live.event_lines import batch_lines, block_rows, event_block
from tsctl.extensions.live.figures import Document, Key, ModelFigures, cards_of, share_text
from tsctl.extensions.live.past_rates import Past
from tsctl.render import best_size_text, number_text, short_bytes, state_style
from tsctl.trouble import STYLE, beside_state

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


_KEYS = "↑↓ next model   Esc back   q quit"
_BATCHES = 5  # rows of batches and their title, before events have room
_LEAST_NAME = 12  # columns of a name beside its state
_EVENTS = 7  # rows of events and their title


def detail(
    past: Past, key: Key, batches: Sequence[Document], events: Sequence[Document], size: ScreenSize, absent: str = ""
) -> list[Line]:
    """Return the lines of the screen, as many as it has rows, none wider than it has columns.

    Args:
        batches, events: the latest ones of the model, the oldest first.
        absent: why the daemon does not answer; empty while it does.
    """
    models = past.figures()
    model = next((each for each in models if each.key == key), None)
    top = _head(past.latest, key, model, size.columns, absent)
    if model is not None and past.latest is not None:
        routed = route_lines(models, model, size.columns)
        routed += [[line] for each in extensions() for line in each.evidence(model.now)]
        about = _about(model, past.pace(key), size.columns, past.latest)
        top += [*about, *routed, *([[]] if routed else [])]
    room = max(0, size.rows - len(top) - 1)
    below = event_block(events, size.columns, block_rows(len(events), room, max(_BATCHES, room - _EVENTS)), named=False)
    middle = batch_lines(batches, size.columns, room - len(below))
    free = max(0, room - len(middle) - len(below))
    lines = [*top, *middle, *([[]] * free), *below, [Styled(_KEYS, "dim")]]
    return [within(line, size.columns) for line in lines][: size.rows]


def _head(latest: Document | None, key: Key, model: ModelFigures | None, columns: int, absent: str) -> list[Line]:
    name = "/".join(key)
    clock = time.strftime("%H:%M:%S", time.localtime(latest["time"])) if latest is not None else ""
    if absent:
        return [[Styled(name, "bold")], [Styled(f"No answer since {clock}: {absent}", "bold red")]]
    if model is None:
        return [[Styled(name, "bold")], [Styled("This version is not registered any more.", "yellow")], []]
    state, told = model.now["state"], beside_state(model.now)
    said = f", {told}" if told else ""
    room = columns - width(f"  {state}{said}")
    name = middle(name, max(_LEAST_NAME, room)).rstrip()
    about = f"{name}  {state}{said}"
    line = [Styled(f"{name}  ", "bold"), Styled(state, state_style(state)), Styled(said, STYLE)]
    if columns > width(about) + len(clock):
        line.append(Styled(right(clock, columns - width(about))))
    return [line]


def _about(model: ModelFigures, pace: Sequence[float], columns: int, latest: Document) -> list[Line]:
    now = model.now
    p50, p99 = ("-" if each is None else f"{number_text(each)} ms" for each in (model.p50, model.p99))
    oldest = f", the oldest for {number_text(now['oldestMs'])} ms" if now["oldestMs"] is not None else ""
    share = share_text(now)
    routed = "" if share == "-" else "gets copies of requests" if share == "shadow" else f"{share} of the requests"
    doing = [
        routed, *(f"{title}: {said}" for each in extensions() for title, said in each.under_way(now)),
        f"{short(model.per_second)} requests/s", f"{short(model.errors)} errors/s", f"p50 {p50}", f"p99 {p99}",
        f"{now['queued']} queued{oldest}", f"{now['running']} running",
    ]  # fmt: skip
    batching = [
        f"batches of {short(model.batch)}, at most {now['batchSize']}", f"delay {now['maxBatchDelay']:g} ms",
        f"policy {now['policy']}", _counts("answers", now["requests"]["codes"]), _counts("refused", now["refused"]),
        _counts("expired", now["expired"]),
    ]  # fmt: skip
    restarting = f", {now['restarting']} restarting" if now["restarting"] else ""
    cpu = f", {short(model.cpu)} CPUs" if model.cpu is not None else ""
    workers = [f"{now['ready']} of {now['wanted']} workers ready{restarting}{cpu}", *cards_of(latest, [model])]
    workers += map(_worker, now["workers"])
    lines = [*flowing(doing, columns, 3), *flowing(batching, columns, 3), *flowing(workers, columns, 2)]
    for text, style in (line for each in extensions() for line in each.state(now, latest["time"])):
        said = flowing(text.split(", "), columns, 3, ", ")
        lines += [[part._replace(style=style) for part in line] for line in said]
    if best := best_size_text(now.get("learned", {})):
        lines.append([Styled(f"best size {best}")])
    if now["lastError"]:
        lines.append([Styled(f"last error: {clean(now['lastError'])}", "red")])
    label = f"requests/s, up to {short(max(pace, default=None))}  "
    return [*lines, [Styled(label), Styled(sparkline(pace, columns - width(label)).lstrip(), "cyan")], []]


def _worker(worker: Document) -> str:
    state = worker["state"].lower().replace("_", " ")
    if not worker["pid"]:
        return f"no process, {state}"
    node = worker.get("node")
    if node:
        return f"{worker['pid']} on {clean(node)} {state}"
    gpus = "".join(
        f" GPU {gpu}{'' if size is None else ' ' + short_bytes(size)}"
        for gpu, size in worker.get("gpuMemory", {}).items()
    )
    return f"{worker['pid']} {state} {short_bytes(worker['memory'])}{gpus}"


def _counts(title: str, counts: Document) -> str:
    return f"{title} {', '.join(f'{name}: {count}' for name, count in counts.items())}" if counts else ""
