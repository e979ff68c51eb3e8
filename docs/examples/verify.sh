#!/bin/sh
# Verify one notification with openssl; exits with 0 only if it is genuine.
#
#   WEBHOOK_SECRET=whsec_... sh docs/examples/verify.sh headers.txt < body.json
#
# headers.txt has one header a line ("webhook-id: evt_..."); the body is what came, byte for byte.
# For looking into a single message: while it runs, `ps` shows the key.
set -euf

TOLERANCE_SECONDS=300
: "${WEBHOOK_SECRET:?is not set}"
headers=$1

header() {
  awk -v name="$1" 'tolower($0) ~ "^" name ":" { sub(/^[^:]*:[ \t]*/, ""); sub(/[ \t\r]*$/, ""); print; exit }' "$headers"
}

# `whsec_` is followed by the key in base64; any other text is the key itself.
key_in_hex() {
  case $WEBHOOK_SECRET in
    whsec_*) printf '%s' "${WEBHOOK_SECRET#whsec_}" | openssl base64 -d -A ;;
    *) printf '%s' "$WEBHOOK_SECRET" ;;
  esac | od -An -v -tx1 | tr -d ' \n'
}

# The HMAC-SHA256 of stdin in base64, keyed with $1 in hex.
mac() {
  openssl dgst -sha256 -mac HMAC -macopt "hexkey:$1" -binary | openssl base64 -A
}

refuse() {
  echo "refused: $1" >&2
  exit 1
}

id=$(header webhook-id)
sent_at=$(header webhook-timestamp)
key=$(key_in_hex)
case $sent_at in '' | *[!0-9]* | ????????????*) refuse "webhook-timestamp is missing or no time" ;; esac
[ -n "$key" ] || refuse "WEBHOOK_SECRET is broken"

age=$(($(date +%s) - sent_at))
[ "${age#-}" -le "$TOLERANCE_SECONDS" ] || refuse "it was sent $age seconds ago"

expected=v1,$({ printf '%s.%s.' "$id" "$sent_at" && cat; } | mac "$key")
# Comparing under a key that nobody knows keeps the time it takes from telling anything.
salt=$(openssl rand -hex 32)
wanted=$(printf '%s' "$expected" | mac "$salt")
for signature in $(header webhook-signature); do
  if [ "$(printf '%s' "$signature" | mac "$salt")" = "$wanted" ]; then
    echo "genuine"
    exit 0
  fi
done
refuse "the signature does not match"
