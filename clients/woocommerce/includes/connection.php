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

/**
 * Test address and key, and register the webhook. Stores what it found.
 * @return array{0: list<string>, 1: list<string>} Good news and bad news, for the staff of the shop.
 */
function connect( string $key ): array {
	$api = Api::of_settings();
	try {
		$hooks = $api->get( '/v1/webhooks', array( 'limit' => 100 ) )['webhooks'];
		keep_cursor( $api );
	} catch ( Api_Error $error ) {
		update_option( 'thaiqr_connection', array_diff_key( connection(), array( 'home' => 1 ) ), false );
		return array( array(), array( $error->advice() ) );
	}
	update_option( 'thaiqr_connection', array( 'home' => home_url() ) + connection(), false );
	as_schedule_recurring_action( time(), FOLLOW_SECONDS, FOLLOW, array(), 'thai-qr-payments', true );
	$good = array(
		str_starts_with( $key, 'tq_test_' )
			? __( 'Address and key are right. This is a test key: no real money moves.', 'thai-qr-payments' )
			: __( 'Address and key are right.', 'thai-qr-payments' ),
	);
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

/**
 * Begin the feed at its end. Events of before are not of this shop. Throws Api_Error if the service refused it
 * or did not answer.
 */
function keep_cursor( Api $api ): void {
	$newest = $api->get( '/v1/events', array( 'limit' => 1 ) )['events'][0] ?? array();
	$merchant_changed = (int) get_option( 'thaiqr_cursor', -1 ) > (int) ( $newest['sequence'] ?? PHP_INT_MAX );
	if ( false === get_option( 'thaiqr_cursor' ) || $merchant_changed ) {
		update_option( 'thaiqr_cursor', (int) ( $newest['sequence'] ?? 0 ), false );
	}
}

/**
 * Register the webhook, or mend the one that is registered. Returns whether a signed message arrived. Throws
 * Api_Error if the service refused it, or cannot reach this shop.
 */
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
