"""The pages of the guide, in the order of its menu. Each is a Markdown file of `docs/`."""

from dataclasses import dataclass
from pathlib import Path

import yaml
from django.conf import settings

from apidocs.sample_key import PLACEHOLDER

MENU = Path(__file__).with_name("menu.yaml")
FOLDER = Path(settings.BASE_DIR) / "docs"
HOME, THAI = "README", "th/"
SAMPLE_URL = "http://127.0.0.1:8000"  # where `make run` serves


@dataclass(frozen=True, slots=True)
class Page:
    """name: the path of the file in `docs/`, without `.md`. Its first heading is the title of the page.

    The Thai form of a page has the same name in `th/`.
    """

    name: str
    label: str
    summary: str
    language: str = "en"

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.md"

    def read(self, key: str = PLACEHOLDER) -> str:
        """The Markdown, with the address of this instance and a key in its samples."""
        text = self.file.read_text().replace(SAMPLE_URL, settings.BASE_URL)
        return text.replace(f"={PLACEHOLDER}", f"={key}")

    @property
    def url(self) -> str:
        return f"/guide/{self.name}".removesuffix(HOME).rstrip("/")

    @property
    def translated(self) -> "Page | None":
        """The page in the other language, if there is one."""
        is_thai = self.name.startswith(THAI)
        return PAGES.get(self.name.removeprefix(THAI) if is_thai else f"{THAI}{self.name}")


SECTIONS = {
    title: [Page(*page) for page in pages]
    for title, pages in yaml.load(MENU.read_text(), yaml.CSafeLoader).items()
}
PAGES = {page.name: page for pages in SECTIONS.values() for page in pages}
PICTURES = {
    f"pictures/{name}.png"
    for name in ("till", "payment-page", "woocommerce-settings", "woocommerce-code", "woocommerce-order")
}
RECEIVERS = {f"receiver.{language}" for language in ("go", "mjs", "php", "py")}
SHOPS = {"with_django.py", "with_fastapi.py", "with_express.mjs", "with_nextjs.ts", "with_laravel.php"}
PROGRAMS = {f"examples/{name}" for name in RECEIVERS | SHOPS | {"verify.sh"}}


def for_merchants() -> list[Page]:
    """All pages in English but the first and those about running the service."""
    return [page for pages in [*SECTIONS.values()][1:-1] for page in pages if page.language == "en"]
