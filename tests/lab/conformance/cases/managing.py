"""Scaling, describing, listing, versions, and unregistering."""

from tests.lab.conformance.case import Case, Group, ask, case, manage


def scales(name: str, query: str) -> Case:
    back = manage("PUT", "/models/entry?min_worker=1&synchronous=true")
    return case(name, manage("PUT", f"/models/entry?{query}"), back, uses="entry")


def asks(name: str, method: str, target: str, uses: str = "entry") -> Case:
    return case(name, manage(method, target), uses=uses)


SCALING = Group(
    "scaling",
    "Scaling and describing",
    (
        scales("up, synchronously", "min_worker=2&synchronous=true"),
        scales("to the same number", "min_worker=1&synchronous=true"),
        scales("asynchronously", "min_worker=1"),
        scales("a maximum of its own", "min_worker=1&max_worker=3&synchronous=true"),
        scales("a maximum below the minimum", "min_worker=2&max_worker=1"),
        scales("a minimum of -1", "min_worker=-1&synchronous=true"),
        scales("a minimum that is no number", "min_worker=some&synchronous=true"),
        scales("nothing said", "synchronous=true"),
        scales("parameters that are not known", "min_worker=1&synchronous=true&number_gpu=3&timeout=2&x=y"),
        case(
            "to none, and back",
            manage("PUT", "/models/entry?min_worker=0&synchronous=true"),
            ask("/predictions/entry"),
            manage("GET", "/models/entry"),
            manage("PUT", "/models/entry?min_worker=1&synchronous=true"),
            ask("/predictions/entry"),
            uses="entry",
        ),
        asks("a version", "PUT", "/models/entry/1.0?min_worker=1&synchronous=true"),
        asks("a version by parameter", "PUT", "/models/entry?model_version=1.0&min_worker=1&synchronous=true"),
        asks("an unknown version", "PUT", "/models/entry/9.9?min_worker=1"),
        asks("an unknown version by parameter", "PUT", "/models/entry?model_version=9.9&min_worker=1"),
        asks("an unknown model", "PUT", "/models/nobody?min_worker=1"),
        asks("describe a model", "GET", "/models/entry"),
        asks("describe a version", "GET", "/models/entry/1.0"),
        asks("describe all versions", "GET", "/models/entry/all"),
        asks("describe an unknown model", "GET", "/models/nobody"),
        asks("describe an unknown version", "GET", "/models/entry/9.9"),
        asks("describe all of an unknown model", "GET", "/models/nobody/all"),
        asks("describe with model-config.yaml", "GET", "/models/fails", uses="fails"),
        asks("describe, customized=false", "GET", "/models/entry?customized=false"),
        asks("describe, customized, of an unknown model", "GET", "/models/nobody?customized=true"),
        asks("KServe: whether a model is ready", "GET", "/v1/models/entry"),
        asks("KServe: whether an unknown model is ready", "GET", "/v1/models/nobody"),
    ),
    fresh=True,
)  # fmt: skip

LISTING = Group(
    "listing",
    "Listing, versions and unregistering",
    (
        asks("an empty list", "GET", "/models", uses=""),
        case(
            "models by name",
            manage("POST", "/models?url=shows.mar"),
            manage("POST", "/models?url=entry.mar"),
            manage("POST", "/models?url=results.mar"),
            manage("GET", "/models"),
        ),
        asks("a page", "GET", "/models?limit=2", uses=""),
        asks("the next page", "GET", "/models?limit=2&next_page_token=2", uses=""),
        asks("a page that ends at the last model", "GET", "/models?limit=3", uses=""),
        asks("a page after the last model", "GET", "/models?next_page_token=7", uses=""),
        asks("a page of none", "GET", "/models?limit=0", uses=""),
        asks("a limit that is too large", "GET", "/models?limit=101", uses=""),
        asks("a limit below zero", "GET", "/models?limit=-2", uses=""),
        asks("a limit that is no number", "GET", "/models?limit=few", uses=""),
        asks("a token below zero", "GET", "/models?next_page_token=-3", uses=""),
        asks("a token that is no number", "GET", "/models?next_page_token=next", uses=""),
        case(
            "two versions: the first stays the default",
            manage("POST", "/models?url=v1.mar&initial_workers=1"),
            manage("POST", "/models?url=v2.mar&initial_workers=1"),
            manage("GET", "/models/versions"),
            manage("GET", "/models/versions/all"),
            ask("/predictions/versions", b"x"),
            ask("/predictions/versions/2.0", b"x"),
        ),
        asks("an unknown version cannot be the default", "PUT", "/models/versions/9.9/set-default", uses=""),
        asks("an unknown model has no default", "PUT", "/models/nobody/1.0/set-default", uses=""),
        asks("set-default by GET", "GET", "/models/versions/2.0/set-default", uses=""),
        case(
            "another version becomes the default",
            manage("PUT", "/models/versions/2.0/set-default"),
            manage("GET", "/models/versions"),
            ask("/predictions/versions", b"x"),
            ask("/predictions/versions/1.0", b"x"),
            manage("GET", "/models"),
        ),
        asks("the default version cannot be unregistered while others stay", "DELETE", "/models/versions/2.0", uses=""),
        asks("nor by the model's name alone", "DELETE", "/models/versions", uses=""),
        asks("unregister an unknown version", "DELETE", "/models/versions/9.9", uses=""),
        asks("unregister an unknown model", "DELETE", "/models/nobody", uses=""),
        case(
            "unregister a version",
            manage("DELETE", "/models/versions/1.0"),
            ask("/predictions/versions/1.0", b"x"),
            ask("/predictions/versions", b"x"),
        ),
        case(
            "unregister the last version",
            manage("DELETE", "/models/versions/2.0"),
            ask("/predictions/versions", b"x"),
            manage("GET", "/models/versions"),
        ),
        case(
            "register again after unregistering",
            manage("POST", "/models?url=v2.mar&initial_workers=1"),
            ask("/predictions/versions", b"x"),
            manage("DELETE", "/models/versions"),
        ),
    ),
    fresh=True,
)
