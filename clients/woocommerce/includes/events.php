<?php
/** How this shop hears of what happened: signed webhooks, and the feed of all events for those that were lost. */

namespace ThaiQr;

defined( 'ABSPATH' ) || exit;

const TYPES = array( 'payment.succeeded', 'payment.failed', 'payment.exception', 'payment.exception_resolved', 'refund.completed', 'refund.failed' );
/** How far the clocks may differ, which limits replays. */
const TOLERANCE_SECONDS = 300;
/** The action that reads the feed, each minute. */
const FOLLOW = 'thaiqr_follow';
const PAGE   = 100;
/** An event that fails as often as this is left out. Others wait behind it until then. */
const MOST_FAILURES = 10;

/** Whether the service signed a message (Standard Webhooks). There are two signatures while a secret is renewed. */
function is_genuine( string $secret, string $id, string $sent_at, string $signature, string $body ): bool {
	$key = str_starts_with( $secret, 'whsec_' ) ? base64_decode( substr( $secret, 6 ), true ) : $secret; // phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions
	if ( ! $key || ! ctype_digit( $sent_at ) || abs( time() - (int) $sent_at ) > TOLERANCE_SECONDS ) {
		return false;
	}
	$expected = 'v1,' . base64_encode( hash_hmac( 'sha256', "$id.$sent_at.$body", $key, true ) ); // phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions
	return (bool) array_filter( explode( ' ', $signature ), fn( $each ) => hash_equals( $expected, $each ) );
}

/** Take a message of the service. What could not be applied now is refused, so that it comes again. */
function take_webhook( \WP_REST_Request $request ): \WP_REST_Response {
	$headers = array_map( fn( $name ) => (string) $request->get_header( "webhook-$name" ), array( 'id', 'timestamp', 'signature' ) );
	$secret  = (string) ( connection()['secret'] ?? '' );
	if ( ! is_genuine( $secret, ...array( ...$headers, $request->get_body() ) ) ) {
		return new \WP_REST_Response( array( 'taken' => false ), 400 );
	}
	$event = json_decode( $request->get_body(), true );
	try {
		apply_event( is_array( $event ) ? $event : array() );
	} catch ( Api_Error | \UnderflowException ) {
		return new \WP_REST_Response( array( 'taken' => false ), 503 );
	}
	return new \WP_REST_Response( array( 'taken' => true ), 200 );
}

/** Bring the order of an event up to date. To do this twice, or late, changes nothing. Throws Api_Error. */
function apply_event( array $event ): void {
	$data = $event['data'] ?? array();
	match ( $event['event'] ?? '' ) {
		'payment.succeeded', 'payment.failed' => apply_payment( $data ),
		// Of several decisions about money, the newest counts, so the payment is read.
		'payment.exception', 'payment.exception_resolved' => order_id_of( $data ) && apply_payment( Api::of_settings()->get( "/v1/payments/{$data['payment_id']}" ) ),
		'refund.completed', 'refund.failed' => apply_refund( $data ),
		'webhook.ping' => update_option( 'thaiqr_ping', time(), false ),
		default => null,
	};
}

/** Read the events after the last one that was applied. Messages that were lost are found here. */
function follow(): void {
	if ( ! is_connected() ) {
		return;
	}
	try {
		// Each page takes the lock anew, because a lease is short.
		$pages = 0;
		do {
			$has_more = with_lock( 'feed', __NAMESPACE__ . '\follow_page' );
		} while ( $has_more && ++$pages < 10 );
	} catch ( Api_Error | \UnderflowException ) {
		return; // It begins at the same event a minute later.
	}
}

/** Apply a page of the feed, and keep the place after each event. Returns whether more may follow. */
function follow_page(): bool {
	wp_cache_delete( 'thaiqr_cursor', 'options' );
	$after  = (int) get_option( 'thaiqr_cursor' );
	$events = Api::of_settings()->get( '/v1/events', array( 'after_sequence' => $after, 'limit' => PAGE ) )['events'];
	foreach ( $events as $event ) {
		try {
			apply_event( $event );
		} catch ( Api_Error | \UnderflowException $error ) {
			throw $error;
		} catch ( \Throwable $error ) {
			if ( count_failure( $event ) < MOST_FAILURES ) {
				return false;
			}
			wc_get_logger()->error( "Event {$event['event_id']} is left out: " . get_class( $error ), array( 'source' => 'thai-qr-payments' ) );
		}
		update_option( 'thaiqr_cursor', $event['sequence'], false );
	}
	return PAGE === count( $events );
}

/** How often this event has failed. Another extension may break on its order. */
function count_failure( array $event ): int {
	$stuck = (array) get_option( 'thaiqr_stuck' );
	$times = ( ( $stuck['event_id'] ?? '' ) === $event['event_id'] ? $stuck['times'] : 0 ) + 1;
	update_option( 'thaiqr_stuck', array( 'event_id' => $event['event_id'], 'times' => $times ), false );
	return $times;
}

/** Have the feed read each minute. */
function schedule(): void {
	if ( is_connected() && ! as_has_scheduled_action( FOLLOW ) ) {
		as_schedule_recurring_action( time(), MINUTE_IN_SECONDS, FOLLOW, array(), 'thai-qr-payments', true );
	}
}

add_action( FOLLOW, __NAMESPACE__ . '\follow' );
add_action( 'admin_init', __NAMESPACE__ . '\schedule' );
// The signature decides.
add_action( 'rest_api_init', fn() => register_rest_route( 'thaiqr/v1', '/webhook', array( 'methods' => 'POST', 'callback' => __NAMESPACE__ . '\take_webhook', 'permission_callback' => '__return_true' ) ) );
