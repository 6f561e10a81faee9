"""Checks a manifest by the schema of its resource, unknown fields forbidden: a program apart.

python validate.py FILE [CRD …]

A resource that one of the files of CustomResourceDefinitions defines is checked by that; any other by the schemas of
Kubernetes itself, as kubernetes-validate has them. Prints a line for each document; the exit code is 1 if one is wrong,
3 if there is no schema for one.
"""

import sys
from pathlib import Path
from typing import Any

import jsonschema
import kubernetes_validate
import yaml

_ANY = "x-kubernetes-preserve-unknown-fields"
_TEXT_OR_NUMBER = "x-kubernetes-int-or-string"


def closed(schema: Any) -> Any:
    """Return a schema of a CustomResourceDefinition as JSON Schema, in which no unknown member is allowed."""
    if isinstance(schema, list):
        return [closed(each) for each in schema]
    if not isinstance(schema, dict):
        return schema
    if schema.get(_TEXT_OR_NUMBER):
        return {"type": ["integer", "string"]}
    made = {name: closed(each) for name, each in schema.items() if name not in ("properties", "default", "example")}
    if "properties" in schema:
        made["properties"] = {name: closed(each) for name, each in schema["properties"].items()}
        if not schema.get(_ANY) and "additionalProperties" not in schema:
            made["additionalProperties"] = False
    return made


def schemas(paths: list[str]) -> dict[tuple[str, str], Any]:
    """Return the schemas of files: apiVersion and kind → schema."""
    found = {}
    for path in paths:
        for document in yaml.safe_load_all(Path(path).read_text()):
            spec = document["spec"]
            for version in spec["versions"]:
                schema = closed(version["schema"]["openAPIV3Schema"])
                schema["properties"]["metadata"] = {"type": "object"}
                found[f"{spec['group']}/{version['name']}", spec["names"]["kind"]] = schema
    return found


def main(file: str, definitions: list[str]) -> int:
    known, status = schemas(definitions), 0
    for document in yaml.safe_load_all(Path(file).read_text()):
        what = (document["apiVersion"], document["kind"])
        try:
            if what in known:
                jsonschema.Draft202012Validator(known[what]).validate(document)
            else:
                newest = kubernetes_validate.latest_version()
                kubernetes_validate.validate(document, newest, strict=True)
        except (jsonschema.ValidationError, kubernetes_validate.ValidationError) as error:
            print(f"{file}: {what[1]}: {'.'.join(map(str, error.path))}: {error.message}")
            status = 1
        except (kubernetes_validate.SchemaNotFoundError, kubernetes_validate.VersionNotSupportedError):
            print(f"{file}: {what[1]}: no schema")
            return 3
        else:
            print(f"{file}: {what[1]}: valid")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
