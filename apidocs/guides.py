"""The pages of `docs/` that help merchants. The reference page shows them, and each is served as Markdown."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Guide:
    """The title is the first heading of the file."""

    title: str
    summary: str


GUIDES = {
    "integration.md": Guide("Integrate payments", "one section for each task, with commands to run"),
    "webhooks-tutorial.md": Guide(
        "Receive your first webhook in ten minutes", "a receiver in Python, Node.js, PHP or Go"
    ),
    "webhooks.md": Guide("Webhook reference", "events, signatures, retries, secrets, troubleshooting"),
    "errors.md": Guide("Errors", "every code with its message"),
}
EXAMPLES = {f"examples/receiver.{language}" for language in ("go", "mjs", "php", "py")} | {
    "examples/verify.sh"
}
