// The mix, while one node of three is killed and another one is drained: one is
// left. Clients go to another node where one is gone.
import { Client } from '../lib/client.js';
import { mixed, Work } from '../lib/mixed.js';
import { always, swift, thresholds, unnoticed } from '../lib/promises.js';
import { begin, report, statistics } from '../lib/report.js';
import { settings } from '../lib/settings.js';
import { Slices } from '../lib/slices.js';

const own = settings('node-loss');
const slices = new Slices(own.duration);
const client = new Client(own, slices, 'unanswered');
const work = new Work(own, client);

const promises = always().concat([
  // A killed node takes the answers along that it owed; whoever asks another
  // node gets one, and nothing is done twice.
  swift(own, 'operation', 99, 2000, 'Asking another node helps at once'),
  // One node does the work of three.
  swift(own, 'operation_after', 99, unnoticed, 'One node that is left is enough'),
]);

export const options = {
  scenarios: mixed(own, 4),
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
