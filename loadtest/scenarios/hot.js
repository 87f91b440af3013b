// Many devices at once on the same license: a volume license on the first day
// of school, and crowds that compete for the last slot of a small license.
import exec from 'k6/execution';
import { activated, activatedOrFull } from '../lib/checks.js';
import { steady } from '../lib/arrivals.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';
import { licenses } from '../lib/settings.js';

const scenario = new Scenario('hot');
const { own, client } = scenario;
const crowded = licenses('crowded');
const rushed = licenses('rushed');

const slots = 5; // of a rushed license, as scenarios.json says
const crowd = 20; // devices that compete for the slots

const promises = always().concat([
  // A node folds changes that wait for the same license into one transaction,
  // so one license takes about as many changes a second as many licenses.
  scenario.swift('operation_activate', 99, unnoticed, 'A busy license delays no activation'),
]);

export const { options, setup, handleSummary } = scenario.exports({
  crowd: steady(own, 'comeTogether', 0.5, 2),
  rush: steady(own, 'takeLastSlot', 0.5, 2),
}, promises);

// comeTogether binds one more device to a license without a limit.
export function comeTogether() {
  const device = `crowd-${own.run}-${exec.scenario.iterationInTest}`;
  client.expect(client.activate(crowded[0], device), activated(crowded[0], device));
}

// takeLastSlot activates four times as many devices as there are slots. If a
// response says that the license is full, that must be true: the proof checks
// each such license.
export function takeLastSlot() {
  const i = exec.scenario.iterationInTest;
  const license = rushed[Math.floor(i / crowd) % rushed.length];
  const device = `rush-${own.run}-${i}`;
  client.expect(client.activate(license, device), activatedOrFull(license, device, slots));
}
