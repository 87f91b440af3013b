// Eight times as many new devices within a second, and after a while back to
// the usual rate: a product is in the news.
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
  // What a node can't serve soon it refuses at once, to be repeated: nobody
  // hangs, spike or not. A second is what Retry-After asks for.
  scenario.swift('operation', 99, 3000, 'In the spike too, everybody is served within seconds'),
  // A spike leaves no queue behind: from 75 % of the time on it is as before.
  scenario.swift('operation_after', 99, unnoticed, 'After the spike all is as before'),
]);

export const { options, setup, handleSummary } = scenario.exports({ spike: spiked(own, 'bind', 8, 1.5) }, promises);

export function bind() {
  const i = exec.scenario.iterationInTest;
  const license = fresh[i % fresh.length];
  const device = `device-${own.run}-${i}`;
  client.expect(client.activate(license, device), activated(license, device));
}
