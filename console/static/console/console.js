// The menu button, cells that copy, labels of cells on a phone, and shortcuts. Every page works without it.
"use strict";

const menuButton = document.querySelector(".menu-button");

function showMenu(isOpen) {
    document.body.classList.toggle("menu-open", isOpen);
    menuButton.setAttribute("aria-expanded", String(isOpen));
}

menuButton?.addEventListener("click", () => showMenu(!document.body.classList.contains("menu-open")));

// What the till keeps for a lost network is of the person who is logged in.
const logout = document.querySelector("#logout-form");
const forget = () => globalThis.caches?.delete("till");
if (logout) logout.addEventListener("submit", forget);
else forget();

// On a phone a row of a list is a card, and each value stands beside the title of its column.
for (const table of document.querySelectorAll("#result_list, table.cards")) {
    const titles = [...table.querySelectorAll("thead th")].map((cell) => cell.textContent.trim());
    for (const row of table.tBodies[0]?.rows ?? []) {
        [...row.cells].forEach((cell, index) => {
            if (titles[index] && cell.colSpan === 1) cell.dataset.title = titles[index];
        });
    }
}

const copyLabel = document.querySelector("#header")?.dataset.copy ?? "Copy";
for (const id of document.querySelectorAll(".id[title]")) {
    const button = document.createElement("button");
    Object.assign(button, { type: "button", className: "copy", value: id.title, ariaLabel: `${copyLabel} ${id.title}` });
    (id.closest("a") ?? id).after(button);
}

document.addEventListener("click", async (event) => {
    const button = event.target.closest("button.copy");
    if (button) {
        event.preventDefault();
        await navigator.clipboard.writeText(button.value);
        button.classList.add("copied");
        setTimeout(() => button.classList.remove("copied"), 1200);
    }
    for (const popup of document.querySelectorAll("details.account[open], details.filter[open]")) {
        if (!popup.contains(event.target)) popup.open = false;
    }
});

// A second click on the button of an act sends nothing: the answer to it would hide what is shown once.
document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.matches("form.act")) return;
    const passkey = form.querySelector("#passkey-add");
    if (passkey) { // Enter in the name; allauth sends the form with the answer of the browser
        event.preventDefault();
        passkey.click();
        return;
    }
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "1";
});
document.addEventListener("allauth.error", (event) => {
    event.preventDefault();
    for (const line of document.querySelectorAll(".passkey-failed")) line.hidden = false;
});
window.addEventListener("pageshow", () => {
    for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// "/" goes to the search, "j" and "k" to the next and previous row, "Enter" opens it.
const rows = [...document.querySelectorAll("#result_list tbody tr")];
let chosen = -1;

function choose(index) {
    if (!rows.length) return;
    rows[chosen]?.classList.remove("chosen");
    chosen = Math.max(0, Math.min(rows.length - 1, index));
    rows[chosen].classList.add("chosen");
    rows[chosen].scrollIntoView({ block: "nearest" });
    rows[chosen].querySelector("th a, td a")?.focus();
}

// Escape closes what is open, and gives the focus back to what opened it.
function closePopup() {
    const popup = document.querySelector("details.account[open], details.filter[open]");
    if (popup) {
        popup.open = false;
        popup.querySelector("summary").focus();
    } else if (document.body.classList.contains("menu-open")) {
        showMenu(false);
        menuButton.focus();
    } else if (document.activeElement.matches("#search, #searchbar")) document.activeElement.blur();
}

document.addEventListener("keydown", (event) => {
    if (event.key === "Escape") closePopup();
    if (event.ctrlKey || event.metaKey || event.altKey || event.target.closest("input, textarea, select")) return;
    const search = document.querySelector("#search, #searchbar");
    if (event.key === "/" && search) {
        event.preventDefault();
        search.focus();
        search.select();
    } else if (event.key === "j") choose(chosen + 1);
    else if (event.key === "k") choose(chosen - 1);
});

// What is found for the text of a field, unless it has changed meanwhile.
async function askFor(input, url) {
    const typed = input.value;
    const answer = await fetch(`${url}?${new URLSearchParams({ q: typed })}`);
    return answer.ok && !answer.redirected && typed === input.value ? answer : null;
}

// What the search finds while somebody types: a combobox with a list (WAI-ARIA). Without it, Enter sends the form.
const search = document.querySelector("#search"), found = document.querySelector("#found");
const chosenOption = () => found.querySelector("[aria-selected=true]");

function chooseOption(option) {
    chosenOption()?.setAttribute("aria-selected", "false");
    option?.setAttribute("aria-selected", "true");
    option?.scrollIntoView({ block: "nearest" });
    search.setAttribute("aria-activedescendant", option?.id ?? "");
}

function showFound(isOpen) {
    found.hidden = !isOpen;
    search.setAttribute("aria-expanded", String(isOpen));
    chooseOption(null);
}

function pressInSearch(event) {
    if (found.hidden || event.isComposing) return;
    const options = [null, ...found.children], at = Math.max(0, options.indexOf(chosenOption()));
    const step = { ArrowDown: 1, ArrowUp: options.length - 1 }[event.key];
    if (step) chooseOption(options[(at + step) % options.length]);
    else if (event.key === "Enter" && at) options[at].click();
    else if (event.key === "Escape") showFound(false);
    else return;
    event.preventDefault();
    event.stopPropagation();
}

if (search) {
    const roles = { role: "combobox", "aria-autocomplete": "list", "aria-controls": "found", "aria-expanded": "false" };
    for (const [name, value] of Object.entries(roles)) search.setAttribute(name, value);
    let waiting;
    search.addEventListener("input", () => {
        clearTimeout(waiting);
        showFound(false);
        if (search.value.trim().length > 1) waiting = setTimeout(async () => {
            const answer = await askFor(search, search.dataset.typed);
            if (!answer || document.activeElement !== search) return;
            found.innerHTML = await answer.text();
            showFound(true);
            document.querySelector("#found-count").textContent = found.lastElementChild.dataset.count;
        }, 200);
    });
    search.addEventListener("keydown", pressInSearch);
    search.addEventListener("blur", () => showFound(false));
    found.addEventListener("pointerdown", (event) => event.preventDefault()); // the focus stays
    found.addEventListener("click", (event) => location.assign((event.target.closest("li") ?? found.lastElementChild).dataset.url));
}

// Merchants for what is typed into a filter.
for (const input of document.querySelectorAll("input[data-suggestions]")) {
    let waiting;
    input.addEventListener("input", () => {
        clearTimeout(waiting);
        waiting = setTimeout(async () => {
            const answer = await askFor(input, input.dataset.suggestions);
            if (!answer) return;
            const { suggestions } = await answer.json();
            input.list.replaceChildren(...suggestions.map((text) => Object.assign(document.createElement("option"), { value: text })));
        }, 150);
    });
}
