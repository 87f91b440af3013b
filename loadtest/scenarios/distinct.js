// New devices on many licenses, never two on one license at the same time: the
// load when customers install what they have bought.
import exec from 'k6/execution';
import { activated } from '../lib/checks.js';
import { steady } from '../lib/arrivals.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';
import { licenses } from '../lib/settings.js';

const scenario = new Scenario('distinct');
const { own, client } = scenario;
const fresh = licenses('fresh');

const promises = always().concat([
  // A node swaps against its cached license, so an activation is one request to
  // etcd, which mostly waits for a disk.
  scenario.swift('operation_activate', 50, 50, 'Half of all activations take one round trip to etcd'),
  // Activations wait only for the disk: licenses do not wait for each other.
  scenario.swift('operation_activate', 99, unnoticed, 'Activations take no time that people notice'),
]);

export const { options, setup, handleSummary } = scenario.exports({ distinct: steady(own, 'bind', 1, 2) }, promises);

export function bind() {
  const i = exec.scenario.iterationInTest;
  const license = fresh[i % fresh.length];
  const device = `device-${own.run}-${i}`;
  client.expect(client.activate(license, device), activated(license, device));
}
