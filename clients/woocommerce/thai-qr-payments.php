<?php
/**
 * Plugin Name: Thai QR Payments for WooCommerce
 * Description: Customers pay by Thai QR code. An order is paid when the bank has reported the money.
 * Version: 1.0.0-dev.0
 * Requires at least: 6.4
 * Requires PHP: 8.1
 * Requires Plugins: woocommerce
 * WC requires at least: 8.2
 * WC tested up to: 10.0
 * Text Domain: thai-qr-payments
 * Domain Path: /languages
 *
 * @package ThaiQr
 */

namespace ThaiQr;

defined( 'ABSPATH' ) || exit;

/** The id of the payment method, and the beginning of the names of options. */
const METHOD  = 'thaiqr';
const VERSION = '1.0.0-dev.0';

// Without WooCommerce nothing is loaded.
add_action(
	'woocommerce_loaded',
	function () {
		foreach ( array( 'money', 'lock', 'class-api-error', 'class-api', 'orders', 'payments', 'refunds', 'events', 'connection', 'pages' ) as $part ) {
			require_once __DIR__ . "/includes/$part.php";
		}
	}
);

add_action(
	'before_woocommerce_init',
	function () {
		foreach ( array( 'custom_order_tables', 'cart_checkout_blocks' ) as $feature ) {
			\Automattic\WooCommerce\Utilities\FeaturesUtil::declare_compatibility( $feature, __FILE__ );
		}
	}
);

add_action( 'init', fn() => load_plugin_textdomain( 'thai-qr-payments', false, dirname( plugin_basename( __FILE__ ) ) . '/languages' ), 0 );

add_filter(
	'woocommerce_payment_gateways',
	function ( array $gateways ): array {
		require_once __DIR__ . '/includes/class-gateway.php';
		return array( ...$gateways, Gateway::class );
	}
);

add_action(
	'woocommerce_blocks_payment_method_type_registration',
	function ( $registry ) {
		require_once __DIR__ . '/includes/class-block.php';
		$registry->register( new Block() );
	}
);

add_filter(
	'plugin_action_links_' . plugin_basename( __FILE__ ),
	function ( array $links ): array {
		$url = admin_url( 'admin.php?page=wc-settings&tab=checkout&section=' . METHOD );
		return array( '<a href="' . esc_url( $url ) . '">' . esc_html__( 'Settings', 'thai-qr-payments' ) . '</a>', ...$links );
	}
);

register_deactivation_hook( __FILE__, fn() => function_exists( 'as_unschedule_all_actions' ) && as_unschedule_all_actions( 'thaiqr_follow' ) );
