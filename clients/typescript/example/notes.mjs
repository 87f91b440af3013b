// A program that needs a license:
//
//     node notes.mjs [activate LICENSE-KEY | trial | deactivate]
import { randomUUID } from "node:crypto";
import { hostname } from "node:os";
import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { Program } from "licet";
import { FileStore } from "licet/file";

const folder = process.env.NOTES_FOLDER ?? ".notes";

/** Returns an id that stays the same: random, so that it says nothing about the user's hardware. */
function deviceId() {
  mkdirSync(folder, { recursive: true });
  try {
    writeFileSync(`${folder}/device`, randomUUID(), { flag: "wx" });
  } catch (error) {
    if (error.code !== "EEXIST") throw error;
  }
  return readFileSync(`${folder}/device`, "utf8");
}

// A program that you sell has these values built in.
const license = new Program({
  url: process.env.LICET_URL,
  root: process.env.LICET_ROOT,
  accountId: process.env.LICET_ACCOUNT,
  mode: "test",
  productId: "notes",
  deviceId: deviceId(),
  store: new FileStore(`${folder}/license.json`),
  grace: 3 * 24 * 3600, // users may be on a trip
});

const hints = {
  not_activated: "run notes.mjs activate LICENSE-KEY",
  device_limit_reached: "all devices of this license are in use: deactivate one of them",
  stale: "connect to the internet once",
  clock_set_back: "set the clock of this device",
  not_yet_valid: "set the clock of this device",
};

async function main([command, key]) {
  switch (command) {
    case "activate":
      await license.activate(key, { deviceName: hostname() });
      return console.log("activated");
    case "trial":
      await license.trial();
      return console.log("the trial has begun");
    case "deactivate":
      await license.deactivate();
      return console.log("deactivated");
  }
  const check = await license.check();
  if (!check.allowed) throw Object.assign(new Error("no license"), { reason: check.reason });
  console.log(`notes starts, with ${JSON.stringify(check.receipt.entitlements)}`);
}

main(process.argv.slice(2)).catch((error) => {
  console.error(`notes: ${error.message}: ${hints[error.reason] ?? error.reason}`);
  process.exitCode = 1;
});
