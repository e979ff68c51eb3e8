# What the drill needs beside the commands of the guide.
token() {
  sed -n s/^MONITORING_TOKEN=//p /etc/thai-qr-payments/settings.env
}

# Ask web itself, as Prometheus does.
service() {
  curl -sf "http://127.0.0.1:8000$1" -H "Authorization: Bearer $TOKEN"
}

wait_until_ready() {
  for _ in $(seq 240); do
    if service /readyz > /dev/null; then return; fi
    sleep 0.5
  done
  service /readyz
}

# All processes are ready, and all are of this release.
wait_until_release_runs() {
  for _ in $(seq 240); do
    if service /readyz > /dev/null && test "$(releases)" = "$1"; then return; fi
    sleep 0.5
  done
  service /readyz
  test "$(releases)" = "$1"
}

releases() {
  service /metrics | sed -n 's/^thaiqr_processes{version="\(.*\)"} .*/\1/p'
}

wait_until_file() {
  for _ in $(seq 240); do
    if test -e "$1"; then return; fi
    sleep 0.5
  done
  test -e "$1"
}

# The payments that succeeded, as the database has them.
payments() {
  runuser -u postgres -- psql -At thaiqr -c "SELECT count(*) FROM payments_payment WHERE status = 'succeeded'"
}

wait_until_writable() {
  until runuser -u postgres -- psql -At -c "SELECT pg_is_in_recovery()" 2> /dev/null | grep -q f; do sleep 0.2; done
}

# All that happened until now is in the archive.
archive() {
  runuser -u postgres -- pgbackrest --stanza=thaiqr check > /dev/null
}
