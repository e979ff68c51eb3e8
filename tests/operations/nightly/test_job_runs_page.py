"""The page of the nightly jobs: the newest run of each, how it ended, and all runs by result."""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest
from django.contrib.auth.models import Permission, User
from django.test import Client

from operations.models import JobRun, NightlyJob

pytestmark = [pytest.mark.slow, pytest.mark.django_db]
PAGE = "/admin/operations/jobrun/"


@pytest.fixture(autouse=True)
def job_runs(noon: datetime) -> None:
    """The audit found differences only in the first of two nights, and the erasure failed."""
    ended = {"ended_at": noon, "seconds": 12.34}
    yesterday, today = noon - timedelta(days=1), noon
    JobRun.objects.bulk_create([
        JobRun(job=NightlyJob.AUDIT, day=yesterday, started_at=yesterday, differences=3, **ended),
        JobRun(job=NightlyJob.AUDIT, day=today, started_at=today, differences=0, **ended),
        JobRun(job=NightlyJob.RECONCILE, started_at=yesterday, differences=2, **ended),
        JobRun(job=NightlyJob.IMPORT_STATEMENTS, day=today, started_at=today),
        JobRun(job=NightlyJob.ANONYMISE, day=today, started_at=today, error="OperationalError", **ended),
    ])  # fmt: skip


@pytest.fixture
def support() -> Iterator[Client]:
    person = User.objects.create_user("malee", is_staff=True)
    person.user_permissions.set(Permission.objects.filter(codename="view_jobrun"))
    client = Client()
    client.force_login(person)
    yield client


def shown(client: Client, query: str = "") -> list[tuple[str, str]]:
    """The job and the result of each row."""
    page = client.get(PAGE + query).content.decode()
    jobs = re.findall(r"field-job[^>]*>(?:<a[^>]*>)?([^<]+)<", page)
    results = re.findall(r"field-result[^>]*><span[^>]*>([^<]+)<", page)
    return sorted(zip(jobs, results, strict=True))


def test_page_shows_the_newest_run_of_each_job(support: Client) -> None:
    assert shown(support) == [
        ("Audit of the books", "Completed"),
        ("Comparison with the banks", "Differences found"),
        ("Erasure of personal data", "Failed"),
        ("Import of statements", "Not ended"),
    ]
    page = support.get(PAGE).content.decode()
    assert "12.3 s" in page
    assert "OperationalError" in page
    assert "A command" in page


def test_all_runs_are_found_by_job_and_result(support: Client) -> None:
    assert len(shown(support, "?runs=all")) == 5
    assert shown(support, "?runs=all&job__exact=audit&result=differences") == [
        ("Audit of the books", "Differences found")
    ]
    for result, job in [("failed", "Erasure of personal data"), ("not_ended", "Import of statements")]:
        assert [name for name, _result in shown(support, f"?runs=all&result={result}")] == [job]
    assert [name for name, _result in shown(support, "?result=completed")] == ["Audit of the books"]
    assert len(shown(support, "?runs=none&result=none")) == 4


def test_page_is_in_thai_too(support: Client) -> None:
    support.cookies["django_language"] = "th"
    assert ("ตรวจสอบบัญชี", "เสร็จสิ้น") in shown(support)


def test_nobody_changes_a_run(admin_client: Client) -> None:
    run = JobRun.objects.latest("pk")
    assert admin_client.get(f"{PAGE}{run.pk}/change/").status_code == 200
    for path in (f"{PAGE}add/", f"{PAGE}{run.pk}/delete/"):
        assert admin_client.get(path).status_code == 403
    assert admin_client.post(f"{PAGE}{run.pk}/change/", {"error": ""}).status_code == 403
