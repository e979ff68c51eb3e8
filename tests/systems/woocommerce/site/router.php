<?php
// What a web server in front of WordPress does: files as they are, every other path to index.php.
$path = parse_url( $_SERVER['REQUEST_URI'], PHP_URL_PATH );
$file = $_SERVER['DOCUMENT_ROOT'] . $path;
if ( is_dir( $file ) && '/' !== $path ) {
	$file                   = rtrim( $file, '/' ) . '/index.php';
	$_SERVER['SCRIPT_NAME'] = rtrim( $path, '/' ) . '/index.php';
	$_SERVER['PHP_SELF']    = $_SERVER['SCRIPT_NAME'];
}
if ( is_file( $file ) && '/' !== $path ) {
	if ( ! str_ends_with( $file, '.php' ) ) {
		return false;
	}
	chdir( dirname( $file ) );
	require $file;
	return;
}
$_SERVER['SCRIPT_NAME'] = '/index.php';
$_SERVER['PHP_SELF']    = '/index.php';
require $_SERVER['DOCUMENT_ROOT'] . '/index.php';
