<?php
/** The connection of this shop to the service: tests address and key, and registers the webhook. */

namespace ThaiQr;

defined( 'ABSPATH' ) || exit;

/** How long the test of the webhook waits for its message. */
const PING_SECONDS = 12;

/** What is known of the connection: `home`, `webhook_id` and `secret`. */
function connection(): array {
	return (array) get_option( 'thaiqr_connection', array() );
}

/** Whether the settings were tested at this address. A copy of the shop at another one must not touch its orders. */
function is_connected(): bool {
	return home_url() === ( connection()['home'] ?? '' );
}

/** Test address and key, and register the webhook. Returns a list of good news and one of bad news, for the staff. */
function connect( string $key ): array {
	$api = Api::of_settings();
	try {
		$hooks = $api->get( '/v1/webhooks', array( 'limit' => 100 ) )['webhooks'];
		keep_cursor( $api );
	} catch ( Api_Error $error ) {
		if ( ! $error->is_open() ) {
			update_option( 'thaiqr_connection', array_diff_key( connection(), array( 'home' => 1 ) ), false );
		}
		return array( array(), array( $error->advice() ) );
	}
	update_option( 'thaiqr_connection', array( 'home' => home_url() ) + connection(), false );
	schedule();
	$is_test = str_starts_with( $key, 'tq_test_' );
	$good    = array( $is_test ? __( 'Address and key are right. This is a test key: no real money moves.', 'thai-qr-payments' ) : __( 'Address and key are right.', 'thai-qr-payments' ) );
	try {
		if ( register_webhook( $api, $hooks ) ) {
			return array( array( ...$good, __( 'The webhook works: a signed message arrived.', 'thai-qr-payments' ) ), array() );
		}
		$bad = __( 'The webhook is registered, but no message arrived yet. Save again in a minute.', 'thai-qr-payments' );
	} catch ( Api_Error $error ) {
		$bad = $error->advice();
	}
	return array( $good, array( $bad . ' ' . __( 'Without webhooks orders are paid too, up to a minute or two later.', 'thai-qr-payments' ) ) );
}

/** Begin the feed at its end: events of before are not of this shop. Also if the key is of another merchant now. */
function keep_cursor( Api $api ): void {
	$events = $api->get( '/v1/events', array( 'limit' => 1 ) )['events'];
	$last   = $events ? $events[0]['sequence'] : 0; // Null while it waits for its place.
	$kept   = get_option( 'thaiqr_cursor' );
	if ( false === $kept || ( null !== $last && (int) $kept > $last ) ) {
		update_option( 'thaiqr_cursor', (int) $last, false );
	}
}

/** Register the webhook, or mend the registered one. Returns whether a signed message arrived. Throws Api_Error. */
function register_webhook( Api $api, array $hooks ): bool {
	$url   = rest_url( 'thaiqr/v1/webhook' );
	$known = current( array_filter( $hooks, fn( $hook ) => $url === $hook['url'] ) );
	if ( ! $known ) {
		// Stored first, because the service sends a signed message before it answers.
		$secret = 'whsec_' . base64_encode( random_bytes( 32 ) ); // phpcs:ignore WordPress.PHP.DiscouragedPHPFunctions
		update_option( 'thaiqr_connection', array( 'secret' => $secret ) + connection(), false );
		$made = $api->post( '/v1/webhooks', array( 'url' => $url, 'events' => TYPES, 'secret' => $secret ), 'woo-' . wp_generate_uuid4() );
		update_option( 'thaiqr_connection', array( 'webhook_id' => $made['webhook_id'] ) + connection(), false );
		return 'verified' === $made['verification'];
	}
	$path = "/v1/webhooks/{$known['webhook_id']}";
	$api->patch( $path, array( 'events' => TYPES, 'status' => 'active' ) );
	$secret = $api->get( "$path/secret" )['secret'];
	update_option( 'thaiqr_connection', array( 'webhook_id' => $known['webhook_id'], 'secret' => $secret ) + connection(), false );
	$before = time();
	$api->post( "$path/test", array(), 'woo-' . wp_generate_uuid4() );
	do {
		usleep( 250_000 );
		wp_cache_delete( 'thaiqr_ping', 'options' );
		$has_arrived = (int) get_option( 'thaiqr_ping' ) >= $before;
	} while ( ! $has_arrived && time() < $before + PING_SECONDS );
	return $has_arrived;
}
