// Orders, payments, lookups, activations and removals side by side.
import { mixed } from '../lib/mixed.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';

const scenario = new Scenario('mixed');

const promises = always().concat([
  // Each kind of work keeps its pace beside the others.
  scenario.swift('operation_activate', 99, unnoticed, 'An activation is answered before anybody notices'),
  // It is read, linearizable, beside all the changes.
  scenario.swift('operation_lookup', 99, unnoticed, 'A lookup waits for no change'),
  // An order is one transaction, with the claim of its Idempotency-Key.
  scenario.swift('operation_order', 99, unnoticed, 'An order is made at once'),
  // So is a payment, with the license that it issues.
  scenario.swift('operation_pay', 99, unnoticed, 'The license is there as soon as it is paid for'),
]);

export const {
  options, setup, handleSummary, buy, bind, again, look, churn,
} = mixed(scenario, 2, promises);
