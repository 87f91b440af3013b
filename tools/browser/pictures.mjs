// Makes the pictures of the documentation: node pictures.mjs URL-OF-PROMETHEUS FOLDER
import { writeFileSync } from "node:fs";
import { describeProduct, launch, newOrder, showReference, url } from "./browser.mjs";
import { drawDashboard } from "./dashboard.mjs";
import { drawTerminal } from "./terminal.mjs";

const [prometheus, folder] = process.argv.slice(2);
const began = Date.now();

writeFileSync(`${folder}/terminal.svg`, drawTerminal("Buy and activate a license with licet", [
  "license_key=$(licet sandbox buy editor)",
  'licet licenses activate "$license_key" laptop-1',
  "licet licenses list",
]));

await describeProduct();
const order = await newOrder();
const browser = await launch();
for (const colorScheme of ["light", "dark"]) {
  const picture = async (name, address, { width, height, scale, act, whole }) => {
    const context = await browser.newContext({ viewport: { width, height }, colorScheme, deviceScaleFactor: scale });
    const page = await context.newPage();
    await page.goto(address);
    if (act) await act(page);
    await page.screenshot({ path: `${folder}/${name}-${colorScheme}.png`, fullPage: Boolean(whole) });
    await context.close();
  };
  await picture("pay-page", order.pay_url, { width: 440, height: 700, scale: 1.5, whole: true });
  await picture("reference", `${url}/docs#?route=post-/v1/licenses/activate`, {
    width: 1280, height: 800, scale: 1, act: showReference,
  });
}
await browser.close();

const seconds = 180;
await new Promise((done) => setTimeout(done, Math.max(0, began + 1000 * (seconds + 15) - Date.now())));
writeFileSync(`${folder}/dashboard.svg`, await drawDashboard(prometheus, "../../deploy/grafana/licet-overview.json", seconds));
