// The mix, while the leader of three members of etcd is killed, and started
// again later.
import { mixed } from '../lib/mixed.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';

const scenario = new Scenario('etcd-leader-loss');

const promises = always().concat([
  // etcd elects a new leader within a few seconds. Until then, failed requests
  // are retryable.
  scenario.swift('operation', 'max', 10000, 'No operation takes longer than ten seconds'),
  // The service recovers by itself, within ten seconds after the member is back.
  scenario.swift('operation_after', 99, unnoticed, 'With three members again, operations are as fast as before'),
]);

export const {
  options, setup, handleSummary, buy, bind, again, look, churn,
} = mixed(scenario, 8, promises);
