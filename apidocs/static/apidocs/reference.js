// Shows the OpenAPI document with Redoc.
const place = document.getElementById("reference");

const isDark = matchMedia("(prefers-color-scheme: dark)").matches;
const color = isDark
  ? { ink: "#e8edf3", soft: "#9aa9ba", line: "#2c3948", paper: "#17212d", ground: "#0d141c", link: "#7cb7ff" }
  : { ink: "#16202c", soft: "#5c6b7c", line: "#dfe5ec", paper: "#eef2f7", ground: "#fff", link: "#12589e" };
const font = 'system-ui, "Noto Sans Thai", "Noto Sans", sans-serif';
const theme = {
  breakpoints: { medium: "60rem", large: "90rem" },
  colors: {
    primary: { main: color.link },
    text: { primary: color.ink, secondary: color.soft },
    border: { dark: color.line, light: color.line },
    gray: { 50: color.paper, 100: color.paper },
    success: { main: isDark ? "#4fc78e" : "#137a4b" },
    error: { main: isDark ? "#ff8a80" : "#b3261e" },
  },
  schema: {
    linesColor: color.line,
    nestedBackground: color.paper,
    typeNameColor: color.soft,
    typeTitleColor: color.soft,
    requireLabelColor: isDark ? "#ff8a80" : "#b3261e",
    arrow: { color: color.soft },
  },
  sidebar: { backgroundColor: color.paper, textColor: color.ink, activeTextColor: color.link },
  rightPanel: { backgroundColor: "#12263a", servers: { overlay: { backgroundColor: color.paper, textColor: color.ink } } },
  codeBlock: { backgroundColor: "#0b1a2b" },
  typography: {
    fontFamily: font,
    headings: { fontFamily: font },
    code: { backgroundColor: color.paper, color: color.ink, wrap: true },
    links: { color: color.link, visited: color.link, hover: color.link },
  },
};

// Redoc loads a logo from a server of its maker, which our policy refuses. After an error it shows none.
const LOGO = "https://cdn.redoc.ly/redoc/logo-mini.svg";
const image = HTMLImageElement.prototype;
const source = Object.getOwnPropertyDescriptor(image, "src");
Object.defineProperty(image, "src", {
  ...source,
  set(url) { if (url !== LOGO) source.set.call(this, url); },
});
image.setAttribute = function (name, value) {
  if (value !== LOGO) Element.prototype.setAttribute.call(this, name, value);
  else queueMicrotask(() => this.dispatchEvent(new Event("error")));
};

async function load(path) {
  const answer = await fetch(path);
  if (!answer.ok) throw new Error(`${path} answered ${answer.status}`);
  return answer.json();
}

async function show() {
  const [schema, samples] = await Promise.all([load(place.dataset.schema), load(place.dataset.samples)]);
  for (const operation of Object.values(schema.paths).flatMap(Object.values)) {
    if (operation.operationId in samples) operation["x-codeSamples"] = samples[operation.operationId];
  }
  const options = {
    theme,
    hideDownloadButtons: true, // the links above
    jsonSamplesExpandLevel: 4,
    payloadSampleIdx: 3, // after the samples in three languages
    scrollYOffset: "nav",
    sortRequiredPropsFirst: true,
  };
  window.Redoc.init(schema, options, place);
}

show().catch((error) => { place.textContent = `The reference cannot be shown: ${error.message}`; });
