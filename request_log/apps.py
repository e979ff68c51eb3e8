from django.apps import AppConfig


class RequestLogApp(AppConfig):
    name = "request_log"

    def ready(self) -> None:
        from core import finished_requests
        from request_log import recorder

        finished_requests.connect(recorder.RECORDER.record)
