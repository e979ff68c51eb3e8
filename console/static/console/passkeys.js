// A button that makes or uses a passkey, and sends the answer of the browser with its form.

for (const form of document.querySelectorAll("form[data-passkey]")) {
    const isNew = form.dataset.passkey === "create";
    const parse = isNew ? "parseCreationOptionsFromJSON" : "parseRequestOptionsFromJSON";
    if (!window.PublicKeyCredential?.[parse]) continue;
    form.hidden = false;
    form.addEventListener("submit", async (event) => {
        event.preventDefault();
        const publicKey = PublicKeyCredential[parse](JSON.parse(form.dataset.options));
        try {
            const credential = await navigator.credentials[isNew ? "create" : "get"]({ publicKey });
            form.elements.namedItem(form.dataset.answer).value = JSON.stringify(credential);
        } catch (error) {
            form.querySelector(".errorlist").hidden = false;
            return;
        }
        // A repeated field of another form may have the name "submit".
        HTMLFormElement.prototype.submit.call(form);
    });
}
