from django.apps import AppConfig


class RequestLogApp(AppConfig):
    name = "request_log"

    def ready(self) -> None:
        from core.http import middleware
        from request_log import recorder

        middleware.LISTENERS[:] = [recorder.RECORDER.record]
