<?php
/** What the customer sees after the checkout, and how the browser hears that the order is paid. */

namespace ThaiQr;

defined( 'ABSPATH' ) || exit;

/** The address of the payment page, with a link back to this order. */
function payment_page_url( \WC_Order $order, array $code ): string {
	$query = array( 'lang' => str_starts_with( determine_locale(), 'th' ) ? 'th' : 'en', 'return_url' => $order->get_checkout_order_received_url() );
	return $code['payment_page_url'] . '?' . http_build_query( $query );
}

/** Where an order stands for its customer. */
function state_of( \WC_Order $order ): string {
	$code = (array) $order->get_meta( CODE );
	return match ( true ) {
		$order->is_paid() || $order->get_date_paid() => 'paid',
		$order->has_status( 'on-hold' ) => 'held',
		$order->needs_payment() && seconds_left( $code ) > 0 => 'open',
		$order->needs_payment() => 'ended',
		default => 'closed',
	};
}

/** Answer the customer's browser, which shows the key of its order. It changes nothing by itself. */
function answer_browser( \WP_REST_Request $request ): \WP_REST_Response {
	$order = wc_get_order( (int) $request['id'] );
	if ( ! $order instanceof \WC_Order || ! $order->key_is_valid( (string) $request['key'] ) ) {
		return new \WP_REST_Response( null, 404 );
	}
	$answer = new \WP_REST_Response( array( 'state' => state_of( ask_for_browser( $order ) ) ) );
	$answer->header( 'Cache-Control', 'no-store' );
	return $answer;
}

/** Show the code in the shop, or what became of it. */
function show_code( int $order_id ): void {
	$order = wc_get_order( $order_id );
	$code  = (array) $order->get_meta( CODE );
	$state = state_of( $order );
	if ( 'open' === $state && isset( $code['qr_image_url'] ) ) {
		printf(
			'<p>%s</p><p><img src="%s" alt="%s" width="280" height="280"></p><p><strong>%s</strong></p><p>%s</p><p><a href="%s">%s</a></p>',
			esc_html__( 'Scan the code with your banking app. This page changes by itself when the bank has reported the money.', 'thai-qr-payments' ),
			esc_url( $code['qr_image_url'] ),
			esc_attr__( 'Thai QR code', 'thai-qr-payments' ),
			esc_html( $code['amount_display'] ),
			/* translators: %s: time of day */
			esc_html( sprintf( __( 'The code is valid until %s.', 'thai-qr-payments' ), wp_date( get_option( 'time_format' ), strtotime( $code['expires_at'] ) ) ) ),
			esc_url( payment_page_url( $order, $code ) ),
			esc_html__( 'On this telephone? Open the payment page and save the picture.', 'thai-qr-payments' )
		);
	}
	show_state( $order_id );
}

/** Say where the order stands, and look again while it may be paid. */
function show_state( int $order_id ): void {
	$order = wc_get_order( $order_id );
	$state = state_of( $order );
	$text  = array(
		'open'  => __( 'We wait for the bank to report your payment.', 'thai-qr-payments' ),
		'held'  => __( 'Your money arrived, but it does not fit this order. The shop checks it. Please do not pay again.', 'thai-qr-payments' ),
		'ended' => __( 'The code has ended. If you have paid, wait a moment: this page changes by itself. Otherwise pay again by a new code.', 'thai-qr-payments' ),
	)[ $state ] ?? '';
	if ( '' === $text ) {
		return;
	}
	wp_enqueue_script( 'thaiqr-order', plugins_url( 'assets/order.js', __DIR__ ), array(), VERSION, true );
	$url = add_query_arg( 'key', $order->get_order_key(), rest_url( 'thaiqr/v1/orders/' . $order->get_id() ) );
	printf( '<p class="thaiqr-state" role="status" data-state="%s" data-url="%s" data-paid="%s">%s</p>', esc_attr( $state ), esc_url( $url ), esc_url( $order->get_checkout_order_received_url() ), esc_html( $text ) );
	if ( 'ended' === $state || ( 'open' === $state && ! is_checkout_pay_page() ) ) {
		$label = 'open' === $state ? __( 'Show the code', 'thai-qr-payments' ) : __( 'Pay by a new code', 'thai-qr-payments' );
		printf( '<p><a class="button" href="%s">%s</a></p>', esc_url( $order->get_checkout_payment_url() ), esc_html( $label ) );
	}
}

add_action( 'woocommerce_receipt_' . METHOD, __NAMESPACE__ . '\show_code' );
add_action( 'woocommerce_thankyou_' . METHOD, __NAMESPACE__ . '\show_state' );

add_action(
	'template_redirect',
	function () {
		// Before the page is made: the customer comes back, and the service is asked. The return itself proves nothing.
		$order = is_wc_endpoint_url( 'order-received' ) ? wc_get_order( absint( get_query_var( 'order-received' ) ) ) : null;
		// phpcs:ignore WordPress.Security.NonceVerification
		if ( $order instanceof \WC_Order && $order->key_is_valid( wc_clean( wp_unslash( $_GET['key'] ?? '' ) ) ) ) {
			ask_for_browser( $order );
		}
	}
);

// The key of the order decides.
add_action( 'rest_api_init', fn() => register_rest_route( 'thaiqr/v1', '/orders/(?P<id>\d+)', array( 'methods' => 'GET', 'callback' => __NAMESPACE__ . '\answer_browser', 'permission_callback' => '__return_true' ) ) );

add_filter(
	'woocommerce_order_actions',
	function ( array $actions, ?\WC_Order $order = null ): array {
		$is_ours = $order && METHOD === $order->get_payment_method() && $order->get_meta( CODE );
		return $is_ours ? array( ...$actions, 'thaiqr_ask' => __( 'Ask the payment service again', 'thai-qr-payments' ) ) : $actions;
	},
	10,
	2
);

add_action(
	'woocommerce_order_action_thaiqr_ask',
	function ( \WC_Order $order ) {
		try {
			refresh( $order );
			array_map( __NAMESPACE__ . '\apply_refund', str_starts_with( $order->get_transaction_id(), 'pay_' ) ? refunds_of( $order ) : array() );
		} catch ( Api_Error $error ) {
			$order->add_order_note( $error->advice() );
		}
	}
);
