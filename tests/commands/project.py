"""What `manage.py` does before its command: read the settings and import the modules of this project."""

import gc

import django
from django.core.management import get_commands, load_command_class

from config import management
from config.devstack.environment import load_env_file


def set_up() -> None:
    load_env_file()
    management.set_defaults()
    django.setup()
    for name, app in get_commands().items():
        if isinstance(app, str) and not app.startswith("django."):
            load_command_class(app, name)
    gc.freeze()  # the copies share this memory
