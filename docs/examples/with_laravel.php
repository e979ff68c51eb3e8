<?php
// A route of Laravel, in one file: verifies webhooks, and ships each order once.
// Put it into your project as routes/api.php, whose routes have no CSRF check: the URL is then /api/hook.
// `services.payments.webhook_secret` is WEBHOOK_SECRET. A migration makes the table:
//     Schema::create('seen_events', fn ($table) => $table->string('event_id', 64)->primary());
declare(strict_types=1);

use Illuminate\Http\Request;
use Illuminate\Http\Response;
use Illuminate\Support\Facades\DB;
use Illuminate\Support\Facades\Log;
use Illuminate\Support\Facades\Route;

Route::post('/hook', function (Request $request): Response {
    // The bytes as they arrived: `$request->all()` is parsed.
    $body = $request->getContent();
    if (!thaiqr_is_genuine($request, $body, (string) config('services.payments.webhook_secret'))) {
        return response('', 400);
    }
    $event = json_decode($body, true, flags: JSON_THROW_ON_ERROR);
    // The event and what it does are one commit: both are stored, or the service sends it again.
    DB::transaction(function () use ($event): void {
        if (DB::table('seen_events')->insertOrIgnore(['event_id' => $event['event_id']]) === 1) {
            thaiqr_handle($event);
        }
    });
    return response()->noContent();
});

/** Change your own tables here. Call nobody: a repeat after an error would call again. */
function thaiqr_handle(array $event): void
{
    if ($event['event'] === 'payment.succeeded') {
        Log::info("ship {$event['data']['reference']}");
    }
}

/** While a secret is renewed there are two signatures. */
function thaiqr_is_genuine(Request $request, string $body, string $secret): bool
{
    // `whsec_` is followed by the key in base64; any other text is the key itself.
    $key = str_starts_with($secret, 'whsec_') ? base64_decode(substr($secret, 6), true) : $secret;
    if ($key === false || $key === '') {
        throw new RuntimeException('The webhook secret is missing or broken.');
    }
    $sentAt = (string) $request->header('webhook-timestamp');
    if (!ctype_digit($sentAt) || abs(time() - (int) $sentAt) > 300) {
        return false;
    }
    $signed = "{$request->header('webhook-id')}.$sentAt.$body";
    $expected = 'v1,' . base64_encode(hash_hmac('sha256', $signed, $key, true));
    foreach (explode(' ', (string) $request->header('webhook-signature')) as $signature) {
        if (hash_equals($expected, $signature)) {
            return true;
        }
    }
    return false;
}
