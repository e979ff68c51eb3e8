from collections.abc import Iterator

import pytest
from pytest_django import Settings

from tests.webhooks.messages import mail_server
from tests.webhooks.messages.line_double import Line
from tests.webhooks.messages.mail_server import MailServer


@pytest.fixture
def line(settings: Settings) -> Iterator[Line]:
    with Line.running() as double:
        settings.LINE_API_URL = double.base_url
        yield double


@pytest.fixture
def mail(settings: Settings) -> Iterator[MailServer]:
    with mail_server.running() as server:
        settings.EMAIL_BACKEND = "django.core.mail.backends.smtp.EmailBackend"
        settings.EMAIL_HOST, settings.EMAIL_PORT = "127.0.0.1", server.port
        settings.EMAIL_FROM = "pay@operator.example"
        yield server
