// Everybody at once on the same license: a volume license on the first day of
// school, and crowds that want the last slot of a small one.
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
const crowd = 20; // devices that want one of them

const promises = always().concat([
  // Changes that wait for the same license are folded into one transaction, so
  // that one license takes about what many do.
  scenario.swift('operation_activate', 99, unnoticed, 'A license that everybody wants makes nobody wait'),
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

// takeLastSlot has four times as many devices come as there are slots. Those
// that are told that it is full must be right: the proof looks at each license
// that said so.
export function takeLastSlot() {
  const i = exec.scenario.iterationInTest;
  const license = rushed[Math.floor(i / crowd) % rushed.length];
  const device = `rush-${own.run}-${i}`;
  client.expect(client.activate(license, device), activatedOrFull(license, device, slots));
}
