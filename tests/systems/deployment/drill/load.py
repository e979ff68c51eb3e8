"""Creates codes and reads their payments until SIGTERM. Prints how many requests had which result."""

import signal
import sys
import threading
from collections import Counter

import requests

URL, AUTHORITIES = "https://pay.example.com", "/etc/ssl/certs/ca-certificates.crt"
CLIENTS, SECONDS_BETWEEN = 3, 0.05
is_over = threading.Event()
results: Counter[str] = Counter()


def run() -> None:
    while not is_over.wait(SECONDS_BETWEEN):
        code = send("POST", "/v1/qr-codes", json={"amount": 10_000, "currency": "THB"})
        send("GET", f"/v1/payments/{code.get('payment_id')}")


def send(method: str, path: str, **options: object) -> dict[str, str]:
    options |= {"headers": {"Authorization": f"Bearer {sys.argv[1]}"}, "verify": AUTHORITIES, "timeout": 90}
    try:
        answer = requests.request(method, URL + path, **options)  # type: ignore[arg-type]
    except requests.RequestException as error:
        results[type(error).__name__] += 1
        return {}
    results[str(answer.status_code)] += 1
    found: dict[str, str] = answer.json() if answer.ok else {}
    return found


if __name__ == "__main__":
    signal.signal(signal.SIGTERM, lambda *_: is_over.set())
    threads = [threading.Thread(target=run) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    sys.stdout.write(", ".join(f"{count} times {name}" for name, count in results.items()) + "\n")
    sys.exit(set(results) != {"200"})
