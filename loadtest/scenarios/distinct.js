// New devices on many licenses, no two at once on one: what a service does
// whose customers install what they have bought.
import exec from 'k6/execution';
import { activated } from '../lib/checks.js';
import { steady } from '../lib/arrivals.js';
import { Client } from '../lib/client.js';
import { always, swift, thresholds, unnoticed } from '../lib/promises.js';
import { begin, report, statistics } from '../lib/report.js';
import { licenses, settings } from '../lib/settings.js';
import { Slices } from '../lib/slices.js';

const own = settings('distinct');
const slices = new Slices(own.duration);
const client = new Client(own, slices);
const fresh = licenses('fresh');

const promises = always().concat([
  // A node swaps against what it remembers of a license, so that an activation
  // is one request to etcd, and that mostly waits for a disk.
  swift(own, 'operation_activate', 50, 50, 'Half of all activations take one round trip to etcd'),
  // What waits, waits for the disk only: licenses do not wait for each other.
  swift(own, 'operation_activate', 99, unnoticed, 'An activation is answered before anybody notices'),
]);

export const options = {
  scenarios: { distinct: steady(own, 'bind', 1, 2) },
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
