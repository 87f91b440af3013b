// The mix, while the leader of three members of etcd is killed, and started
// again later.
import { mixed } from '../lib/mixed.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';

const scenario = new Scenario('etcd-leader-loss');

const promises = always().concat([
  // A new leader is there within a few seconds. What can't be done until then
  // says so, and may be repeated.
  scenario.swift('operation', 'max', 10000, 'Nobody waits longer than ten seconds'),
  // It heals by itself, within ten seconds after the member is back.
  scenario.swift('operation_after', 99, unnoticed, 'With three members again all is as before'),
]);

export const {
  options, setup, handleSummary, buy, bind, again, look, churn,
} = mixed(scenario, 8, promises);
