"""A sample of each operation of merchants in curl, Python and TypeScript, made of the OpenAPI document."""

import json
import mimetypes
import re
import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from apidocs.components import PARTS, Json
from core.http.responses import CSV, JSON

# What the clients call the operations.
METHODS: dict[str, str] = yaml.load(
    Path(__file__).with_name("client_methods.yaml").read_text(), yaml.CSafeLoader
)
WIDTH = 80
PYTHON = """from thaiqr import {imports}

client = ThaiQR(
    api_key="{key}",
    base_url="{url}",
)
"""
TYPESCRIPT = """import {{ ThaiQR }} from "thai-qr-payments";

const client = new ThaiQR({{
  apiKey: "{key}",
  baseUrl: "{url}",
}});
"""


@dataclass(frozen=True, slots=True)
class _Operation:
    """What a sample needs to know. file: the name under which an answer is saved that is no JSON."""

    name: str
    verb: str
    path: str
    ids: list[str]
    body: Json
    method: str
    is_list: bool
    file: str


def samples(document: Json, *, url: str, key: str) -> dict[str, list[Json]]:
    """The samples of each operation by its id, as `x-codeSamples` of OpenAPI has them."""
    return {
        described["operationId"]: [
            {"lang": language, "label": label, "source": source}
            for language, label, source in _samples(_operation(verb.upper(), path, described), url, key)
        ]
        for path, item in document["paths"].items()
        for verb, described in item.items()
        if "x-scope" in described
    }


def _operation(verb: str, path: str, described: Json) -> _Operation:
    names = re.findall(r"{(\w+)}", path)
    patterns = {name: PARTS["path_parameters"][name].get("pattern", "") for name in names}
    ids = {name: "".join(re.findall(r"^\^([a-z]+_)\[", each)) + "..." for name, each in patterns.items()}
    answers = described["responses"].get("200", {}).get("content", {JSON: {}})
    body = described.get("requestBody", {}).get("content", {}).get(JSON, {}).get("example", {})
    name = described["operationId"]
    return _Operation(
        name=name,
        verb=verb,
        path=path.format(**ids),
        ids=[*ids.values()],
        body=body,
        method=METHODS.get(name.removesuffix("_without_version"), ""),
        is_list=CSV in answers and JSON in answers,
        file="" if JSON in answers else f"answer{mimetypes.guess_extension(next(iter(answers)))}",
    )


def _samples(operation: _Operation, url: str, key: str) -> list[tuple[str, str, str]]:
    found = [("Shell", "curl", _curl(operation, url, key))]
    if operation.method:
        found.append(("Python", "Python", _python(operation, url, key)))
    if operation.method and not operation.file:
        found.append(("JavaScript", "TypeScript", _typescript(operation, url, key)))
    return found


def _curl(operation: _Operation, url: str, key: str) -> str:
    verb = "" if operation.verb == ("POST" if operation.body else "GET") else f"-X {operation.verb} "
    parts = [f"curl -sS {verb}{url}{operation.path}", f'-H "Authorization: Bearer {key}"']
    if operation.verb == "POST":
        parts.append(f'-H "Idempotency-Key: {operation.name}-$(date +%s)"')  # a shop has numbers of orders
    if operation.body:
        parts.append('-H "Content-Type: application/json"')
        parts.append(f"-d {shlex.quote(json.dumps(operation.body, indent=2, ensure_ascii=False))}")
    if operation.file:
        parts.append(f"-o {operation.file}")
    return " \\\n  ".join(parts)


def _python(operation: _Operation, url: str, key: str) -> str:
    fields = [f"{name}={_python_value(name, value)}" for name, value in operation.body.items()]
    arguments = [*map(json.dumps, operation.ids), *fields]
    call = f"client.{operation.method}({', '.join(arguments)})"
    if len(call) > WIDTH:
        call = "\n    ".join([f"client.{operation.method}(", *(f"{each}," for each in arguments)]) + "\n)"
    imports = "Destination, ThaiQR" if "Destination(" in call else "ThaiQR"
    begin = PYTHON.format(imports=imports, key=key, url=url)
    if operation.is_list:
        return f"{begin}for each in {call}:\n    print(each)"
    if operation.file:
        return f'{begin}with open("{operation.file}", "wb") as file:\n    file.write({call})'
    return begin + (call if operation.verb == "DELETE" else f"answer = {call}\nprint(answer)")


def _python_value(name: str, value: Any) -> str:
    """A value of a body. The client has a class for the account of a refund."""
    if name == "destination":
        return f"Destination({', '.join(f'{part}={json.dumps(text)}' for part, text in value.items())})"
    return json.dumps(value, ensure_ascii=False)


def _typescript(operation: _Operation, url: str, key: str) -> str:
    method = re.sub(r"_(\w)", lambda found: found[1].upper(), operation.method)
    body = json.dumps(operation.body, indent=2, ensure_ascii=False)
    fields = [re.sub(r'^( *)"(\w+)": ', r"\1\2: ", body, flags=re.MULTILINE)] if operation.body else []
    call = f"client.{method}({', '.join([*map(json.dumps, operation.ids), *fields])})"
    begin = TYPESCRIPT.format(key=key, url=url)
    if operation.is_list:
        return f"{begin}for await (const each of {call}) console.log(each);"
    answer = f"const answer = await {call};\nconsole.log(answer);"
    return begin + (f"await {call};" if operation.verb == "DELETE" else answer)
