<?php
/** Locks. A webhook, the feed of events and a customer's browser may ask about one order at the same time. */

namespace ThaiQr;

defined( 'ABSPATH' ) || exit;

/** A process that was killed holds a lock no longer than this. It is longer than two requests to the service. */
const LEASE_SECONDS = 60;
const WAIT_SECONDS  = 8;

/**
 * Run the work while no other process holds the lock. Names of options are unique in the database, which
 * decides. Throws UnderflowException if another process holds it for longer than WAIT_SECONDS.
 */
function with_lock( string $name, callable $work ): mixed {
	global $wpdb;
	$row   = "thaiqr_lock_$name";
	$until = time() + WAIT_SECONDS;
	do {
		$mine = ( time() + LEASE_SECONDS ) . '.' . wp_generate_password( 12, false );
		// A lease that has ended is replaced. Times of ten digits are compared as text.
		$sql = "INSERT INTO $wpdb->options (option_name, option_value, autoload) VALUES (%s, %s, 'off')
			ON DUPLICATE KEY UPDATE option_value = IF(option_value < %s, VALUES(option_value), option_value)";
		// phpcs:ignore WordPress.DB
		if ( $wpdb->query( $wpdb->prepare( $sql, $row, $mine, (string) time() ) ) ) {
			try {
				return $work();
			} finally {
				// phpcs:ignore WordPress.DB
				$wpdb->delete( $wpdb->options, array( 'option_name' => $row, 'option_value' => $mine ) );
			}
		}
		usleep( 50_000 );
	} while ( time() <= $until );
	throw new \UnderflowException( esc_html( "Another process holds the lock $name." ) );
}
