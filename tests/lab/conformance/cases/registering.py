"""Registering, with good and bad parameters, and archives that do not load."""

from tests.lab.conformance.case import Case, Group, ask, case, manage

GONE = manage("DELETE", "/models/entry")
DESCRIBED = manage("GET", "/models/entry")
STARTED = manage("GET", "/models/entry", until='"READY"')


def registers(name: str, query: str, url: str = "entry.mar") -> Case:
    """Register `entry`, look at it, and take it away."""
    return case(name, manage("POST", f"/models?url={url}{query}"), DESCRIBED, GONE)


def refuses(name: str, target: str, document: object = None) -> Case:
    return case(name, manage("POST", target, document), manage("GET", "/models"))


def loads(name: str, archive: str) -> Case:
    """Register with one worker; what was left behind; take it away."""
    return case(
        name,
        manage("POST", f"/models?url={archive}.mar&initial_workers=1"),
        manage("GET", f"/models/{archive}"),
        manage("DELETE", f"/models/{archive}"),
    )


def takes(name: str, archive: str, model: str, query: str = "") -> Case:
    """Register an archive, ask it, and take it away."""
    return case(
        name,
        manage("POST", f"/models?url={archive}&initial_workers=1{query}"),
        ask(f"/predictions/{model}"),
        manage("DELETE", f"/models/{model}"),
    )


ARCHIVES = Group(
    "archives",
    "Archives",
    (
        takes("a gzipped tar", "as_tgz.tar.gz", "as_tgz"),
        takes("a directory", "as_no_archive", "as_no_archive"),
        takes("a zip without compression", "as_zip_store.mar", "as_zip_store"),
        takes("a manifest without a version", "no_version.mar", "no_version"),
        takes("a manifest without a runtime", "no_runtime.mar", "no_runtime"),
        takes("a manifest without a name", "no_name.mar", "no_name"),
        takes("a manifest without a name, and a name given", "no_name.mar", "given", "&model_name=given"),
        takes("a manifest without a model", "no_model.mar", "no_model"),
        takes("a manifest of another runtime", "ruby.mar", "ruby"),
        takes("a manifest without a handler, and a handler given", "no_handler.mar", "no_handler",
              "&handler=entry.py:infer"),
        takes("a handler that is not in the archive", "absent.mar", "absent"),
        takes("no manifest", "no_manifest.mar", "no_manifest"),
        takes("no manifest, and a name and a handler given", "no_manifest.mar", "given",
              "&model_name=given&handler=entry.py:infer"),
        case("a manifest that is no JSON", manage("POST", "/models?url=no_json.mar"), manage("GET", "/models")),
        case("a .mar that is no zip", manage("POST", "/models?url=junk.mar"), manage("GET", "/models")),
        case("a tar that is none", manage("POST", "/models?url=junk.tar.gz"), manage("GET", "/models")),
    ),
    fresh=True,
)  # fmt: skip

GROUP = Group(
    "registering",
    "Registering",
    (
        registers("without workers", ""),
        registers("with a worker", "&initial_workers=1"),
        registers("with two workers", "&initial_workers=2"),
        registers("with no workers at all", "&initial_workers=0"),
        registers("with -1 workers", "&initial_workers=-1"),
        registers("with workers that are no number", "&initial_workers=many"),
        registers("with a batch size and a delay", "&batch_size=4&max_batch_delay=250"),
        registers("with a batch size that is no number", "&batch_size=four"),
        registers("with a delay that is no number", "&max_batch_delay=soon"),
        registers("with a batch size of -1", "&batch_size=-1"),
        registers("with a batch size of 0", "&batch_size=0"),
        registers("with timeouts", "&response_timeout=10&startup_timeout=20"),
        registers("with timeouts that are no numbers", "&response_timeout=long"),
        registers("with a runtime", "&runtime=python3"),
        case(
            "with a synchronous that is neither",
            manage("POST", "/models?url=entry.mar&initial_workers=1&synchronous=perhaps&max_batch_delay=1"),
            STARTED,
            GONE,
        ),
        case(
            "under another name",
            manage("POST", "/models?url=entry.mar&model_name=renamed&initial_workers=1"),
            ask("/predictions/renamed"),
            manage("DELETE", "/models/renamed"),
        ),
        case(
            "with another handler",
            manage("POST", "/models?url=entry.mar&model_name=other&handler=entry:infer&initial_workers=1"),
            ask("/predictions/other"),
            manage("DELETE", "/models/other"),
        ),
        case(
            "by a JSON body",
            manage("POST", "/models", {"url": "entry.mar", "initial_workers": 1, "synchronous": True,
                                       "batch_size": 2, "max_batch_delay": 30}),
            DESCRIBED,
            GONE,
        ),
        case("by a JSON body without a delay", manage("POST", "/models", {"url": "entry.mar"}), DESCRIBED, GONE),
        case(
            "asynchronously",
            manage("POST", "/models?url=entry.mar&initial_workers=1&synchronous=false"),
            STARTED,
            GONE,
        ),
        case("the same version twice", manage("POST", "/models?url=entry.mar"), manage("POST", "/models?url=entry.mar"),
             GONE),
        refuses("without a url", "/models"),
        refuses("with an empty url", "/models?url="),
        refuses("an archive that is not there", "/models?url=nothing.mar"),
        refuses("an archive outside the store", "/models?url=../entry.mar"),
        refuses("an absolute path that is not there", "/models?url=/nothing/there.mar"),
        registers("a scheme that is not known", "", url="s3://bucket/entry.mar"),
        refuses("a remote archive that cannot be fetched", "/models?url=http://127.0.0.1/other.mar"),
        refuses("a file address that is not there", "/models?url=file:///nothing/there.mar"),
        refuses("an unknown runtime", "/models?url=entry.mar&runtime=ruby"),
        case("the runtime LSP", manage("POST", "/models?url=entry.mar&runtime=LSP"), GONE),
        refuses("a JSON body without a url", "/models", {"model_name": "a"}),
        refuses("a JSON body that is a list", "/models", [1]),
        refuses("a workflow", "/workflows?url=a.war"),
        loads("a handler that fails to load", "no_load"),
        loads("a handler that runs out of memory while it loads", "no_memory"),
        loads("a handler whose import fails", "no_import"),
        loads("a handler file without an entry point", "no_class"),
        loads("a handler file with two classes", "two_classes"),
        loads("workers, batch and timeouts from model-config.yaml", "yaml"),
        loads("a model-config.yaml with values of the wrong type", "odd_yaml"),
        loads("a model-config.yaml that is broken", "broken_yaml"),
        case(
            "parameters win over model-config.yaml, but not for workers and timeouts",
            manage("POST", "/models?url=yaml.mar&batch_size=2&max_batch_delay=9&response_timeout=5&initial_workers=3"),
            manage("GET", "/models/yaml"),
            manage("DELETE", "/models/yaml"),
        ),
    ),
    fresh=True,
)  # fmt: skip
