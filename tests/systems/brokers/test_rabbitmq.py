"""RabbitMQ as the broker, by TLS: payments, refunds and webhooks by its quorum queues, also when it dies."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import requests
from amqp.exceptions import PreconditionFailed
from kombu import Connection
from kombu.exceptions import OperationalError
from pytest_django import Settings

from config.deployment import rabbitmq as check
from config.deployment.findings import Level
from config.workers import ALL
from core import broker
from core.server_urls import with_authorities
from tests import rabbitmq
from tests.flows.conftest import ShopClient
from tests.rabbitmq import Node
from tests.stack import Stack
from tests.systems.brokers.lives import Lives, wait_for_tasks
from tests.webhook_receiver import Receiver
from tests.webhooks.certificates import Authority

pytestmark = pytest.mark.slow
SECONDS = 2.0


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("authority"))


@pytest.fixture(scope="module")
def node(authority: Authority) -> Iterator[Node]:
    with tempfile.TemporaryDirectory(prefix="rabbitmq-") as folder:
        Path(folder).chmod(0o711)  # RabbitMQ does not run as root
        with rabbitmq.running(Path(folder) / "node", authority.server_file("127.0.0.1")) as found:
            yield found


@pytest.fixture(scope="module")
def stack(tmp_path_factory: pytest.TempPathFactory, node: Node, authority: Authority) -> Iterator[Stack]:
    """It trusts the authority of the node's certificate by CA_BUNDLE."""
    folder = tmp_path_factory.mktemp("carried") / "data"
    settings = {"BROKER_URL": node.tls_url(), "CA_BUNDLE": str(authority.ca_file)}
    with Stack.on_shared_server(folder, **settings) as running:
        yield running


def test_queues_are_quorum_queues_and_no_others_are_made(stack: Stack, node: Node) -> None:
    with Connection(node.url) as connection:
        for queue in ALL.queues:
            channel: Any = connection.channel()
            with pytest.raises(PreconditionFailed, match="x-queue-type"):
                channel.queue_declare(queue, durable=True, auto_delete=False)


def test_metrics_and_check_know_rabbitmq(
    stack: Stack, node: Node, authority: Authority, settings: Settings
) -> None:
    shown = requests.get(f"{stack.base_url}/metrics", timeout=60).text
    assert "thaiqr_broker_up 1.0" in shown
    assert 'thaiqr_queue_length{queue="cards"}' in shown
    url = trusting(node.tls_url(), authority)
    settings.BROKER_URL, settings.BROKER = url, broker.of("", url)
    assert [each.level for each in check.findings()] == [Level.OK, Level.OK]


def test_certificate_of_a_strange_authority_or_for_another_name_is_refused(
    node: Node, authority: Authority, tmp_path: Path
) -> None:
    strange, another_name = Authority(tmp_path), node.tls_url("127.0.0.2")
    for url in (node.tls_url(), trusting(node.tls_url(), strange), trusting(another_name, authority)):
        connection = broker.of("", url).connection(SECONDS)
        with connection, pytest.raises(OperationalError, match="certificate verify failed"):
            connection.ensure_connection(max_retries=1, interval_start=0, interval_step=0)


def trusting(url: str, authority: Authority) -> str:
    """As the settings make it of CA_BUNDLE."""
    return with_authorities(url, str(authority.ca_file))


def test_payments_refunds_and_webhooks_outlive_a_killed_node(
    stack: Stack, node: Node, endpoint: Receiver
) -> None:
    lives = Lives(ShopClient(stack.base_url, stack.secret_key), endpoint)
    with lives.without_end():
        lives.wait_for_more(5)
        node.kill()
        lives.wait_for_more(5)
        node.start()
        wait_for_tasks(stack)
        lives.wait_for_more(5)
    lives.wait_until_all_are_told()
    lives.send_money_out()
