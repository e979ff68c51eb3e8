"""The samples of the reference: each operation has them, compilers accept them, and who sees the test key."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from django.test import Client

from apidocs.code_samples import METHODS, samples
from tests.clients import openapi, typescript_package
from tests.stack import ROOT

URL, KEY = "https://pay.example.com", "tq_test_abcdefgh_secret"
SAMPLES = samples(openapi.DOCUMENT, url=URL, key=KEY)
LOCAL = {"REMOTE_ADDR": "127.0.0.1", "HTTP_HOST": "127.0.0.1:8000"}


def sources(label: str) -> dict[str, str]:
    return {
        operation: each["source"]
        for operation in SAMPLES
        for each in SAMPLES[operation]
        if each["label"] == label
    }


def test_every_operation_of_merchants_has_samples_in_each_language_that_has_it() -> None:
    operations = openapi.merchant_operations().keys()
    assert {name for name in sources("curl") if not name.endswith("_without_version")} == operations
    assert sources("Python").keys() - {"create_qr_code_without_version"} == METHODS.keys()
    files = {"get_qr_code_card", "get_payment_link_picture"}
    assert sources("TypeScript").keys() == sources("Python").keys() - files


def test_samples_have_the_address_the_key_and_the_example_of_the_document() -> None:
    for each in (each for found in SAMPLES.values() for each in found):
        assert URL in each["source"] and KEY in each["source"]
    body = re.findall(r"-d '(.+)'", sources("curl")["create_refund"], re.DOTALL)[0]
    described = openapi.DOCUMENT["paths"]["/v1/refunds"]["post"]["requestBody"]["content"]
    assert json.loads(body) == described["application/json"]["example"]


@pytest.mark.slow
def test_python_samples_have_no_errors_of_types(tmp_path: Path) -> None:
    for operation, source in sources("Python").items():
        (tmp_path / f"{operation}.py").write_text(f"{source}\n")
    options = ["--strict", "--config-file=", "--no-error-summary", f"--cache-dir={tmp_path / 'cache'}"]
    done = subprocess.run(
        [sys.executable, "-m", "mypy", *options, *sorted(tmp_path.glob("*.py"))],
        env={**os.environ, "MYPYPATH": str(ROOT / "clients" / "python" / "src")},
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stdout) == (0, "")


@pytest.mark.slow
def test_typescript_samples_compile_strictly() -> None:
    names = [f"{operation}.sample.ts" for operation in sources("TypeScript")]
    for name, source in zip(names, sources("TypeScript").values(), strict=True):
        (typescript_package.project() / name).write_text(source)
    typescript_package.compile_programs("--noEmit", *names)


def shown_key(client: Client, **headers: str) -> str:
    text = client.get("/docs/samples.json", **{**LOCAL, **headers}).content.decode()  # type: ignore[arg-type]
    (key,) = set(re.findall(r"tq_(?:test|live)_[\w.]+", text)) - {"tq_test_visa"}
    return str(key)


@pytest.mark.slow
def test_person_on_the_machine_of_make_run_sees_its_test_key(client: Client, settings: Any) -> None:
    assert shown_key(client) == "tq_test_..."
    settings.SAMPLE_KEY = KEY
    for host in ("127.0.0.1:8000", "localhost", "[::1]:8000"):
        assert shown_key(client, HTTP_HOST=host) == KEY
    assert shown_key(client, REMOTE_ADDR="::1") == KEY


@pytest.mark.slow
@pytest.mark.parametrize(
    "headers",
    [
        {"REMOTE_ADDR": "192.0.2.7"},
        {"HTTP_HOST": "rebound.example"},
        {"HTTP_HOST": "127.0.0.1.rebound.example"},
        {"HTTP_X_FORWARDED_FOR": "203.0.113.9"},
    ],
)
def test_stranger_sees_no_key(client: Client, settings: Any, headers: dict[str, str]) -> None:
    settings.SAMPLE_KEY = KEY
    assert shown_key(client, **headers) == "tq_test_..."


@pytest.mark.slow
def test_live_key_is_never_shown(client: Client, settings: Any) -> None:
    settings.SAMPLE_KEY = "tq_live_abcdefgh_secret"
    assert shown_key(client) == "tq_test_..."


@pytest.mark.slow
def test_samples_are_kept_by_no_cache(client: Client) -> None:
    assert client.get("/docs/samples.json")["Cache-Control"] == "no-store"
