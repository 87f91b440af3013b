// Devices that are bound already: what installed software does each time it
// starts, which is most of what a licensing service hears.
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
  // A bound device takes no slot and writes nothing but when it was seen, and
  // that in the background: it costs one read of etcd.
  scenario.swift('operation_activate', 50, 25, 'A device that is bound waits for one read of etcd'),
  // Reads share requests to etcd, so that many at a time do not queue up.
  scenario.swift('operation_activate', 99, unnoticed, 'Software that starts is not held up'),
]);

export const { options, setup, handleSummary } = scenario.exports({ reactivate: steady(own, 'again', 1, 2) }, promises);

export function again() {
  const i = exec.scenario.iterationInTest;
  const license = bound[(i * stride) % bound.length];
  const device = `seed-${i % devices}`;
  client.expect(client.activate(license, device), activatedAgain(license, device, devices));
}
