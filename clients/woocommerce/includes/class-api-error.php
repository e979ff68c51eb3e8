<?php
/** What the service refused, or that it did not answer. */

namespace ThaiQr;

defined( 'ABSPATH' ) || exit;

/** An answer that is no success. `getMessage` is the service's own sentence. */
final class Api_Error extends \RuntimeException {

	/** What came back. */
	public function __construct( public readonly int $status, public readonly string $error_code, string $message ) {
		parent::__construct( $message );
	}

	/** Whether the service may have done what was asked: the same request with the same key finds out. */
	public function is_open(): bool {
		return 0 === $this->status || 408 === $this->status || 429 === $this->status || $this->status >= 500
			|| 'idempotency_key_in_progress' === $this->error_code;
	}

	/** What the staff of the shop can do about it. */
	public function advice(): string {
		return match ( true ) {
			$this->is_open() => __( 'The payment service does not answer. Try again later, or ask its operator.', 'thai-qr-payments' ),
			401 === $this->status => __( 'The payment service refuses the key. Enter a valid key in the settings.', 'thai-qr-payments' ),
			'insufficient_scope' === $this->error_code => __( 'The key may not do this. Ask for a key with the scopes payments:write, payments:read, refunds:write and webhooks:write.', 'thai-qr-payments' ),
			/* translators: %s: sentence of the payment service */
			default => sprintf( __( 'The payment service refused: %s', 'thai-qr-payments' ), $this->getMessage() ),
		};
	}
}
