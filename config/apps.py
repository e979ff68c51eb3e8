from django.apps import AppConfig


class ConfigApp(AppConfig):
    """Registers the checks that refuse to start with wrong settings."""

    name = "config"

    def ready(self) -> None:
        from config import checks  # noqa: F401
