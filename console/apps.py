from django.apps import AppConfig


class ConsoleApp(AppConfig):
    name = "console"

    def ready(self) -> None:
        from console import sign_in_log

        sign_in_log.connect()
