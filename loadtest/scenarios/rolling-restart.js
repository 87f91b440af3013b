// The mix, while all nodes are restarted one after the other, as an update does
// it. These clients repeat nothing but what got no connection.
import { Client } from '../lib/client.js';
import { mixed, Work } from '../lib/mixed.js';
import { always, swift, thresholds, unnoticed } from '../lib/promises.js';
import { begin, report, statistics } from '../lib/report.js';
import { settings } from '../lib/settings.js';
import { Slices } from '../lib/slices.js';

const own = settings('rolling-restart');
const slices = new Slices(own.duration);
const client = new Client(own, slices, 'refused');
const work = new Work(own, client);

// SIGTERM: a node answers all that it has accepted, has every answer close its
// connection, and is gone only then. So whoever tries another node where
// nobody listens sees no failure at all, and that is what this one is for.
const promises = always('No request fails where only refused connections are repeated').concat([
  // An update costs a new connection, and nothing more.
  swift(own, 'operation', 99, unnoticed, 'Nobody notices an update'),
]);

export const options = {
  scenarios: mixed(own, 1),
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
