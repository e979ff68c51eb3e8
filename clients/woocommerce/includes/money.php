<?php
/** Amounts. WooCommerce has baht as decimal text, the service has integers in satang. A float never stands between. */

namespace ThaiQr;

defined( 'ABSPATH' ) || exit;

/** Baht as decimal text in satang: "1500.5" is 150050. Throws InvalidArgumentException, also for a part of a satang. */
function satang( string $baht ): int {
	if ( 1 !== preg_match( '/^(\d{1,12})(?:\.(\d{0,2})0*)?$/D', $baht, $parts ) ) {
		throw new \InvalidArgumentException( 'This is no amount in baht and satang.' );
	}
	return (int) ( $parts[1] . str_pad( $parts[2] ?? '', 2, '0' ) );
}

/** Satang as decimal text in baht: 150050 is "1500.50". */
function baht( int $satang ): string {
	return sprintf( '%d.%02d', intdiv( $satang, 100 ), $satang % 100 );
}

/** The total of an order in satang. */
function total_of( \WC_Order $order ): int {
	return satang( (string) $order->get_total( 'edit' ) );
}
