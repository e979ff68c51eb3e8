<?php
/** Codes for orders, and what becomes of their payments. */

namespace ThaiQr;

defined( 'ABSPATH' ) || exit;

/** A code that ends sooner is not shown again: nobody pays it in time. */
const LEAST_SECONDS = 60;
/** Banks report late. An order is not cancelled sooner after its code has ended. */
const LATE_SECONDS = 900;
/** How often a browser makes this shop ask the service about one order. */
const ASK_SECONDS = 4;

/** The code that the customer pays now, open or new. Null if the money is there. Throws Api_Error. */
function open_code( \WC_Order $order, int $minutes ): ?array {
	$code   = (array) $order->get_meta( CODE );
	$amount = total_of( $order );
	if ( isset( $code['payment_id'] ) ) {
		$payment = refresh( $order );
		if ( 'succeeded' === $payment['status'] || array_filter( $payment['exceptions'], __NAMESPACE__ . '\is_held' ) ) {
			return null;
		}
		if ( 'pending' === $payment['status'] ) {
			if ( $payment['amount'] === $amount && seconds_left( $code ) > LEAST_SECONDS ) {
				return $code;
			}
			Api::of_settings()->post( "/v1/qr-codes/{$code['qr_code_id']}/expire", array(), "woo-{$code['qr_code_id']}-expire" );
		}
	}
	return new_code( $order, $amount, $minutes, (int) ( $code['attempt'] ?? 0 ) + 1 );
}

/** Make a code. Two processes at once send the same key, and get the same code. Throws Api_Error. */
function new_code( \WC_Order $order, int $amount, int $minutes, int $attempt ): array {
	$body = array(
		'amount'         => $amount,
		'currency'       => 'THB',
		'reference'      => mb_substr( $order->get_order_number(), 0, 35 ),
		'expiry_minutes' => $minutes,
		'metadata'       => metadata_of( $order, $attempt ),
	);
	try {
		$made = Api::of_settings()->post( '/v1/qr-codes', $body, sprintf( 'woo-%s-%d-%d', shop_id(), $order->get_id(), $attempt ) );
	} catch ( Api_Error $error ) {
		// The answer of an earlier request was lost, and the total has changed since.
		if ( 'idempotency_key_reused' !== $error->error_code || $attempt > 50 ) {
			throw $error;
		}
		return new_code( $order, $amount, $minutes, $attempt + 1 );
	}
	$kept = array( 'payment_id', 'qr_code_id', 'qr_image_url', 'payment_page_url', 'expires_at', 'amount_display' );
	$code = array( 'attempt' => $attempt ) + array_intersect_key( $made, array_flip( $kept ) );
	with_order( $order->get_id(), fn( \WC_Order $fresh ) => $fresh->update_meta_data( CODE, $code ) );
	return $code;
}

/** Seconds until a code ends. */
function seconds_left( array $code ): int {
	return (int) strtotime( $code['expires_at'] ?? '@0' ) - time();
}

/** Ask the service for the payment of an order, and apply it. Throws Api_Error. */
function refresh( \WC_Order $order ): array {
	$code    = (array) $order->get_meta( CODE );
	$payment = Api::of_settings()->get( "/v1/payments/{$code['payment_id']}" );
	apply_payment( $payment );
	return $payment;
}

/** Whether the customer's browser may wait for the payment of this order. Asks the service now and then. */
function ask_for_browser( \WC_Order $order ): \WC_Order {
	$asked = 'thaiqr_asked_' . $order->get_id();
	if ( METHOD !== $order->get_payment_method() || ! $order->get_meta( CODE ) || $order->is_paid() || get_transient( $asked ) ) {
		return $order;
	}
	set_transient( $asked, 1, ASK_SECONDS );
	try {
		refresh( $order );
	} catch ( Api_Error | \UnderflowException ) {
		return $order; // It stays unpaid. A webhook or the feed tells later.
	}
	return wc_get_order( $order->get_id() );
}

/** Bring an order to what the service says of one of its payments. To do this twice changes nothing. */
function apply_payment( array $payment ): void {
	$order_id = order_id_of( $payment );
	if ( null === $order_id ) {
		return;
	}
	with_order(
		$order_id,
		function ( \WC_Order $order ) use ( $payment ) {
			foreach ( $payment['exceptions'] ?? array() as $exception ) {
				apply_exception( $order, $payment, $exception );
			}
			match ( $payment['status'] ) {
				'succeeded', 'refunded' => complete( $order, $payment ),
				'failed', 'expired' => end_code( $order, $payment ),
				default => null,
			};
		}
	);
}

/** The order is paid. Called under its lock, so two messages at once complete it once. */
function complete( \WC_Order $order, array $payment ): void {
	// phpcs:disable WordPress.WP.I18n.MissingTranslatorsComment -- %1$s is the amount, %2$s the id of the payment.
	$id = $payment['payment_id'];
	if ( $id === $order->get_transaction_id() ) {
		return;
	}
	$values = array( $payment['amount_display'], $id );
	if ( $order->get_date_paid() || $order->is_paid() ) {
		note_once( $order, $id, 'succeeded', vsprintf( __( 'The customer paid this order again: %1$s by payment %2$s. Refund that payment in the pages of your shop at the payment service.', 'thai-qr-payments' ), $values ) );
		return;
	}
	if ( total_of( $order ) !== $payment['amount'] || 'THB' !== $order->get_currency() ) {
		if ( note_once( $order, $id, 'succeeded', vsprintf( __( '%1$s were paid by payment %2$s, but the total of this order is another one now. Ask the customer for the rest and complete the order by hand, or refund the payment in the pages of your shop at the payment service.', 'thai-qr-payments' ), $values ) ) ) {
			$order->set_status( 'on-hold' );
		}
		return;
	}
	$was_cancelled = $order->has_status( 'cancelled' );
	$order->set_payment_method( METHOD );
	if ( ! $order->payment_complete( $id ) ) {
		throw new \RuntimeException( 'The order could not be completed.' );
	}
	if ( $id !== $order->get_transaction_id() ) {
		note_once( $order, $id, 'succeeded', vsprintf( __( '%1$s were paid by payment %2$s, but an order in this status cannot be completed. Decide what the customer gets.', 'thai-qr-payments' ), $values ) );
		return;
	}
	note_once( $order, $id, 'succeeded', vsprintf( __( 'Paid: %1$s by payment %2$s.', 'thai-qr-payments' ), $values ) );
	if ( $was_cancelled ) {
		$order->add_order_note( __( 'The order had been cancelled before the money arrived. Check that you still have the goods.', 'thai-qr-payments' ) );
	}
}

/** The code cannot be paid any more. The customer can pay the order again, by a new code. */
function end_code( \WC_Order $order, array $payment ): void {
	$code = (array) $order->get_meta( CODE );
	if ( ( $code['payment_id'] ?? '' ) !== $payment['payment_id'] || ! $order->needs_payment() ) {
		return;
	}
	if ( 'expired' === $payment['status'] ) {
		note_once( $order, $payment['payment_id'], 'expired', __( 'Nobody paid the code before it expired. The customer can pay the order again, by a new code.', 'thai-qr-payments' ) );
	} elseif ( note_once( $order, $payment['payment_id'], 'failed', __( 'The bank of the customer declined the payment. The customer can pay the order again, by a new code.', 'thai-qr-payments' ) ) ) {
		$order->set_status( 'failed' );
	}
}

/** Whether money that did not fit waits for a decision, or is on its way back. */
function is_held( array $exception ): bool {
	return in_array( $exception['status'], array( 'open', 'sending_back' ), true );
}

/** Money arrived that does not fit. An unpaid order waits on hold until somebody has decided about the money. */
function apply_exception( \WC_Order $order, array $payment, array $exception ): void {
	if ( ! note_once( $order, $exception['exception_id'], $exception['status'], exception_text( $payment, $exception ) ) ) {
		return;
	}
	if ( is_held( $exception ) ) {
		if ( $order->needs_payment() || $order->has_status( 'cancelled' ) ) {
			$order->set_status( 'on-hold' );
		}
	} elseif ( $order->has_status( 'on-hold' ) && ! $order->get_date_paid() && ! array_filter( $payment['exceptions'], __NAMESPACE__ . '\is_held' ) ) {
		$order->set_status( 'pending' );
	}
}

/** What happened, and what the staff of the shop do now. */
function exception_text( array $payment, array $exception ): string {
	// phpcs:disable WordPress.WP.I18n.MissingTranslatorsComment -- %1$s is the amount that arrived, %2$s that of the code.
	$text = match ( $exception['status'] ) {
		'open' => match ( true ) {
			'duplicate' === $exception['reason'] => __( 'Paid twice: %1$s arrived once more.', 'thai-qr-payments' ),
			'late' === $exception['reason'] => __( 'Paid late: %1$s arrived after the code had expired.', 'thai-qr-payments' ),
			'time_mismatch' === $exception['reason'] => __( 'Wrong time: the bank says that %1$s were paid before the code existed.', 'thai-qr-payments' ),
			$exception['amount'] > $payment['amount'] => __( 'Paid too much: %1$s arrived instead of %2$s.', 'thai-qr-payments' ),
			default => __( 'Paid too little: %1$s arrived instead of %2$s.', 'thai-qr-payments' ),
		},
		'accepted' => __( 'The money that did not fit (%1$s) was accepted.', 'thai-qr-payments' ),
		'sent_back', 'taken_back' => __( 'The money that did not fit (%1$s) went back to the customer.', 'thai-qr-payments' ),
		'excess_sent_back', 'excess_taken_back' => __( 'Of the money that did not fit (%1$s), what was too much went back to the customer.', 'thai-qr-payments' ),
		'sending_back', 'excess_sending_back' => __( 'Of the money that did not fit (%1$s), what does not belong to this order is on its way back to the customer.', 'thai-qr-payments' ),
		'attached', 'merged' => __( 'The money that did not fit (%1$s) belongs to another payment.', 'thai-qr-payments' ),
		default => __( 'The money that did not fit (%1$s) waits for a decision about what is too much.', 'thai-qr-payments' ),
	};
	$text = sprintf( $text, $exception['amount_display'], $payment['amount_display'] );
	return 'open' === $exception['status'] ? $text . ' ' . match ( $exception['reason'] ) {
		'duplicate' => __( 'Return it in the pages of your shop at the payment service (Exceptions).', 'thai-qr-payments' ),
		'time_mismatch' => __( 'Return it in the pages of your shop at the payment service (Exceptions), or ask its operator.', 'thai-qr-payments' ),
		default => __( 'Accept or return it in the pages of your shop at the payment service (Exceptions). Ship nothing before.', 'thai-qr-payments' ),
	} : $text;
}

// WooCommerce cancels unpaid orders after a time. A code that can be paid, or was just payable, keeps its order.
add_filter( 'woocommerce_cancel_unpaid_order', fn( $is_cancelled, $order ) => $is_cancelled && seconds_left( (array) $order->get_meta( CODE ) ) < -LATE_SECONDS, 10, 2 );
