"""Each row of TorchServe's tables of errors, and of registering and managing, has a test that can be named."""

import re

import pytest

from tests.lab.conformance.cases import GROUPS
from tests.lab.conformance.environment import ROOT

CASES = {f"{group.name}: {case.name}" for group in GROUPS for case in group.cases}

# Row → cases, as GROUP: NAME, and tests, as FILE::FUNCTION below tests/.
ROWS: dict[str, tuple[str, ...]] = {
    # Errors of predictions.
    "unknown model": ("errors: an unknown model",),
    "unknown version": ("errors: an unknown version",),
    "no workers": ("errors: a model without workers",),
    "queue full": ("together: a queue that is full", "e2e/test_workers.py::test_a_full_queue_refuses_with_retry_after"),
    "no job ticket": ("models/test_settings.py::test_keys_that_mean_nothing_here_are_named",),
    "sequences": ("e2e/test_archives.py::test_a_bad_archive_is_refused_with_a_sentence_and_leaves_nothing",),
    "described without a worker": ("features: customized: a model without workers",),
    "an exception": ("errors: an exception", "errors: an exception without text"),
    "PredictionException": (
        "errors: a PredictionException without a code",
        "errors: a PredictionException with 404",
        "errors: a PredictionException with 413",
    ),
    "out of memory": ("errors: out of memory", "errors: an exception that names CUDA"),
    "no list": (
        "errors: None instead of a list",
        "errors: a dict instead of a list",
        "errors: a tuple instead of a list",
    ),
    "wrong length": ("errors: a list that is too short", "errors: a list that is too long"),
    "not serialisable": ("results: an object cannot be sent",),
    "worker died": ("errors: a worker that leaves", "errors: a worker that is killed"),
    "response timeout": ("errors: a worker that takes longer than the response timeout",),
    "client's deadline": (
        "api/inference/test_routes.py::test_who_was_accepted_is_answered_whatever_time_the_archive_gives_its_clients",
    ),
    "unregistered with jobs queued": ("together: a model that is unregistered while it is asked",),
    "scaled to none with jobs queued": ("together: a model that is scaled to none while it is asked",),
    "unknown route": ("routes: an unknown route",),
    "bad or missing token": ("tokens: a prediction: no token", "tokens: a prediction: a wrong token"),
    "one bad input of a batch": ("together: a batch with an image and with what is none",),
    "large answer": ("errors: an answer of 7 MB",),
    # What a handler may do to its process.
    "prints, forks, closes, ignores": (
        "e2e/test_bad_handlers.py::test_a_handler_that_does_this_answers_and_its_worker_goes_on",
    ),
    "takes its worker away": (
        "e2e/test_bad_handlers.py::test_a_handler_that_takes_its_worker_away_fails_its_request_with_the_reason",
    ),
    # Registering.
    "parameters": (
        "registering: with a batch size and a delay",
        "registering: with timeouts",
        "registering: with a runtime",
        "registering: under another name",
        "registering: with another handler",
        "registering: by a JSON body",
        "registering: by a JSON body without a delay",
        "registering: with a synchronous that is neither",
        "api/management/test_registering.py::test_signing_for_s3_is_refused_and_not_ignored",
    ),
    "parameters that cannot be read": (
        "registering: with workers that are no number",
        "registering: with -1 workers",
        "registering: with a batch size of 0",
        "registering: with timeouts that are no numbers",
    ),
    "0 workers": ("registering: without workers", "registering: with no workers at all"),
    "workers, synchronously": ("registering: with a worker", "registering: with two workers"),
    "workers, asynchronously": ("registering: asynchronously",),
    "206": (
        "api/management/test_scaling_together.py::test_who_registered_is_told_of_workers_that_another_has_asked_for",
        "api/management/test_scaling_together.py::test_who_scaled_is_answered_when_theirs_have_come_up",
    ),
    "start failed": ("registering: a handler that fails to load", "registering: a handler whose import fails"),
    "start failed, out of memory": ("registering: a handler that runs out of memory while it loads",),
    "startup timeout": ("e2e/test_workers.py::test_the_startup_timeout_ends_a_load_that_hangs",),
    "no url": ("registering: without a url", "registering: a JSON body without a url"),
    "empty url": ("registering: with an empty url",),
    "file missing": ("registering: an archive that is not there",),
    "climbs": ("registering: an archive outside the store",),
    "not allowed": ("api/management/test_registering.py::test_no_url_is_allowed_unless_the_operator_says_so",),
    "download failed": ("api/management/test_registering.py::test_a_download_that_fails_says_so",),
    "already in the store": (
        "api/management/test_registering.py::test_a_remote_archive_does_not_care_for_its_namesake_in_the_store",
    ),
    "bad manifest": (
        "archives: a manifest without a model",
        "archives: a manifest without a name",
        "archives: a manifest without a version",
        "archives: a manifest of another runtime",
        "archives: a manifest that is no JSON",
        "archives: no manifest",
    ),
    "unknown runtime": ("registering: an unknown runtime", "registering: the runtime LSP"),
    "same version": ("registering: the same version twice",),
    "pip failed": ("e2e/test_requirements.py::test_what_pip_said_is_told",),
    "no store": ("models/archives/test_store.py::test_a_name_needs_a_store",),
    # Managing.
    "max below min": ("scaling: a maximum below the minimum",),
    "min_worker=-1": ("scaling: a minimum of -1",),
    "scaled": ("scaling: up, synchronously", "scaling: asynchronously", "scaling: to none, and back"),
    "default kept": ("listing: the default version cannot be unregistered while others stay",),
    "408": ("models/test_unregistration.py::test_a_worker_that_cannot_be_ended_is_told",),
}


@pytest.mark.parametrize("row", ROWS)
def test_a_row_has_its_tests(row: str) -> None:
    for name in ROWS[row]:
        file, separator, function = name.partition("::")
        if separator:
            assert re.search(rf"^(?:async )?def {function}\(", (ROOT / "tests" / file).read_text(), re.MULTILINE), name
        else:
            assert name in CASES
