<?php
// A shop's webhook endpoint in one file of plain PHP: verifies each notification and logs it.
// WEBHOOK_SECRET=whsec_... php -S 127.0.0.1:9000 docs/examples/receiver.php
declare(strict_types=1);

const TOLERANCE_SECONDS = 300;

/** `whsec_` is followed by the key in base64; any other text is the key itself. */
function key_of(string $secret): string
{
    $key = str_starts_with($secret, 'whsec_') ? base64_decode(substr($secret, 6), true) : $secret;
    if ($key === false || $key === '') {
        throw new InvalidArgumentException('WEBHOOK_SECRET is missing or broken.');
    }
    return $key;
}

/** Verify the raw bytes before anything parses them. While a secret is renewed there are two signatures. */
function is_genuine(string $key, array $headers, string $body): bool
{
    $id = $headers['webhook-id'] ?? '';
    $sent_at = $headers['webhook-timestamp'] ?? '';
    if (!ctype_digit($sent_at) || abs(time() - (int) $sent_at) > TOLERANCE_SECONDS) {
        return false;
    }
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', "$id.$sent_at.$body", $key, true));
    foreach (explode(' ', $headers['webhook-signature'] ?? '') as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}

/** True the first time. Yours is a table in which event_id is unique: store first, answer, and work from there. */
function is_new(array $message): bool
{
    $inbox = sys_get_temp_dir() . '/webhooks';
    @mkdir($inbox, 0700);
    $file = @fopen("$inbox/{$message['event_id']}", 'x'); // x: only if it is not there yet
    return $file !== false && fclose($file);
}

$body = file_get_contents('php://input');
if (!is_genuine(key_of(getenv('WEBHOOK_SECRET') ?: ''), array_change_key_case(getallheaders()), $body)) {
    http_response_code(400);
    error_log('refused');
    return;
}
$message = json_decode($body, true, flags: JSON_THROW_ON_ERROR);
http_response_code(204);
if (is_new($message)) {
    error_log("genuine {$message['event']} " . json_encode($message['data']));
}
