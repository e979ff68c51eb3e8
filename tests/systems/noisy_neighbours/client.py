"""`python -m tests.systems.noisy_neighbours.client`: get a balance repeatedly and print the times.

It is a separate process, so that threads of the misbehaving client do not disturb the measurement.
Standard input is JSON: `base_url`, `secret_key`, `requests`. Standard output is a JSON list of seconds.
"""

import json
import sys
import time

import requests

# Without a pause this client would be a load itself.
PAUSE_SECONDS = 0.02


def main() -> None:
    shown = json.load(sys.stdin)
    session = requests.Session()
    session.headers["Authorization"] = f"Bearer {shown['secret_key']}"
    taken = []
    for _ in range(shown["requests"]):
        started = time.perf_counter()
        response = session.get(f"{shown['base_url']}/v1/balance", timeout=60)
        taken.append(time.perf_counter() - started)
        response.raise_for_status()
        time.sleep(PAUSE_SECONDS)
    json.dump(taken, sys.stdout)


if __name__ == "__main__":
    main()
