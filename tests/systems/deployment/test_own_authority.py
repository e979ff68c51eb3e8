"""A whole service behind a proxy whose certificate is of the operator's own authority."""

import json
from contextlib import ExitStack
from pathlib import Path

import psycopg
import pytest
import requests

from tests.stack import wait_until
from tests.systems.deployment import proxies
from tests.systems.deployment.installation import Installation

pytestmark = pytest.mark.slow

PROCESSES = (("web",), ("manage", "sandbox_bank"))


def pay(installed: Installation, url: str, authority: Path, key: str) -> str:
    """Pay a new code at the sandbox bank; return the id of its payment."""

    def post(path: str, body: dict[str, object]) -> dict[str, str]:
        headers = {"Authorization": f"Bearer {key}"}
        answer = requests.post(url + path, json=body, headers=headers, verify=str(authority), timeout=60)
        assert answer.status_code == 200, answer.text
        found: dict[str, str] = answer.json()
        return found

    code = post("/v1/qr-codes", {"amount": 10_000, "currency": "THB"})
    post("/sandbox/v1/payments", {"qr_data": code["qr_data"]})
    return code["payment_id"]


@pytest.mark.parametrize("is_trusted", [True, False])
def test_callback_of_a_test_payment_arrives_if_the_authority_is_in_ca_bundle(
    installed: Installation, tmp_path: Path, is_trusted: bool
) -> None:
    made = installed.run("manage", "create_merchant", "--name", "Larb", "--mode", "test", "--json")
    key = json.loads(made.stdout)["secret_key"]
    authority = tmp_path / "fullchain.pem"
    with ExitStack() as stack:
        url = stack.enter_context(proxies.nginx(tmp_path, installed.port))
        settings = {"BASE_URL": url} | ({"CA_BUNDLE": str(authority)} if is_trusted else {})
        for process in PROCESSES:
            stack.enter_context(installed.running(*process, **settings))
        installed.wait_for("/healthz")
        payment_id = pay(installed, url, authority, key)
        database = stack.enter_context(psycopg.connect(installed.settings["DATABASE_URL"], autocommit=True))

        def callback() -> tuple[int | None, str]:
            found = database.execute(
                "SELECT last_status, last_error FROM sandbox_sandboxcallback ORDER BY id DESC LIMIT 1"
            ).fetchone()
            return found or (None, "")

        wait_until(lambda: callback() != (None, ""), 60)
        assert callback() == ((200, "") if is_trusted else (None, "SSLError"))
        status = requests.get(
            f"{url}/v1/payments/{payment_id}",
            headers={"Authorization": f"Bearer {key}"},
            verify=str(authority),
            timeout=60,
        ).json()["status"]
        assert status == ("succeeded" if is_trusted else "pending")
