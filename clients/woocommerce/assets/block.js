/* Shows the payment method in the checkout block. */
( function ( { wcBlocksRegistry, wcSettings }, { element, htmlEntities } ) {
	const data = wcSettings.getSetting( 'thaiqr_data', {} );
	const title = htmlEntities.decodeEntities( data.title || '' );
	const content = element.createElement( 'div', null, htmlEntities.decodeEntities( data.description || '' ) );
	wcBlocksRegistry.registerPaymentMethod( {
		name: 'thaiqr',
		label: element.createElement( 'span', null, title ),
		ariaLabel: title,
		content,
		edit: content,
		canMakePayment: () => true,
		placeOrderButtonLabel: data.button,
		supports: { features: data.supports || [ 'products' ] },
	} );
} )( window.wc, window.wp );
