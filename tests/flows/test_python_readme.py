"""The snippets in the README of the Python client run, one after the other, as a new user would run them."""

import io
import re
from contextlib import redirect_stdout
from typing import Any

import pytest
from standardwebhooks import Webhook

from tests.flows.conftest import ShopClient
from tests.flows.examples import signed
from tests.stack import ROOT, wait_until
from tests.webhook_receiver import Receiver

README = ROOT / "clients" / "python" / "README.md"
SNIPPETS = re.findall(r"^```python\n(.*?)^```$", README.read_text(), re.DOTALL | re.MULTILINE)
URL = "https://shop.example.com/hook"


@pytest.mark.slow
def test_snippets_of_the_readme_run(
    shop_client: ShopClient, endpoint: Receiver, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("THAIQR_API_KEY", shop_client.secret_key)
    monkeypatch.setenv("THAIQR_BASE_URL", shop_client.base_url)
    names: dict[str, Any] = {}
    printed = io.StringIO()
    # Only a real endpoint can be registered.
    snippets = [each.replace(URL, endpoint.url()) for each in SNIPPETS]
    try:
        with redirect_stdout(printed):
            for snippet in snippets:
                exec(snippet, names)
        assert "succeeded 1,500.00 THB" in printed.getvalue()
        assert "invalid_amount is out of range: 100 to 200000000 satang; received 99" in printed.getvalue()
        check_receiver(names, endpoint)
        wait_for_refund(names)
        shop_client.delete(f"/v1/webhooks/{names['webhook'].webhook_id}")
    finally:
        names["client"].close()


def wait_for_refund(names: dict[str, Any]) -> None:
    """Other tests compare the balance of this merchant, and a pending refund would change it meanwhile."""
    refund_id = names["refund"].refund_id
    wait_until(lambda: bool(names["client"].refunds.get(refund_id).status == "completed"), 60)


def check_receiver(names: dict[str, Any], endpoint: Receiver) -> None:
    """The receiver of the README accepts the message that the service sent, and refuses others."""
    ping = endpoint.wait_for(lambda found: len(found) >= 1)[0]
    Webhook(names["secret"]).verify(ping.body, ping.headers)
    assert names["receive"](ping.body, ping.headers) == 204
    assert names["receive"](ping.body, signed(ping.body)) == 400


def test_readme_has_every_exception() -> None:
    from thaiqr import errors

    exceptions = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and issubclass(kind, Exception)
    }
    assert {name for name in exceptions if f"`{name}`" not in README.read_text()} == set()
