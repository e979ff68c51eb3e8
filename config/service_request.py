"""What is different in a request of this service."""

from django.core.handlers.wsgi import WSGIRequest


class ServiceRequest(WSGIRequest):
    """A request whose query and forms are UTF-8, whatever charset it names.

    Django decodes them by that charset, also by those of Python that decode no text, such as `hex`: then it
    answers 500.
    """

    @property
    def encoding(self) -> str:
        return "utf-8"

    @encoding.setter
    def encoding(self, value: str) -> None:
        pass
