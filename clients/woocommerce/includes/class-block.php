<?php
/** The payment method in the checkout block. */

namespace ThaiQr;

use Automattic\WooCommerce\Blocks\Payments\Integrations\AbstractPaymentMethodType;

defined( 'ABSPATH' ) || exit;

/** Title and description for the block. The server decides whether the method is available. */
final class Block extends AbstractPaymentMethodType {

	/** The id of the payment method. */
	protected $name = METHOD;

	/** Read the settings. */
	public function initialize(): void {
		$this->settings = (array) get_option( 'woocommerce_thaiqr_settings', array() );
	}

	/** Whether the shop takes payments by this method. */
	public function is_active(): bool {
		return 'yes' === $this->get_setting( 'enabled' );
	}

	/** The script that shows it. */
	public function get_payment_method_script_handles(): array {
		$needs = array( 'wc-blocks-registry', 'wc-settings', 'wp-element', 'wp-html-entities' );
		wp_register_script( 'thaiqr-block', plugins_url( 'assets/block.js', __DIR__ ), $needs, VERSION, true );
		return array( 'thaiqr-block' );
	}

	/** What the script shows. */
	public function get_payment_method_data(): array {
		$gateway = WC()->payment_gateways()->payment_gateways()[ METHOD ];
		return array(
			'title'       => $gateway->get_title(),
			'description' => $gateway->get_description(),
			'button'      => $gateway->order_button_text,
			'supports'    => array_values( $gateway->supports ),
		);
	}
}
