"""Each documented archive: packed by `tsctl archive`, registered on a real daemon, and asked with a sample."""

import re
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.e2e.served import Served
from tests.lab.torchserve.configurations import said
from tests.lab.torchserve.examples.archives import Archive, Found, archives, locate, written
from tests.lab.torchserve.examples.cases import left_out, prepared
from tests.lab.torchserve.examples.libraries import Libraries
from tests.lab.torchserve.examples.table import its_own, request_of, sample_for, unjudged
from tests.lab.torchserve.examples.weights import fill_cache, make
from tests.lab.torchserve.purposes import judge_refusal
from tests.lab.torchserve.verdict import Outcome, Row

PATIENCE = 240.0  # seconds for one command: a model that is compiled takes longest


def judge(root: Path, only: str = "") -> Iterator[Row]:
    """Yield a row for each documented archive whose place or name contains `only`."""
    cases = [archive for archive in archives(root) if only in archive.name]
    if not cases:
        return
    with tempfile.TemporaryDirectory(prefix="ts") as scratch:
        folder = Path(scratch)
        fill_cache(folder / "torch")
        served = Served(folder)
        served.patience = PATIENCE
        libraries = Libraries(folder)
        served.environment |= libraries.variables | {"TORCH_HOME": str(folder / "torch"), "TSCTL_TEMPLATE": "true"}
        # One example's metrics must be declared for the daemon; the others do not mind.
        served.start("--metrics-config", str(root / "examples" / "custom_metrics" / "metrics.yaml"))
        try:
            judged: dict[object, Row] = {}
            for archive in cases:
                found = locate(archive, root)
                recipe = archive.model if prepared(archive.name) else ""
                same = (archive.handler, found, archive.files.get("serialized-file", ""), archive.runtime, recipe)
                if repr(same) not in judged:
                    row = left_out(archive.name, found.missing)
                    judged[repr(same)] = row or _Trial(served, libraries, root, archive, found).row()
                yield judged[repr(same)]._replace(name=archive.name)
        finally:
            served.stop()


class _Trial:
    """One archive on its way: missing weights, packing, registering, asking."""

    def __init__(self, served: Served, libraries: Libraries, root: Path, archive: Archive, found: Found) -> None:
        self.served, self.libraries, self.root = served, libraries, root
        self.archive, self.found = archive, found
        self.prepared = prepared(archive.name)
        self.made = served.folder / "made" / re.sub(r"\W", "_", archive.name)  # the recipe's files

    def row(self) -> Row:
        missing = self._follow_recipe() or self._make_weights()
        if missing:
            return self._unjudged(missing)
        done = self.served.run("archive", *self._options(), patience=PATIENCE)
        if done.returncode:
            return judge_refusal(self.archive.name, said(done.stderr))
        packed = done.stdout.split()[-1] if done.stdout.split() else ""
        if (self.made / "beside").is_dir():
            shutil.copytree(self.made / "beside", self.served.store / Path(packed).name, dirs_exist_ok=True)
        try:
            done = self.served.run("register", str(Path(packed).name), "--workers", "1", patience=PATIENCE)
            if done.returncode:
                return self._failed(done.stderr)
            return self._ask()
        finally:
            self.served.run("unregister", self.archive.model)

    def _follow_recipe(self) -> str:
        """Make the files that the case's recipe knows; return why that is not possible, empty if it was."""
        if self.prepared is None or not self.prepared.recipe:
            return ""
        self.made.mkdir(parents=True)
        weights = Path(self.archive.files.get("serialized-file", "")).name
        recipe, page = self.prepared.recipe, self.archive.page
        missing = self.libraries.follow(recipe, self.made, page, self.archive.model, weights)
        if missing:
            return unjudged(missing) or missing
        for option, text in self.archive.files.items():
            if (path := self.made / Path(text).name).exists():
                self.found.files[option] = path
        extra = [path for text in self.archive.extra if (path := self.made / Path(text).name).exists()]
        lacking = tuple(text for text in self.found.missing if not (self.made / Path(text).name).exists())
        kept = [path for path in self.found.extra if not (self.made / path.name).exists()]
        self.found = self.found._replace(extra=(*kept, *extra), missing=lacking)
        return ""

    def _make_weights(self) -> str:
        """Make the weights that the checkout lacks; return what else is missing, empty if nothing is."""
        weights = self.archive.files.get("serialized-file", "")
        others = [name for name in self.found.missing if name != weights and not self._write_documented(name)]
        if others and self.archive.runtime.startswith("python"):
            return f"`{others[0]}` is not in the checkout"
        if not weights or weights not in self.found.missing or not self.archive.runtime.startswith("python"):
            return ""
        wanted = self.served.folder / Path(weights).name
        model_file = self.found.files.get("model-file")
        if not wanted.exists():
            missing = make(wanted, model_file, Path(self.served.environment["TORCH_HOME"]))
            if missing:
                return unjudged(missing) or missing
        self.found.files["serialized-file"] = wanted
        return ""

    def _write_documented(self, name: str) -> bool:
        """Write a file whose text the page holds; return whether it does."""
        text = written(self.archive.page, name)
        options = [option for option, value in self.archive.files.items() if value == name]
        if text is None or not options:
            return False
        folder = self.served.folder / "written"
        folder.mkdir(exist_ok=True)
        self.found.files[options[0]] = folder / Path(name).name
        self.found.files[options[0]].write_text(text)
        return True

    def _options(self) -> list[str]:
        """Return the documented options, with the places of the files."""
        options = ["--model-name", self.archive.model, "--version", self.archive.version, "-f"]
        options += ["--handler", self.found.handler, "--export-path", str(self.served.store)]
        options += ["--runtime", self.archive.runtime, "--archive-format", self.archive.form]
        for option, path in self.found.files.items():
            options += [f"--{option}", str(path)]
        if self.found.extra:
            options += ["--extra-files", ",".join(map(str, self.found.extra))]
        return options

    def _ask(self) -> Row:
        sample = sample_for(f"{self.archive.handler} {self.archive.files.get('model-file', '')} {self.archive.name}")
        if sample is None:
            return self._unjudged("it loads; the page has no input that the checkout holds")
        body, headers = request_of(sample, self.root)
        answer = self.served.ask(f"/predictions/{self.archive.model}", body, **headers)
        if answer.status == 200:
            answered = f"{len(answer.body)} bytes for {Path(sample.path).name or sample.form}"
            library = self.prepared.library if self.prepared else ""
            if library in self.libraries.stand_ins:
                return Row(self.archive.name, Outcome.STAND_IN, f"`{library}`; {answered}")
            return Row(self.archive.name, Outcome.WORKS, answered)
        return self._failed(answer.body.decode(errors="replace"))

    def _failed(self, text: str) -> Row:
        """Return the row of a case that failed, by its message and the model's log."""
        log = self.served.run("logs", self.archive.model).stdout
        if why := its_own(f"{text}\n{log}"):
            return Row(self.archive.name, Outcome.NEITHER, why)
        if reason := unjudged(f"{text}\n{log}"):
            return self._unjudged(reason)
        return judge_refusal(self.archive.name, said(text))

    def _unjudged(self, why: str) -> Row:
        return Row(self.archive.name, Outcome.UNJUDGED, why)
