// What the check and the pictures share: Chromium, and orders of the service.
import { chromium } from "playwright-core";

export const url = process.env.LICET_URL;

export const launch = () => chromium.launch({
  executablePath: "/usr/bin/chromium",
  args: [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
  ],
});

// api sends a request with the API key, and returns the data of the response.
export async function api(method, path, body) {
  const response = await fetch(url + path, {
    method, body: body && JSON.stringify(body),
    headers: { Authorization: `Bearer ${process.env.LICET_API_KEY}`, "Content-Type": "application/json" },
  });
  const { code, message, data } = await response.json();
  if (code !== 0) throw new Error(`${method} ${path}: ${code} ${message}`);
  return data;
}

export const newOrder = (more) => api("POST", "/v1/orders", {
  product_id: "aurora-pro", amount: 4900, currency: "USD", description: "One year, three devices", ...more,
});

// describeProduct gives the product of newOrder a name.
export const describeProduct = () => api("PUT", "/v1/products/aurora-pro", { name: "Aurora Editor Pro", max_devices: 3 });

// showReference waits until the viewer has drawn the API reference.
export async function showReference(page) {
  await page.waitForFunction(() => {
    const explorer = document.querySelector("openapi-explorer");
    return explorer?.shadowRoot?.querySelector("main") && !explorer.loading;
  });
  await page.waitForTimeout(300);
}
