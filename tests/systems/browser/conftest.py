"""The instance and the browser of `tests/browser`."""

from tests.browser.conftest import browser, login_state, logins, page, playwright_driver, shop_client, stack

__all__ = ["browser", "login_state", "logins", "page", "playwright_driver", "shop_client", "stack"]
