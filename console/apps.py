from django.apps import AppConfig


class ConsoleApp(AppConfig):
    name = "console"

    def ready(self) -> None:
        from console import login_log

        login_log.connect()
