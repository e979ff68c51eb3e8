"""The application that `config.server` runs."""

import os

import django

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "config.settings")
django.setup(set_prefix=False)

from config.handler import ServiceHandler  # noqa: E402 (needs the applications loaded)

application = ServiceHandler()

from config.checks import refuse_wrong_settings  # noqa: E402 (needs the applications loaded)

refuse_wrong_settings()
