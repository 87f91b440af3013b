// Activations of bound devices: installed software sends one at each start,
// and most requests to a licensing service are of this kind.
import exec from 'k6/execution';
import { activatedAgain } from '../lib/checks.js';
import { steady } from '../lib/arrivals.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';
import { licenses } from '../lib/settings.js';

const scenario = new Scenario('reactivate');
const { own, client } = scenario;
const bound = licenses('bound'); // each has the devices seed-0 to seed-2

const devices = 3;
const stride = 7919; // a prime, so that all licenses have their turn in no order

const promises = always().concat([
  // An activation of a bound device takes no slot and costs one read of etcd.
  // The node stores in the background when the device was last seen.
  scenario.swift('operation_activate', 50, 25, 'A bound device waits for one read of etcd'),
  // Reads share requests to etcd, so many reads at a time do not queue up.
  scenario.swift('operation_activate', 99, unnoticed, 'Activations do not delay the start of software'),
]);

export const { options, setup, handleSummary } = scenario.exports({ reactivate: steady(own, 'again', 1, 2) }, promises);

export function again() {
  const i = exec.scenario.iterationInTest;
  const license = bound[(i * stride) % bound.length];
  const device = `seed-${i % devices}`;
  client.expect(client.activate(license, device), activatedAgain(license, device, devices));
}
