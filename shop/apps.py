from django.apps import AppConfig


class ShopApp(AppConfig):
    name = "shop"

    def ready(self) -> None:
        # Models can be imported from now on.
        from shop import pages  # noqa: F401 (registers the pages)
