"""The pages of the guide, in the order of its menu. Each is a Markdown file of `docs/`."""

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from django.conf import settings

FOLDER = Path(settings.BASE_DIR) / "docs"
HOME = "README"
SAMPLE_URL = "http://127.0.0.1:8000"  # where `make run` serves


@dataclass(frozen=True, slots=True)
class Page:
    """name: the path of the file in `docs/`, without `.md`. Its first heading is the title of the page."""

    name: str
    label: str
    summary: str
    language: str = "en"

    @property
    def file(self) -> Path:
        return FOLDER / f"{self.name}.md"

    def read(self) -> str:
        """The Markdown, with the address of this instance in its samples."""
        return self.file.read_text().replace(SAMPLE_URL, settings.BASE_URL)

    @property
    def url(self) -> str:
        return "/guide" if self.name == HOME else f"/guide/{self.name}"


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    pages: tuple[Page, ...]


SECTIONS = (
    Section(
        "Start",
        (
            Page(HOME, "Overview", "what the service does, and where to begin"),
            Page("start/curl", "curl", "a first payment with curl"),
            Page("start/python", "Python", "a first payment with the Python client"),
            Page("start/typescript", "TypeScript", "a first payment with the TypeScript client"),
            Page("start/php", "PHP", "a first payment with plain PHP"),
            Page("start/go", "Go", "a first payment with plain Go"),
            Page("start/thai", "ภาษาไทย", "a first payment, in Thai", language="th"),
        ),
    ),
    Section(
        "Integrate",
        (
            Page(
                "concepts", "Concepts", "payment, code, event, exception, balance: how they belong together"
            ),
            Page("integration", "Integrate payments", "one section for each task, with commands to run"),
            Page("webhooks-tutorial", "Your first webhook", "a receiver in Python, Node.js, PHP or Go"),
            Page("testing", "Test cards and scenarios", "what the sandbox bank can simulate"),
            Page("payment-page", "Payment page", "the page on which a customer pays a code"),
            Page("claim-page", "Claim page", "the page on which a payer names the account of a refund"),
        ),
    ),
    Section(
        "Recipes",
        (
            Page("recipes/web-shop", "A web shop", "from the order to the delivery, in one file of Python"),
            Page("recipes/till", "A till", "a sale at a counter, and the end of the day"),
            Page("recipes/invoice", "An invoice", "a link that makes a code when it is opened"),
            Page("recipes/line-message", "A LINE message", "a button that opens the payment page"),
        ),
    ),
    Section(
        "Look up",
        (
            Page("webhooks", "Webhook reference", "events, signatures, retries, secrets, troubleshooting"),
            Page("errors", "Errors", "every code with its message"),
            Page("glossary", "Glossary", "the words of this service"),
        ),
    ),
    Section(
        "Run the service",
        (
            Page("banks", "Go live at a bank", "connecting a live merchant to its bank"),
            Page("operations", "Operations", "production, monitoring, and the work of staff"),
            Page("kubernetes", "Kubernetes", "the Helm chart: secrets, values, releases"),
            Page("scale", "Scale", "what one database holds, and how merchants are spread over several"),
            Page("restore", "Backups and restores", "backups, restores, safe mode, the drill"),
            Page("settings", "Settings", "each setting with its default and unit"),
            Page("alerts", "Alerts", "what to do about each alert"),
            Page("staff-tasks", "Daily tasks", "the tasks of staff in the console, step by step"),
            Page("roles", "Staff and roles", "the first member of staff, and who may do what"),
            Page("sign-in", "Logging in", "the two steps of a login, sessions, a lost phone"),
            Page("exports", "Files for the office", "lists for Excel, and the monthly report"),
        ),
    ),
)
PAGES = {page.name: page for section in SECTIONS for page in section.pages}
PROGRAMS = {f"examples/receiver.{language}" for language in ("go", "mjs", "php", "py")} | {
    "examples/verify.sh"
}


def for_merchants() -> Iterator[Page]:
    """All pages but the first and those about running the service."""
    for section in SECTIONS[1:-1]:
        yield from section.pages
