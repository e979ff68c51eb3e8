// The search of the guide, copy buttons, and a closed menu on phones. Pages are complete without it.
const box = document.querySelector(".search");
const input = box.querySelector("input");
const results = document.getElementById("results");
const MOST_RESULTS = 12;
const AROUND = 70; // characters on each side of the first word that was found
let loading = null;

// Thai has no spaces between words, so a query is split by the words of the language, not by spaces alone.
const segmenter = window.Intl?.Segmenter && new Intl.Segmenter("th", { granularity: "word" });
const isThai = /[\u0e00-\u0e7f]/;

function wordsOf(query) {
  const parts = query.toLowerCase().split(/\s+/).filter(Boolean);
  const split = (part) =>
    segmenter && isThai.test(part) ? [...segmenter.segment(part)].map(({ segment }) => segment) : [part];
  return [...new Set(parts.flatMap(split))];
}

function score(passage, words) {
  let sum = 0;
  for (const word of words) {
    const inHeading = passage.names.includes(word);
    if (!inHeading && !passage.lower.includes(word)) return 0;
    sum += (inHeading ? 10 : 0) + Math.min(passage.lower.split(word).length - 1, 5);
  }
  return sum;
}

async function load() {
  const answer = await fetch(input.dataset.index);
  if (!answer.ok) throw new Error(`The search answered ${answer.status}`);
  return (await answer.json()).map((passage) => ({
    ...passage,
    names: `${passage.page} ${passage.heading}`.toLowerCase(),
    lower: passage.text.toLowerCase(),
  }));
}

// The text with each word in a <mark>. Text nodes only: nothing of a page or a query becomes HTML.
function marked(text, words) {
  const place = document.createElement("small");
  const pattern = new RegExp(`(${words.map((word) => word.replace(/[.*+?^${}()|[\]\\]/g, "\\$&")).join("|")})`, "gi");
  text.split(pattern).forEach((part, index) => {
    const node = index % 2 ? document.createElement("mark") : document.createTextNode(part);
    if (index % 2) node.textContent = part;
    place.append(node);
  });
  return place;
}

function excerpt(passage, words) {
  const found = Math.min(...words.map((word) => passage.lower.indexOf(word)).filter((at) => at >= 0), passage.text.length);
  const early = found < passage.text.length ? Math.max(0, found - AROUND) : 0;
  const start = early && Math.min(passage.text.indexOf(" ", early) + 1 || early, found); // not within a word
  return (start ? "… " : "") + passage.text.slice(start, start + 2 * AROUND) + " …";
}

function linkTo(passage, words) {
  const link = document.createElement("a");
  link.href = passage.url;
  const title = document.createElement("strong");
  title.textContent = passage.heading;
  link.append(title, ` · ${passage.page}`, marked(excerpt(passage, words), words));
  return link;
}

function say(text) {
  const line = document.createElement("p");
  line.textContent = text;
  results.replaceChildren(line);
}

async function search() {
  results.hidden = input.value.trim() === "";
  if (results.hidden) return;
  let passages;
  try {
    passages = await (loading ??= load());
  } catch (error) {
    loading = null;
    return say(error.message);
  }
  const words = wordsOf(input.value); // perhaps more was typed meanwhile
  const found = passages
    .map((passage) => [score(passage, words), passage])
    .filter(([points]) => points > 0)
    .sort(([a], [b]) => b - a)
    .slice(0, MOST_RESULTS);
  if (found.length === 0) return say(input.dataset.nothing);
  results.replaceChildren(...found.map(([, passage]) => linkTo(passage, words)));
}

function move(event) {
  const links = [...results.querySelectorAll("a")];
  const at = links.indexOf(document.activeElement);
  if (event.key === "Escape") {
    results.hidden = true;
    input.focus();
  } else if (event.key === "ArrowDown" && links.length) {
    event.preventDefault();
    links[Math.min(at + 1, links.length - 1)].focus();
  } else if (event.key === "ArrowUp" && at >= 0) {
    event.preventDefault();
    (links[at - 1] ?? input).focus();
  } else if (event.key === "Enter" && at < 0) {
    links[0]?.click();
  }
}

box.hidden = false;
input.addEventListener("input", search);
input.addEventListener("focus", search);
box.addEventListener("keydown", move);
results.addEventListener("click", () => { results.hidden = true; });
document.addEventListener("click", (event) => { if (!box.contains(event.target)) results.hidden = true; });
document.addEventListener("keydown", (event) => {
  if (event.key === "/" && !event.target.closest("input, textarea")) {
    event.preventDefault();
    input.focus();
  }
});

const { copy, copied } = document.getElementById("content").dataset;
for (const block of document.querySelectorAll("main pre")) {
  const sample = document.createElement("div");
  const button = document.createElement("button");
  sample.className = "sample";
  button.textContent = copy;
  button.addEventListener("click", async () => {
    await navigator.clipboard.writeText(block.textContent);
    button.textContent = copied;
    setTimeout(() => { button.textContent = copy; }, 2000);
  });
  block.replaceWith(sample);
  sample.append(block, button);
}

for (const heading of document.querySelectorAll("main :is(h2, h3)[id]")) {
  const link = document.createElement("a");
  link.className = "anchor";
  link.href = `#${heading.id}`;
  link.textContent = "#";
  link.setAttribute("aria-label", `Link to ${heading.textContent}`);
  heading.append(link);
}

if (matchMedia("(max-width: 48rem)").matches) document.querySelector(".menu details").open = false;
