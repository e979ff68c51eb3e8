#!/bin/sh
# Backups of the Compose file: base backups and WAL in the folder BACKUPS, for a restore to any moment of the last week.
#   backup.sh                now, and each night at 02:30 in Bangkok; the container `backups` runs it
#   backup.sh once           now
#   backup.sh archive P F    stores the WAL file F; PostgreSQL runs it (archive_command)
#   backup.sh restore [T]    puts a base backup into the place of the data, and lets PostgreSQL replay WAL up to the time T
# The files are not encrypted: let the disk of the folder be.
set -eu
BACKUPS=${BACKUPS:-/backups} KEPT=7
STAMP=+%Y%m%dT%H%M%SZ

archive() {
  # After a crash PostgreSQL stores the same file again.
  if test -e "$BACKUPS/wal/$2"; then exec cmp "$1" "$BACKUPS/wal/$2"; fi
  mkdir -p "$BACKUPS/wal"
  cp "$1" "$BACKUPS/wal/$2.part"
  sync "$BACKUPS/wal/$2.part"
  mv "$BACKUPS/wal/$2.part" "$BACKUPS/wal/$2"
}

once() {
  mkdir -p "$BACKUPS/base"
  rm -rf "$BACKUPS/base/part"
  pg_basebackup --pgdata="$BACKUPS/base/part" --checkpoint=fast
  pg_verifybackup --quiet "$BACKUPS/base/part"
  # The name is the earliest moment that it can restore.
  mv "$BACKUPS/base/part" "$BACKUPS/base/$(date -u $STAMP)"
  find "$BACKUPS/base" -mindepth 1 -maxdepth 1 | sort | head -n -$KEPT | xargs -r rm -rf
  oldest=$(find "$BACKUPS/base" -mindepth 1 -maxdepth 1 | sort | head -n 1)
  pg_archivecleanup "$BACKUPS/wal" "$(sed -n 's/^START WAL LOCATION: .*file \(.*\))/\1/p' "$oldest/backup_label")"
}

restore() {
  until=${1:-} newest=$(date -u ${1:+--date="$1"} $STAMP)
  for each in "$BACKUPS"/base/2*; do
    if expr "${each##*/}" "<=" "$newest" > /dev/null; then base=$each; fi
  done
  if test -z "${base:-}"; then echo "No backup is as old as $until." >&2; exit 1; fi
  # The lost data stay beside it, until somebody deletes them.
  if test -e "$PGDATA"; then mv "$PGDATA" "$PGDATA.$(date -u $STAMP)"; fi
  mkdir -p "$(dirname "$PGDATA")"
  cp -a "$base" "$PGDATA"
  printf '%s\n' "restore_command = 'cp $BACKUPS/wal/%f %p'" "recovery_target_time = '$until'" \
    "recovery_target_action = promote" >> "$PGDATA/postgresql.auto.conf"
  : > "$PGDATA/recovery.signal"
  chown --reference="$PGDATA/PG_VERSION" "$PGDATA/recovery.signal"
  echo "Restored from ${base##*/}. Start PostgreSQL now: it replays up to ${until:-the end}."
}

case ${1:-nightly} in
  archive | once | restore) "$@" ;;
  nightly)
    # As a process of its own, because sh ignores failures within a condition. 19:30 UTC is 02:30 in Bangkok.
    while :; do
      "$0" once
      sleep $((($(date -u -d 19:30 +%s) - $(date +%s) + 86400) % 86400))
    done ;;
esac
