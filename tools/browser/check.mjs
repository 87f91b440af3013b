// Opens each page at 390 and 1280 px, light and dark, and fails on any violation that axe-core finds, error in the
// console, violation of the page's Content-Security-Policy, request to another origin, and content wider than the
// window. Leaves a picture of each page in shots.
import { mkdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import { api, describeProduct, launch, newOrder, showReference, url } from "./browser.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");
rmSync("shots", { recursive: true, force: true });
mkdirSync("shots");

// changed makes an order, sends a request for it, and returns the order's pay page.
const changed = async (method, action, more) => {
  const order = await newOrder(more);
  await api(method, `/v1/orders/${order.order_no}/${action}`);
  return order.pay_url;
};
const played = async (...actions) => {
  const order = await newOrder();
  for (const action of actions) await api("PUT", `/v1/orders/${order.order_no}/sandbox`, { action });
  return order.pay_url;
};
const paid = (more) => changed("PUT", "sandbox_payment", more);
await describeProduct();
const expiring = await newOrder();
const orders = {
  paid: await paid(), linked: await paid({ success_url: "https://shop.example.com/thanks" }),
  canceled: await changed("POST", "cancel"), refunded: await paid(),
};
await api("POST", `/v1/orders/${new URL(orders.refunded).pathname.split("/")[2]}/refund`);

// Each page: its address, the status of the response, and what to do on it first.
const pages = {
  home: {
    at: "/",
    act: async (page) => {
      await page.getByRole("button", { name: "Copy" }).first().click();
      const copied = await page.evaluate(() => navigator.clipboard.readText());
      if (!copied.endsWith("/dev.env\n")) throw new Error(`the button copied ${copied}`);
    },
  },
  reference: { at: "/docs", act: showReference },
  operation: { at: "/docs#?route=post-/v1/orders", act: showReference },
  errors: { at: "/docs/errors#40901" },
  unpaid: { at: async () => (await newOrder()).pay_url },
  cancel: { at: async () => (await newOrder()).pay_url, act: (page) => page.locator("summary").click() },
  declined: { at: () => played("decline") },
  pending: { at: () => played("pay_later") },
  paid: { at: orders.paid },
  linked: { at: orders.linked },
  canceled: { at: orders.canceled },
  refunded: { at: orders.refunded },
  missing: { at: "/pay/ord_0/wrong", status: 404 },
  problem: {
    at: async () => (await newOrder()).pay_url, status: 400,
    act: async (page) => {
      await page.locator("button.primary").evaluate((button) => { button.value = "nothing"; });
      await page.locator("button.primary").click();
      await page.waitForLoadState();
    },
  },
  expired: {
    at: async () => {
      while ((await api("GET", `/v1/orders/${expiring.order_no}`)).status !== "expired") {
        await new Promise((done) => setTimeout(done, 200));
      }
      return expiring.pay_url;
    },
  },
};

// look checks a page as it is drawn now, and returns the problems.
async function look(page, name) {
  const problems = [];
  const [content, room] = await page.evaluate(() => {
    const root = document.scrollingElement;
    return [root.scrollWidth, root.clientWidth];
  });
  if (content > room) problems.push(`the content is ${content} px wide, the window ${room} px`);
  const { violations, passes } = await page.evaluate(() => axe.run());
  if (passes.length < 5) problems.push(`axe-core checked only ${passes.length} rules`);
  for (const { id, help, nodes } of violations) {
    const places = nodes.slice(0, 5).map((n) => `${n.target.flat().join(" ")}: ${n.failureSummary.split("\n")[1] ?? ""}`);
    problems.push(`${id}: ${help}, ${nodes.length} times\n    ${places.join("\n    ")}`);
  }
  await page.screenshot({ path: `shots/${name}.png` });
  return problems;
}

const browser = await launch();
let failures = 0, checked = 0;
async function check(name, { at, act, status = 200 }, width) {
  const context = await browser.newContext({ viewport: { width, height: 844 }, colorScheme: "light", reducedMotion: "reduce" });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  const problems = [];
  page.on("console", (message) => {
    // The console names the status of a page that is an error on purpose.
    const expected = status !== 200 && message.text().includes(`status of ${status}`);
    if (["error", "warning"].includes(message.type()) && !expected) problems.push(`console: ${message.text()}`);
  });
  page.on("pageerror", (error) => problems.push(`script: ${error}`));
  page.on("request", (request) => {
    const target = new URL(request.url());
    if (target.origin !== url && target.protocol !== "data:") problems.push(`request to ${request.url()}`);
  });
  let got;
  page.on("response", (response) => {
    if (response.request().isNavigationRequest()) got = response.status();
  });
  const address = typeof at === "function" ? await at() : at;
  await page.goto(new URL(address, url).href);
  if (act) await act(page);
  if (got !== status) problems.push(`status ${got}, want ${status}`);
  await page.evaluate(axe);
  for (const colorScheme of ["light", "dark"]) {
    await page.emulateMedia({ colorScheme });
    problems.push(...(await look(page, `${name}-${width}-${colorScheme}`)).map((problem) => `${colorScheme}: ${problem}`));
    checked++;
  }
  for (const problem of problems) console.error(`${name}, ${width} px: ${problem}`);
  failures += problems.length;
  await context.close();
}

// Two pages at a time.
const jobs = Object.entries(pages).flatMap(([name, page]) => [390, 1280].map((width) => () => check(name, page, width)));
await Promise.all([1, 2].map(async () => {
  while (jobs.length > 0) {
    await jobs.shift()();
  }
}));
await browser.close();
console.log(`${checked} views checked, ${failures} problems`);
process.exitCode = failures === 0 ? 0 : 1;
