"""Check the subjects of commits: `area: Imperative phrase`, under 60 characters, no full stop.

With a file it checks that message (a commit-msg hook), else all commits since the rule began.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

LONGEST = 59
# The commit before the first one that follows the rule.
START = "71341c9f1208cc14adfea78da17fee86f7a45ec4"
SUBJECT = re.compile(r"[a-z][a-z0-9_/]*: (?P<verb>[A-Z][a-z]+)\b.*[^.]")
# Verbs in another form than the imperative. Some imperatives end in "s" or "ed" too.
OTHER_FORMS = re.compile(r".*(?:ed|ing|[^s]s)")
IMPERATIVES = {"Bring", "Embed", "Feed", "Focus", "Need", "Ring", "Seed"}


def complaint(subject: str) -> str:
    """What is wrong with a subject; empty if nothing is."""
    if len(subject) > LONGEST:
        return f"has {len(subject)} characters; {LONGEST} are allowed"
    found = SUBJECT.fullmatch(subject)
    if found is None:
        return "is not `area: Imperative phrase` without a full stop"
    verb = found["verb"]
    if OTHER_FORMS.fullmatch(verb) and verb not in IMPERATIVES:
        return f"begins with {verb}: use the imperative"
    return ""


def subjects(arguments: list[str]) -> Iterator[str]:
    if arguments:
        yield Path(arguments[0]).read_text().partition("\n")[0]
        return
    command = ["git", "log", "--no-merges", "--format=%s", f"{START}..HEAD"]
    found = subprocess.run(command, capture_output=True, text=True, check=False)
    if found.returncode != 0:
        print("Commit subjects are not checked: this checkout has no history.")
    yield from found.stdout.splitlines()


def main() -> int:
    wrong = [(subject, why) for subject in subjects(sys.argv[1:]) if (why := complaint(subject))]
    for subject, why in wrong:
        print(f"Commit subject {subject!r} {why}.")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
