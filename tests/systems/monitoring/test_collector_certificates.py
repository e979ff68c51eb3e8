"""Traces go to a collector behind TLS, if its certificate is trusted."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.stack import ROOT
from tests.webhook_receiver import running_receiver
from tests.webhooks.certificates import Authority

pytestmark = pytest.mark.slow
# A process of its own: exporters last as long as their process.
EXPORT = """
import os
import django
given = dict(os.environ)
django.setup()
from core.observing import telemetry
telemetry.start("web-0")
telemetry.record_event("payment.pending", "evt_1", "pay_1")
telemetry.stop()
assert given.items() <= os.environ.items()
"""


@pytest.mark.parametrize(
    ("trusted", "more", "is_sent"),
    [
        ("own", {"REQUESTS_CA_BUNDLE": "strange"}, True),
        ("strange", {"REQUESTS_CA_BUNDLE": "own"}, False),
        ("strange", {"OTEL_EXPORTER_OTLP_CERTIFICATE": "own"}, True),
    ],
    ids=["authority in CA_BUNDLE", "strange authority", "authority for the collector alone"],
)
def test_traces_go_only_to_a_collector_with_a_trusted_certificate(
    tmp_path: Path, trusted: str, more: dict[str, str], is_sent: bool
) -> None:
    authorities = {name: made_authority(tmp_path / name) for name in ("own", "strange")}
    with running_receiver(tls=authorities["own"].server("127.0.0.1")) as collector:
        variables = {
            "CA_BUNDLE": str(authorities[trusted].ca_file),
            "OTEL_EXPORTER_OTLP_ENDPOINT": collector.url("", scheme="https"),
            "OTEL_EXPORTER_OTLP_TIMEOUT": "1",  # of all tries together
        } | {name: str(authorities[authority].ca_file) for name, authority in more.items()}
        subprocess.run([sys.executable, "-c", EXPORT], cwd=ROOT, env=os.environ | variables, check=True)
        assert bool(collector.to("/v1/traces")) == is_sent


def made_authority(folder: Path) -> Authority:
    folder.mkdir()
    return Authority(folder)
