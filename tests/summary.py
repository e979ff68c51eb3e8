"""Pytest plugin: what a run left out for which reason, and which tests failed once and then passed.

`make test` runs what failed once more, with `--unsteady`. A test that is named so is a fault of the test or
of the product: something depends on luck.
"""

from collections import Counter

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--unsteady", action="store_true", help="name what passes: it failed in the run before")


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    stats = terminalreporter.stats
    skipped: list[pytest.TestReport] = stats.get("skipped", [])
    reasons = Counter(str(report.longrepr[2]) for report in skipped if isinstance(report.longrepr, tuple))
    for reason, number in reasons.most_common():
        terminalreporter.line(f"LEFT OUT {number}: {reason.removeprefix('Skipped: ')}", yellow=True)
    if config.getoption("unsteady"):
        for report in stats.get("passed", []):
            terminalreporter.line(f"UNSTEADY {report.nodeid} (its first output is above)", yellow=True)
