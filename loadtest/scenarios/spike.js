// The rate of new devices rises to eight times the usual rate within a second,
// and falls again after a while: a product is in the news.
import exec from 'k6/execution';
import { activated } from '../lib/checks.js';
import { spiked } from '../lib/arrivals.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';
import { licenses } from '../lib/settings.js';

const scenario = new Scenario('spike');
const { own, client } = scenario;
const fresh = licenses('fresh');

const promises = always().concat([
  // A node refuses at once what it can't serve soon, and the client retries: no
  // request hangs, even in the spike. Retry-After asks for one second.
  scenario.swift('operation', 99, 3000, 'All requests are served within seconds, even in the spike'),
  // A spike leaves no queue behind: from 75 % of the time on it is as before.
  scenario.swift('operation_after', 99, unnoticed, 'After the spike, operations are as fast as before'),
]);

export const { options, setup, handleSummary } = scenario.exports({ spike: spiked(own, 'bind', 8, 1.5) }, promises);

export function bind() {
  const i = exec.scenario.iterationInTest;
  const license = fresh[i % fresh.length];
  const device = `device-${own.run}-${i}`;
  client.expect(client.activate(license, device), activated(license, device));
}
