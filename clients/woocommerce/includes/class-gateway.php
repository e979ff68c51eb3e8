<?php
/** The payment method at the checkout, its settings, and refunds from the page of an order. */

namespace ThaiQr;

defined( 'ABSPATH' ) || exit;

/** Thai QR code. */
final class Gateway extends \WC_Payment_Gateway {

	/** 1 to 2,000,000 THB, in satang: what the service takes. */
	private const LEAST = 100;
	private const MOST  = 200_000_000;

	/** Name, settings and hooks. */
	public function __construct() {
		$this->id                 = METHOD;
		$this->method_title       = __( 'Thai QR code', 'thai-qr-payments' );
		$this->method_description = __( 'Customers pay by Thai QR code with their banking app. An order is paid when the bank has reported the money.', 'thai-qr-payments' );
		$this->supports           = array( 'products', 'refunds' );
		$this->has_fields         = false;
		$this->form_fields        = $this->fields();
		$this->init_settings();
		$this->title             = $this->get_option( 'title' );
		$this->description       = $this->get_option( 'description' );
		$this->order_button_text = __( 'Pay by Thai QR code', 'thai-qr-payments' );
		add_action( 'woocommerce_update_options_payment_gateways_' . $this->id, array( $this, 'process_admin_options' ) );
	}

	/** The settings. */
	private function fields(): array {
		return array(
			'enabled'     => array( 'type' => 'checkbox', 'title' => __( 'Enable/Disable', 'thai-qr-payments' ), 'label' => __( 'Take payments by Thai QR code', 'thai-qr-payments' ) ),
			'address'     => array(
				'type'        => 'text',
				'title'       => __( 'Address of the service', 'thai-qr-payments' ),
				'description' => __( 'Such as https://pay.example.com. Saving tests address, key and webhook.', 'thai-qr-payments' ),
			),
			'key'         => array(
				'type'        => 'secret',
				'title'       => __( 'Secret key', 'thai-qr-payments' ),
				'description' => __( 'With the scopes payments:write, payments:read, refunds:write and webhooks:write. It is stored and not shown again; leave this empty to keep it.', 'thai-qr-payments' ),
			),
			'display'     => array(
				'type'    => 'select',
				'title'   => __( 'The customer pays', 'thai-qr-payments' ),
				'options' => array(
					'page' => __( 'on the payment page of the service', 'thai-qr-payments' ),
					'shop' => __( 'on a page of this shop that shows the code', 'thai-qr-payments' ),
				),
			),
			'minutes'     => array( 'type' => 'number', 'title' => __( 'Minutes to pay', 'thai-qr-payments' ), 'default' => '15' ),
			'title'       => array( 'type' => 'safe_text', 'title' => __( 'Title', 'thai-qr-payments' ), 'default' => __( 'Thai QR code (PromptPay)', 'thai-qr-payments' ) ),
			'description' => array( 'type' => 'textarea', 'title' => __( 'Description', 'thai-qr-payments' ), 'default' => __( 'Scan a code with your banking app.', 'thai-qr-payments' ) ),
		);
	}

	/** A field for a secret that is never sent back to the browser. */
	public function generate_secret_html( $name, $data ): string {
		$stored                  = (string) $this->get_option( $name );
		$hidden                  = array( 'type' => 'password', 'placeholder' => '' === $stored ? '' : substr( $stored, 0, 16 ) . '…' );
		$this->settings[ $name ] = '';
		$html                    = $this->generate_text_html( $name, $hidden + $data + array( 'custom_attributes' => array( 'autocomplete' => 'off' ) ) );
		$this->settings[ $name ] = $stored;
		return $html;
	}

	/** The new key, or the stored one if the field is empty. */
	public function validate_secret_field( $name, $value ): string {
		$given = trim( (string) wp_unslash( $value ) );
		return '' === $given ? (string) $this->get_option( $name ) : sanitize_text_field( $given );
	}

	/** The address without a path. The key travels to it: https except on this machine. WooCommerce shows the Exception. */
	public function validate_address_field( $name, $value ): string {
		$address = untrailingslashit( trim( (string) wp_unslash( $value ) ) );
		if ( '' !== $address && 1 !== preg_match( '#^(https://[a-z0-9.-]+|http://(localhost|127\.0\.0\.1))(:\d{1,5})?$#iD', $address ) ) {
			throw new \Exception( esc_html__( 'The address of the service begins with https:// and has no path.', 'thai-qr-payments' ) );
		}
		return $address;
	}

	/** Minutes that the service takes. */
	public function validate_minutes_field( $name, $value ): string {
		return (string) max( 2, min( 1440, (int) $value ) );
	}

	/** Store the settings, then test them. WooCommerce has checked the nonce and the right of the person. */
	public function process_admin_options(): bool {
		$is_stored = parent::process_admin_options();
		$good      = array();
		$bad       = $this->get_errors();
		if ( ! $bad && '' !== $this->get_option( 'key' ) && '' !== $this->get_option( 'address' ) ) {
			[$good, $bad] = connect( $this->get_option( 'key' ) );
		}
		array_map( array( \WC_Admin_Settings::class, 'add_message' ), $good );
		array_map( array( \WC_Admin_Settings::class, 'add_error' ), $bad );
		return $is_stored;
	}

	/** A customer can choose it: in baht, within the limits, and at the address that was tested. */
	public function is_available(): bool {
		if ( ! parent::is_available() || 'THB' !== get_woocommerce_currency() || ! is_connected() ) {
			return false;
		}
		if ( ! WC()->cart && ! get_query_var( 'order-pay' ) ) {
			return true;
		}
		try {
			$total = satang( wc_format_decimal( $this->get_order_total(), wc_get_price_decimals() ) );
		} catch ( \InvalidArgumentException ) {
			return false;
		}
		// Before there is a cart its total is 0.
		return 0 === $total || ( $total >= self::LEAST && $total <= self::MOST );
	}

	/** Make the code and lead the customer to it. The order stays unpaid. */
	public function process_payment( $order_id ): array {
		$order = wc_get_order( $order_id );
		try {
			$code = open_code( $order, (int) $this->get_option( 'minutes' ) );
		} catch ( Api_Error | \UnderflowException $error ) {
			if ( $error instanceof Api_Error ) {
				note_once( $order, 'checkout', $error->error_code, $error->advice() );
				$order->save();
			}
			wc_add_notice( __( 'We cannot make a QR code at this moment. Nothing was charged. Try again in a minute, or choose another way to pay.', 'thai-qr-payments' ), 'error' );
			return array( 'result' => 'failure' );
		}
		$url = match ( true ) {
			null === $code => $order->get_checkout_order_received_url(),
			'shop' === $this->get_option( 'display' ) => $order->get_checkout_payment_url( true ),
			default => payment_page_url( $order, $code ),
		};
		return array( 'result' => 'success', 'redirect' => $url );
	}

	/** Only what was paid by this method. */
	public function can_refund_order( $order ): bool {
		return parent::can_refund_order( $order ) && str_starts_with( $order->get_transaction_id(), 'pay_' );
	}

	/** Send money back. WooCommerce has checked the nonce and the right of the person. */
	public function process_refund( $order_id, $amount = null, $reason = '' ): bool|\WP_Error {
		try {
			send_refund( (int) $order_id, wc_format_decimal( $amount ?? wc_get_order( $order_id )->get_total(), wc_get_price_decimals() ), (string) $reason );
			return true;
		} catch ( Api_Error $error ) {
			return new \WP_Error( 'thaiqr', $error->advice() );
		} catch ( \DomainException $error ) {
			return new \WP_Error( 'thaiqr', $error->getMessage() );
		} catch ( \UnderflowException ) {
			return new \WP_Error( 'thaiqr', __( 'Another refund of this order is being sent. Load this page again.', 'thai-qr-payments' ) );
		}
	}
}
