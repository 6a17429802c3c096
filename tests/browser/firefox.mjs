#!/usr/bin/env node
// Firefox as Playwright expects it: starts $VRAMPLAN_FIREFOX with the arguments given, tells on standard error where it
// listens, and passes WebDriver BiDi on in both directions. Playwright sends every context one command that Firefox does not
// have yet, to override media features; that one is answered here, as done. Nothing else is changed.

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";
import { WebSocket, WebSocketServer } from "../../.cache/npm/ws/wrapper.mjs";

const UNKNOWN = "emulation.setMediaFeaturesOverride";
const LISTENING = "WebDriver BiDi listening on ";
const HOST = "127.0.0.1";

const firefox = spawn(process.env.VRAMPLAN_FIREFOX, process.argv.slice(2), { stdio: ["ignore", "inherit", "pipe"] });
firefox.on("exit", (code) => process.exit(code ?? 1));
for (const signal of ["SIGINT", "SIGTERM"]) process.on(signal, () => firefox.kill(signal));
createInterface({ input: firefox.stderr }).on("line", (line) => {
  if (line.startsWith(LISTENING)) serve(line.slice(LISTENING.length));
  else console.error(line);
});

function serve(address) {
  const server = new WebSocketServer({ host: HOST, port: 0 }, () => console.error(`${LISTENING}ws://${HOST}:${server.address().port}`));
  server.on("connection", (playwright) => {
    const inside = new WebSocket(`${address}/session`);
    const open = new Promise((resolve) => { inside.on("open", resolve); });
    playwright.on("message", async (data) => {
      const { id, method } = JSON.parse(data);
      await open;
      if (method === UNKNOWN) playwright.send(JSON.stringify({ type: "success", id, result: {} }));
      else inside.send(String(data));
    });
    inside.on("message", (data) => playwright.send(String(data)));
    inside.on("close", () => playwright.close());
    playwright.on("close", () => inside.close());
  });
}
