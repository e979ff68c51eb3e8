<?php
/** The orders of this shop that have a payment at the service. */

namespace ThaiQr;

use Automattic\WooCommerce\Caches\OrderCache;

defined( 'ABSPATH' ) || exit;

/** The newest code of an order: an array with `attempt` and fields of the QR code object. */
const CODE = '_thaiqr_code';
/** The last state of each payment, exception and refund for which the order has a note. */
const SEEN = '_thaiqr_seen';

/** A name for this shop. Several shops with the same numbers of orders may use one merchant. */
function shop_id(): string {
	$id = (string) get_option( 'thaiqr_shop' );
	if ( '' === $id ) {
		// Only the first of two processes adds it. Both read what is there.
		add_option( 'thaiqr_shop', bin2hex( random_bytes( 6 ) ), '', false );
		wp_cache_delete( 'thaiqr_shop', 'options' );
		$id = (string) get_option( 'thaiqr_shop' );
	}
	return $id;
}

/** What payments and refunds carry, so that their events find the order. */
function metadata_of( \WC_Order $order, int $attempt ): array {
	return array( 'shop' => shop_id(), 'order_id' => $order->get_id(), 'attempt' => $attempt );
}

/** The id of the order of a payment or refund, or null if it is of another shop or program. */
function order_id_of( array $thing ): ?int {
	$metadata = $thing['metadata'] ?? null;
	$is_ours  = is_array( $metadata ) && shop_id() === ( $metadata['shop'] ?? null );
	return $is_ours ? (int) ( $metadata['order_id'] ?? 0 ) : null;
}

/** Work on an order as it is in the database now, alone, and save it. Throws UnderflowException as `with_lock`. */
function with_order( int $id, callable $work ): mixed {
	return with_lock(
		"order_$id",
		function () use ( $id, $work ) {
			// Another process may have changed it while this one waited.
			wc_get_container()->get( OrderCache::class )->remove( $id );
			\WC_Data_Store::load( 'order' )->clear_cached_data( array( $id ) );
			clean_post_cache( $id );
			$order = wc_get_order( $id );
			if ( ! $order instanceof \WC_Order ) {
				return null;
			}
			$order->read_meta_data( true );
			$result = $work( $order );
			$order->save();
			return $result;
		}
	);
}

/** Write a note for the staff of the shop, once for each state. Returns whether it was new. */
function note_once( \WC_Order $order, string $id, string $state, string $text ): bool {
	$seen = array_filter( (array) $order->get_meta( SEEN ) );
	if ( ( $seen[ $id ] ?? '' ) === $state ) {
		return false;
	}
	$order->update_meta_data( SEEN, array( $id => $state ) + $seen );
	$order->add_order_note( $text );
	return true;
}
