"""The cache of answers at the command line: what `tsctl describe` tells of it."""

from collections.abc import Sequence

from tsctl.extension import CommandLine, Document


class CacheCommandLine(CommandLine):
    def described(self, document: Document, now: float) -> Sequence[tuple[str, str]]:
        del now
        cache = document.get("cache")
        if cache is None:
            return ()
        from tsctl.render import bytes_text

        asked = cache["hits"] + cache["shared"] + cache["misses"]
        share = f", {(cache['hits'] + cache['shared']) / asked:.0%} of {asked} requests" if asked else ""
        kept = f"{bytes_text(cache['bytesKept'])} of {bytes_text(cache['bytes'])}"
        return [("cache", f"{cache['answers']} answers for {cache['seconds']:g} s, {kept}{share}")]


COMMAND_LINE = CacheCommandLine()
