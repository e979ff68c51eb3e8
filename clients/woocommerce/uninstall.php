<?php
/** Forget the key, the secret and the place in the events. Orders keep what is written on them. */

defined( 'WP_UNINSTALL_PLUGIN' ) || exit;

foreach ( array( 'woocommerce_thaiqr_settings', 'thaiqr_connection', 'thaiqr_cursor', 'thaiqr_stuck', 'thaiqr_ping' ) as $thaiqr_option ) {
	delete_option( $thaiqr_option );
}
