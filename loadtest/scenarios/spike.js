// Eight times as many new devices within a second, and after a while back to
// the usual rate: a product is in the news.
import exec from 'k6/execution';
import { activated } from '../lib/checks.js';
import { spiked } from '../lib/arrivals.js';
import { Client } from '../lib/client.js';
import { always, swift, thresholds, unnoticed } from '../lib/promises.js';
import { begin, report, statistics } from '../lib/report.js';
import { licenses, settings } from '../lib/settings.js';
import { Slices } from '../lib/slices.js';

const own = settings('spike');
const slices = new Slices(own.duration);
const client = new Client(own, slices);
const fresh = licenses('fresh');

const promises = always().concat([
  // What a node can't serve soon it refuses at once, to be repeated: nobody
  // hangs, spike or not. A second is what Retry-After asks for.
  swift(own, 'operation', 99, 3000, 'In the spike too, everybody is served within seconds'),
  // A spike leaves no queue behind: from 75 % of the time on it is as before.
  swift(own, 'operation_after', 99, unnoticed, 'After the spike all is as before'),
]);

export const options = {
  scenarios: { spike: spiked(own, 'bind', 8, 1.5) },
  thresholds: thresholds(promises),
  summaryTrendStats: statistics,
};

export function setup() {
  return begin(own);
}

export function bind() {
  const i = exec.scenario.iterationInTest;
  const license = fresh[i % fresh.length];
  const device = `device-${own.run}-${i}`;
  client.expect(client.activate(license, device), activated(license, device));
}

export function handleSummary(data) {
  return report(own, slices, promises, data);
}
