"""A browser of staff at the console."""

import re
from html import unescape
from uuid import uuid4

import requests
from django.contrib.admin.utils import quote, unquote

LIST = "/admin/reconciliation/reconciliationexception/"
TOKEN = re.compile('name="csrfmiddlewaretoken" value="([^"]+)"')
WHY = "The customer called and named the order."


class StaffBrowser:
    """A logged-in session with cookies and CSRF tokens."""

    def __init__(self, base_url: str, user: str, password: str) -> None:
        self._base_url = base_url
        self._session = requests.Session()
        self.submit("/admin/login/", {"login": user, "password": password, "next": "/admin/"})

    def read(self, path: str, query: dict[str, str] | None = None) -> str:
        return self._page(self._session.get(self._base_url + path, params=query, timeout=60))

    def submit(self, path: str, filled: dict[str, str]) -> str:
        """Open a page and submit its form; return the next page."""
        token = TOKEN.search(self.read(path))
        assert token, "a page without a form"
        shown = {"csrfmiddlewaretoken": token[1], **filled}
        return self._page(self._session.post(self._base_url + path, shown, timeout=60))

    def waiting(self, search: str = "") -> list[str]:
        """The ids of the open exceptions, the oldest first."""
        page = self.read(LIST, {"q": search, "mode": "test"})
        return [unquote(found) for found in re.findall(f'href="{LIST}([^/"]+)/change/', page)]

    def case(self, subject_id: str) -> str:
        return self.read(f"{LIST}{quote(subject_id)}/change/")

    def decide(self, subject_id: str, slug: str, **filled: str) -> None:
        """Choose an act and confirm it, twice if the console asks again."""
        path = f"{LIST}{quote(subject_id)}/do/{slug}/"
        shown = {"reason": WHY, "token": str(uuid4())} | filled
        page = self.submit(path, shown)
        if 'name="sure"' in page:
            page = self.submit(path, shown | {"sure": "yes"})
        assert 'class="success"' in page, page

    def act(self, path: str, slug: str, row_id: str) -> None:
        """Do an act on a row of this list."""
        page = self.submit(f"{path}{quote(row_id)}/do/{slug}/", {"reason": WHY, "token": str(uuid4())})
        assert 'class="success"' in page, page

    def _page(self, response: requests.Response) -> str:
        assert response.status_code == 200, (response.status_code, response.url)
        return unescape(response.text)
