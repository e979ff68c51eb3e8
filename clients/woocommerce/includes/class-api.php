<?php
/** The API of the service over HTTP. */

namespace ThaiQr;

defined( 'ABSPATH' ) || exit;

/** Sends requests with the key. The log has methods, paths, statuses and codes; never keys or bodies. */
final class Api {

	/** A customer waits for this. Two tries fit into a lock. */
	private const TIMEOUT_SECONDS = 12;
	private const TRIES           = 2;

	/** Address and key. */
	public function __construct( private string $address, private string $key ) {}

	/** The API with the address and the key of the settings. */
	public static function of_settings(): self {
		$settings = (array) get_option( 'woocommerce_thaiqr_settings', array() );
		return new self( (string) ( $settings['address'] ?? '' ), (string) ( $settings['key'] ?? '' ) );
	}

	/** Read an object or a list. Throws Api_Error if it was refused, or nothing came back. */
	public function get( string $path, array $query = array() ): array {
		return $this->send( 'GET', $query ? "$path?" . http_build_query( $query ) : $path, array() );
	}

	/** Create or do something, once for each key. Throws Api_Error if it was refused, or nothing came back. */
	public function post( string $path, array $body, string $idempotency_key ): array {
		return $this->send( 'POST', $path, array( 'Idempotency-Key' => $idempotency_key ), $body );
	}

	/** Change an object. Throws Api_Error if it was refused, or nothing came back. */
	public function patch( string $path, array $body ): array {
		return $this->send( 'PATCH', $path, array(), $body );
	}

	/** Send a request, and once more if no answer came: a repeated key does nothing twice. Throws Api_Error. */
	private function send( string $method, string $path, array $headers, ?array $body = null ): array {
		$headers += array( 'Authorization' => "Bearer $this->key", 'User-Agent' => 'thai-qr-payments-woocommerce/' . VERSION );
		$request  = array( 'method' => $method, 'timeout' => self::TIMEOUT_SECONDS, 'redirection' => 0 );
		if ( null !== $body ) {
			$headers['Content-Type'] = 'application/json';
			$request['body']         = wp_json_encode( (object) $body );
		}
		for ( $try = 1; ; $try++ ) {
			$answer = wp_remote_request( $this->address . $path, $request + array( 'headers' => $headers ) );
			$error  = self::error_of( $answer );
			if ( null === $error ) {
				return json_decode( wp_remote_retrieve_body( $answer ), true );
			}
			$line = sprintf( '%s %s: %d %s, request %s', $method, strtok( $path, '?' ), $error->status, $error->error_code, wp_remote_retrieve_header( $answer, 'x-request-id' ) );
			wc_get_logger()->warning( $line, array( 'source' => 'thai-qr-payments' ) );
			if ( self::TRIES === $try || ! $error->is_open() ) {
				throw $error;
			}
			usleep( 300_000 );
		}
	}

	/** What is wrong with an answer, or null. */
	private static function error_of( $answer ): ?Api_Error {
		$status = (int) wp_remote_retrieve_response_code( $answer );
		$object = json_decode( wp_remote_retrieve_body( $answer ), true );
		if ( $status >= 200 && $status < 300 && is_array( $object ) ) {
			return null;
		}
		$told = is_array( $object['error'] ?? null ) ? $object['error'] : array();
		// A page that is no answer of the service, such as one of a proxy, says nothing about what was done.
		$status  = $told || $status >= 500 ? $status : 0;
		$message = trim( ( $told['message'] ?? '' ) . ' ' . ( $told['detail'] ?? '' ) );
		return new Api_Error( $status, (string) ( $told['code'] ?? 'no_answer' ), $message );
	}
}
