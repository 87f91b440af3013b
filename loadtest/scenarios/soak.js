// The mix at a modest rate for a long time: what grows shows in the end. The
// default is short; give it an hour, or a night, before a release.
import { Client } from '../lib/client.js';
import { mixed, Work } from '../lib/mixed.js';
import { always, swift, thresholds, unnoticed } from '../lib/promises.js';
import { begin, report, statistics } from '../lib/report.js';
import { settings } from '../lib/settings.js';
import { Slices } from '../lib/slices.js';

const own = settings('soak');
const slices = new Slices(own.duration);
const client = new Client(own, slices);
const work = new Work(own, client);

const promises = always().concat([
  // What is done in the background (when devices were seen, what is swept) holds
  // nobody up, all the time long.
  swift(own, 'operation', 99, unnoticed, 'Everything is answered before anybody notices'),
  // Nothing that a node keeps makes it slower as time goes by: the last tenth
  // has the same bound as the whole.
  swift(own, 'operation_after', 99, unnoticed, 'The end is as swift as the beginning'),
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
