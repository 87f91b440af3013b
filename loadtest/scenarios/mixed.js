// Orders, payments, lookups, activations and removals side by side.
import { Client } from '../lib/client.js';
import { mixed, Work } from '../lib/mixed.js';
import { always, swift, thresholds, unnoticed } from '../lib/promises.js';
import { begin, report, statistics } from '../lib/report.js';
import { settings } from '../lib/settings.js';
import { Slices } from '../lib/slices.js';

const own = settings('mixed');
const slices = new Slices(own.duration);
const client = new Client(own, slices);
const work = new Work(own, client);

const promises = always().concat([
  // Each kind of work keeps its pace beside the others.
  swift(own, 'operation_activate', 99, unnoticed, 'An activation is answered before anybody notices'),
  // It is read, linearizable, beside all the changes.
  swift(own, 'operation_lookup', 99, unnoticed, 'A lookup waits for no change'),
  // An order is one transaction, with the claim of its Idempotency-Key.
  swift(own, 'operation_order', 99, unnoticed, 'An order is made at once'),
  // So is a payment, with the license that it issues.
  swift(own, 'operation_pay', 99, unnoticed, 'The license is there as soon as it is paid for'),
]);

export const options = {
  scenarios: mixed(own, 2),
  thresholds: thresholds(promises),
  summaryTrendStats: statistics,
};

export function setup() {
  return begin(own);
}

export const buy = () => work.buy();
export const bind = () => work.bind();
export const again = () => work.again();
export const look = () => work.look();
export const churn = () => work.churn();

export function handleSummary(data) {
  return report(own, slices, promises, data);
}
