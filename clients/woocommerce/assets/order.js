/* Asks the shop whether the order is paid, and loads the page again when its state changes. */
( function () {
	const shown = document.querySelector( '.thaiqr-state' );
	const started = Date.now();
	// As the payment page of the service: often for ten minutes, then less; for an hour after the code has ended.
	const wait = () => ( Date.now() - started < 600000 ? 2000 : 10000 );
	async function look() {
		if ( ! document.hidden ) {
			try {
				const answer = await fetch( shown.dataset.url, { cache: 'no-store' } );
				const { state } = answer.ok ? await answer.json() : {};
				if ( state === 'paid' ) {
					window.location.replace( shown.dataset.paid );
					return;
				}
				if ( state && state !== shown.dataset.state ) {
					window.location.reload();
					return;
				}
			} catch ( error ) {
				// No network: it looks again.
			}
		}
		if ( Date.now() - started < 3600000 ) {
			setTimeout( look, wait() );
		}
	}
	if ( shown ) {
		setTimeout( look, wait() );
	}
} )();
