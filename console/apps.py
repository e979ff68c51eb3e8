from django.apps import AppConfig
from django.contrib.admin.apps import AdminConfig


class ConsoleApp(AppConfig):
    name = "console"

    def ready(self) -> None:
        # Models can be imported from now on.
        from console.lists import labels
        from console.people import login_log

        labels.translate()
        login_log.connect()


class ConsoleAdminConfig(AdminConfig):
    """Django's admin with our site in place of its default one."""

    default_site = "console.site.ConsoleSite"
