<?php
/** Refunds from the page of an order, and what becomes of them. */

namespace ThaiQr;

defined( 'ABSPATH' ) || exit;

/** On a refund of WooCommerce: the id of the refund at the service. */
const REFUND_ID = '_thaiqr_refund_id';
/** On an order: the number of the last refund that was sent, and whether its answer is missing. */
const LAST_REFUND = '_thaiqr_last_refund';

// A refund that `record_refund` adds has its id from the first store on, so it is never added twice.
add_action( 'woocommerce_create_refund', fn( $refund, $args ) => own_refund( $refund ) && isset( $args['thaiqr_refund_id'] ) && $refund->update_meta_data( REFUND_ID, $args['thaiqr_refund_id'] ), 10, 2 );

/** The refund that WooCommerce created last in this process. It does not say for which one it asks the gateway. */
function own_refund( ?\WC_Order_Refund $created = null ): ?\WC_Order_Refund {
	static $last = null;
	$last        = $created ?? $last;
	return $last;
}

/** Send money back, under the lock of the order: a double click sends it once. Throws Api_Error and DomainException. */
function send_refund( int $order_id, string $baht, string $reason ): void {
	$known = wc_get_order( $order_id )->get_meta( LAST_REFUND );
	with_order(
		$order_id,
		function ( \WC_Order $order ) use ( $known, $baht, $reason ) {
			if ( $order->get_meta( LAST_REFUND ) !== $known ) {
				throw new \UnderflowException( 'Another click was faster.' );
			}
			$last    = (array) $known;
			$number  = (int) ( $last['number'] ?? 0 );
			$amount  = satang( $baht );
			$earlier = empty( $last['is_open'] ) ? null : find_refund( $order, $number );
			if ( $earlier && $earlier['amount'] !== $amount ) {
				/* translators: %s: amount */
				throw new \DomainException( esc_html( sprintf( __( 'An earlier refund of %s was sent, although its answer was lost. First refund this amount again: it is written on the order and not sent again.', 'thai-qr-payments' ), $earlier['amount_display'] ) ) );
			}
			$number += empty( $last['is_open'] ) ? 1 : 0;
			// Before it is sent: if this process ends now, the next one asks what became of it.
			keep_last_refund( $order, $number, true );
			try {
				$refund = $earlier ?? post_refund( $order, $number, $amount, $reason );
			} catch ( Api_Error $error ) {
				keep_last_refund( $order, $number, $error->is_open() );
				throw $error;
			}
			$own = own_refund();
			if ( $own && $own->get_parent_id() === $order->get_id() && ! $own->get_meta( REFUND_ID ) ) {
				$own->update_meta_data( REFUND_ID, $refund['refund_id'] );
				$own->save();
			}
			record_refund( $order, $refund );
		}
	);
}

/** Send the refund with this number of an order. Throws Api_Error. */
function post_refund( \WC_Order $order, int $number, int $amount, string $reason ): array {
	$body = array( 'payment_id' => $order->get_transaction_id(), 'amount' => $amount, 'reason' => 'requested_by_customer', 'metadata' => metadata_of( $order, $number ) );
	$note = mb_substr( trim( $reason ), 0, 255 );
	return Api::of_settings()->post( '/v1/refunds', $body + ( '' === $note ? array() : array( 'note' => $note ) ), sprintf( 'woo-%s-%d-refund-%d', shop_id(), $order->get_id(), $number ) );
}

/** Store the number of the last refund of an order, and whether its answer is missing. */
function keep_last_refund( \WC_Order $order, int $number, bool $is_open ): void {
	$order->update_meta_data( LAST_REFUND, array( 'number' => $number, 'is_open' => $is_open ) );
	$order->save();
}

/** The refund with this number of an order at the service, or null. */
function find_refund( \WC_Order $order, int $number ): ?array {
	$found = array_filter( refunds_of( $order ), fn( $each ) => order_id_of( $each ) === $order->get_id() && $number === $each['metadata']['attempt'] );
	return array_values( $found )[0] ?? null;
}

/** The refunds of an order at the service, the newest first. */
function refunds_of( \WC_Order $order ): array {
	return Api::of_settings()->get( '/v1/refunds', array( 'payment_id' => $order->get_transaction_id(), 'limit' => 100 ) )['refunds'];
}

/** Bring an order to what the service says of one of its refunds. To do this twice changes nothing. Throws Api_Error. */
function apply_refund( array $refund ): void {
	$order_id = order_id_of( $refund ) ?? order_id_of( Api::of_settings()->get( "/v1/payments/{$refund['payment_id']}" ) );
	if ( null !== $order_id ) {
		with_order( $order_id, fn( \WC_Order $order ) => record_refund( $order, $refund ) );
	}
}

/** Write the state of a refund on its order. A refund that was not made here is added, one that failed is removed. */
function record_refund( \WC_Order $order, array $refund ): void {
	$number = (int) ( ( (array) $order->get_meta( LAST_REFUND ) )['number'] ?? 0 );
	if ( order_id_of( $refund ) === $order->get_id() && $number === $refund['metadata']['attempt'] ) {
		keep_last_refund( $order, $number, false );
	}
	// The money of another payment is not on this order.
	if ( ! note_once( $order, $refund['refund_id'], $refund['status'], refund_text( $refund ) ) || $order->get_transaction_id() !== $refund['payment_id'] ) {
		return;
	}
	$own     = current( array_filter( $order->get_refunds(), fn( $each ) => $each->get_meta( REFUND_ID ) === $refund['refund_id'] ) );
	$is_gone = in_array( $refund['status'], array( 'failed', 'canceled' ), true );
	if ( $own && $is_gone ) {
		$own->delete( true );
		do_action( 'woocommerce_refund_deleted', $own->get_id(), $order->get_id() ); // phpcs:ignore WordPress.NamingConventions.PrefixAllGlobals
		if ( $order->has_status( 'refunded' ) ) {
			$order->set_status( 'on-hold' );
		}
	} elseif ( ! $own && ! $is_gone && $refund['amount'] <= satang( wc_format_decimal( $order->get_remaining_refund_amount(), 2 ) ) ) {
		// It saves the order by itself, so what was written above is saved first.
		$order->save();
		wc_create_refund( array( 'order_id' => $order->get_id(), 'amount' => baht( $refund['amount'] ), 'reason' => (string) $refund['note'], 'thaiqr_refund_id' => $refund['refund_id'] ) );
	}
}

/** What became of a refund, and what the staff of the shop do now. */
function refund_text( array $refund ): string {
	// phpcs:disable WordPress.WP.I18n.MissingTranslatorsComment -- %1$s is the amount, %2$s the id of the refund.
	$text = match ( true ) {
		'completed' === $refund['status'] => __( 'Refund %2$s: the customer has got %1$s.', 'thai-qr-payments' ),
		'failed' === $refund['status'] => __( 'Refund %2$s failed: %1$s are in your balance again. Refund the order again, or ask the customer for another account.', 'thai-qr-payments' ),
		'canceled' === $refund['status'] => __( 'Refund %2$s of %1$s was cancelled.', 'thai-qr-payments' ),
		'awaiting_destination' === $refund['pending_reason'] => __( 'Refund %2$s of %1$s waits: the bank did not say from which account the customer paid. Name the account, or make a link for the customer, in the pages of your shop at the payment service.', 'thai-qr-payments' ),
		$refund['awaiting_approval'] => __( 'Refund %2$s of %1$s waits until a second person at the payment service approves it.', 'thai-qr-payments' ),
		default => __( 'Refund %2$s: %1$s are on their way to the customer. A note follows when they have arrived.', 'thai-qr-payments' ),
	};
	return sprintf( $text, $refund['amount_display'], $refund['refund_id'] );
}
