// The page in a frame of another page: tells that page how high it is and what Python says, and hears from it. What the
// messages are is in README.md. Whoever is around the frame is not known, so nothing is sent but what the link would say,
// and whatever is heard goes to Python as text, to be read like a link.

const VERSION = 1;
const MAX_TEXT = 20000; // characters of a message that are read
const { dataset } = document.documentElement;
const framed = dataset.embed !== undefined && parent !== globalThis;
const said = new Map();
let hear = () => {};

function send(message) {
  said.set(message.type === "height" ? "height" : "run", message);
  parent.postMessage(message, "*");
}

/** The message as text; nothing where it is not data, too long, or not from the page around this one. */
function text({ source, data }) {
  if (source !== parent || data === null || typeof data !== "object" || data.vramplan !== VERSION) return "";
  try {
    const written = JSON.stringify(data);
    return written.length <= MAX_TEXT ? written : "";
  } catch {
    return "";
  }
}

/** For Python: tell(JSON) sends a message, listen(function) hears of those that come. */
export const frame = {
  tell: (message) => { if (framed) send(JSON.parse(message)); },
  listen: (function_) => { hear = function_; },
};

/** Begin: tell the height whenever it changes, and everything again to whoever asks. */
export function startFrame() {
  if (dataset.embed === undefined) return;
  const full = new URLSearchParams(location.search);
  for (const key of ["embed", "panels", "lock", "theme"]) full.delete(key);
  document.getElementById("full-page").search = full; // Python keeps it up to date
  if (!framed) return;
  const height = () => {
    const needed = Math.ceil(document.body.getBoundingClientRect().height);
    if (needed && said.get("height")?.height !== needed) send({ vramplan: VERSION, type: "height", height: needed });
  };
  new ResizeObserver(height).observe(document.body);
  addEventListener("message", (event) => {
    const written = text(event);
    if (!written) return;
    if (event.data.type === "ask") said.forEach((message) => parent.postMessage(message, "*"));
    else hear(written);
  });
}
