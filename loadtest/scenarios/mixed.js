// Orders, payments, lookups, activations and removals side by side.
import { mixed } from '../lib/mixed.js';
import { always, unnoticed } from '../lib/promises.js';
import { Scenario } from '../lib/scenario.js';

const scenario = new Scenario('mixed');

const promises = always().concat([
  // Each kind of work keeps its pace beside the others.
  scenario.swift('operation_activate', 99, unnoticed, 'Activations take no time that people notice'),
  // A lookup is a linearizable read, at the same time as all changes.
  scenario.swift('operation_lookup', 99, unnoticed, 'Lookups do not wait for changes'),
  // An order is one transaction, with the claim of its Idempotency-Key.
  scenario.swift('operation_order', 99, unnoticed, 'Orders are created at once'),
  // So is a payment, with the license that it issues.
  scenario.swift('operation_pay', 99, unnoticed, 'Payments issue the license at once'),
]);

export const {
  options, setup, handleSummary, buy, bind, again, look, churn,
} = mixed(scenario, 2, promises);
