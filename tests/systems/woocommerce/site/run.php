<?php
// Runs PHP inside the shop, and prints what it returned as JSON on the last line: php run.php FOLDER < {"code", "arguments"}
[ 'code' => $code, 'arguments' => $arguments ] = json_decode( stream_get_contents( STDIN ), true );
$_SERVER += array( 'HTTP_HOST' => '127.0.0.1', 'REQUEST_URI' => '/', 'SERVER_PROTOCOL' => 'HTTP/1.1', 'REQUEST_METHOD' => 'GET' );

/** No mail leaves. WordPress declares this function only if nobody has. */
function wp_mail(): bool {
	return true;
}

require "$argv[1]/wp-load.php";
wp_set_current_user( 1 );

/** An order for a test. */
function shown( WC_Order $order ): array {
	return array(
		'status'         => $order->get_status(),
		'total'          => $order->get_total(),
		'transaction_id' => $order->get_transaction_id(),
		'paid'           => (bool) $order->get_date_paid(),
		'code'           => $order->get_meta( '_thaiqr_code' ),
		'key'            => $order->get_order_key(),
		'notes'          => wp_list_pluck( wc_get_order_notes( array( 'order_id' => $order->get_id() ) ), 'content' ),
		'refunds'        => array_map( fn( $refund ) => array( $refund->get_amount(), $refund->get_meta( '_thaiqr_refund_id' ) ), $order->get_refunds() ),
	);
}

/** An order of a customer who has not chosen how to pay. */
function new_order( int $product ): int {
	$order = wc_create_order();
	$order->add_product( wc_get_product( $product ), 1 );
	$order->set_created_via( 'checkout' );
	$order->set_billing_email( 'somchai@shop.example' );
	$order->calculate_totals();
	$order->save();
	return $order->get_id();
}

/** What the checkout does when the customer presses its button. */
function check_out( int $order_id ): array {
	wc_load_cart();
	wc_clear_notices();
	$order = wc_get_order( $order_id );
	$order->set_payment_method( 'thaiqr' );
	$order->save();
	$answer = WC()->payment_gateways()->payment_gateways()['thaiqr']->process_payment( $order_id );
	return $answer + array( 'notices' => wp_list_pluck( wc_get_notices( 'error' ), 'notice' ) );
}

/** What the page of an order does when its staff refund: an error text, or an empty one. */
function refund( int $order_id, string $amount ): string {
	$refund = wc_create_refund( array( 'order_id' => $order_id, 'amount' => $amount, 'reason' => 'cold', 'refund_payment' => true ) );
	return is_wp_error( $refund ) ? $refund->get_error_message() : '';
}

$returned = ( function () use ( $code, $arguments ) {
	return eval( $code );
} )();
echo "\n", wp_json_encode( $returned );
