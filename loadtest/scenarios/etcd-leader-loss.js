// The mix, while the leader of three members of etcd is killed, and started
// again later.
import { Client } from '../lib/client.js';
import { mixed, Work } from '../lib/mixed.js';
import { always, swift, thresholds, unnoticed } from '../lib/promises.js';
import { begin, report, statistics } from '../lib/report.js';
import { settings } from '../lib/settings.js';
import { Slices } from '../lib/slices.js';

const own = settings('etcd-leader-loss');
const slices = new Slices(own.duration);
const client = new Client(own, slices);
const work = new Work(own, client);

const promises = always().concat([
  // A new leader is there within a few seconds. What can't be done until then
  // says so, and may be repeated.
  swift(own, 'operation', 'max', 10000, 'Nobody waits longer than ten seconds'),
  // It heals by itself, within ten seconds after the member is back.
  swift(own, 'operation_after', 99, unnoticed, 'With three members again all is as before'),
]);

export const options = {
  scenarios: mixed(own, 8),
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
