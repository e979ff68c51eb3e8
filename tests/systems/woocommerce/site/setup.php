<?php
// What the owner of a new shop does, run by run.php: pages, a currency, a product.
WC_Install::create_pages();
foreach ( array(
	'woocommerce_currency' => 'THB', 'woocommerce_default_country' => 'TH:TH-10', 'woocommerce_coming_soon' => 'no', 'woocommerce_onboarding_profile' => array( 'skipped' => true ),
	'woocommerce_enable_guest_checkout' => 'yes', 'woocommerce_calc_taxes' => 'no', 'woocommerce_manage_stock' => 'yes', 'woocommerce_hold_stock_minutes' => '60',
	'woocommerce_show_marketplace_suggestions' => 'no', 'woocommerce_allow_tracking' => 'no', 'woocommerce_task_list_hidden' => 'yes',
) as $name => $value ) {
	update_option( $name, $value );
}
$product = new WC_Product_Simple();
$product->set_props( array( 'name' => 'Som tam', 'slug' => 'som-tam', 'regular_price' => '150.25', 'virtual' => true, 'manage_stock' => true, 'stock_quantity' => 1000, 'status' => 'publish' ) );
$product->save();
$classic = wp_insert_post( array( 'post_type' => 'page', 'post_status' => 'publish', 'post_title' => 'Classic checkout', 'post_name' => 'classic-checkout', 'post_content' => '[woocommerce_checkout]' ) );
flush_rewrite_rules();
return array( 'product' => $product->get_id(), 'block' => wc_get_page_id( 'checkout' ), 'classic' => $classic );
