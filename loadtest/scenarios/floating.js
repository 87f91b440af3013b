// Floating licenses: devices take a lease, renew it and give it back, devices
// at work renew theirs, crowds compete for the last lease of a license, and
// devices go away without a word, so that others get their leases.
import exec from 'k6/execution';
import { sleep } from 'k6';
import { activatedOrFull, leased, removed } from '../lib/checks.js';
import { steady } from '../lib/arrivals.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';
import { licenses } from '../lib/settings.js';

const scenario = new Scenario('floating');
const { own, client } = scenario;
const shared = licenses('shared'); // each has the devices seed-0 and seed-1
const rushed = licenses('rushed');

const lapsing = licenses('lapsing');

const slots = 5; // of a rushed or a lapsing license, as scenarios.json says
const short = 30; // seconds, of a lease of a lapsing license
const crowd = 20; // devices that compete for the slots
const lease = 86400; // seconds, as scenarios.json says

const promises = always().concat([
  // A lease is a change of the license, like a new device. A renewal that would
  // move the end by less than an eighth of the lease is only a read.
  scenario.swift('operation_activate', 99, unnoticed, 'Leases and renewals do not delay software'),
  scenario.swift('operation_remove', 99, unnoticed, 'Giving back a lease does not delay software'),
]);

export const { options, setup, handleSummary } = scenario.exports({
  work: steady(own, 'work', 0.2, 2),
  again: steady(own, 'again', 0.4, 2),
  rush: steady(own, 'rush', 0.36, 2),
  lapse: steady(own, 'lapse', 0.04, short),
}, promises);

// work is a device from its start to its end. It asks for a longer lease each
// time, so that each renewal is stored.
export function work() {
  const i = exec.scenario.iterationInTest % shared.length;
  const license = shared[i];
  const device = `work-${own.run}-${exec.scenario.iterationInTest}`;
  for (const seconds of [lease / 4, lease / 2, lease]) {
    if (!client.expect(client.activate(license, device, seconds), leased(license, device, seconds))) {
      return;
    }
  }
  client.expect(client.remove(license, device, i), removed(license, device));
}

// again renews the lease of a device that is at work. Its end is not moved yet.
export function again() {
  const i = exec.scenario.iterationInTest;
  const license = shared[i % shared.length];
  const device = `seed-${i % 2}`;
  client.expect(client.activate(license, device), {
    'renewed: has its lease': (a) => a.outcome === 0 && a.data.lease_remaining_seconds > lease * 7 / 8 - 30,
  });
}

// lapse is a device that goes away without giving its lease back, half of them
// after a renewal. There are far more such devices than slots: the proof after
// the load says whether each got a slot that was free, and no other.
export function lapse() {
  const i = exec.scenario.iterationInTest;
  const license = lapsing[i % lapsing.length];
  const device = `lapse-${own.run}-${i}`;
  const answer = client.lease(license, device);
  client.expect(answer, activatedOrFull(license, device, slots));
  if (answer.outcome === 0 && i % 2 === 1) {
    sleep(short / 3);
    client.expect(client.lease(license, device), leased(license, device, short));
  }
}

// rush asks for four times as many leases as a license has.
export function rush() {
  const i = exec.scenario.iterationInTest;
  const license = rushed[Math.floor(i / crowd) % rushed.length];
  const device = `rush-${own.run}-${i}`;
  client.expect(client.activate(license, device), activatedOrFull(license, device, slots));
}
