// An exemplary client: it spreads its requests over all nodes, checks bodies
// and not only statuses, and sends a request again only if that is harmless.
import http from 'k6/http';
import exec from 'k6/execution';
import { check, sleep } from 'k6';
import { Counter, Trend } from 'k6/metrics';
import { journal } from './journal.js';

// k6's codes for connections that could not be opened: nothing was sent.
const neverConnected = (code) => (code >= 1100 && code < 1200) || (code >= 1210 && code < 1220);

const patience = 20; // seconds until the client gives up a request, with all its tries
const timeout = '10s'; // of one try: a node gives up after 4 s

// The outcomes of tries without a response in an envelope.
export const refused = 'refused'; // no connection
export const broken = 'broken'; // a connection that ended without a response

// The names of a client's operations.
export const operations = ['activate', 'remove', 'lookup', 'order', 'pay', 'cancel', 'order lookup'];
const metric = (text) => text.replace(/ /g, '_');

// Client is made once, in the init context. repeat says which requests the
// client sends again. 'retryable': requests whose response allows it.
// 'unanswered': these, and requests without any response; that is safe here,
// since no request of a client has an effect twice. 'refused': neither. If a
// connection can't be opened, the client always tries the next node.
export class Client {
  constructor(own, repeat = 'retryable') {
    this.own = own;
    this.repeat = repeat;
    this.all = new Trend('operation', true); // from the first try to the final response
    this.after = new Trend('operation_after', true); // operations that begin after own.recovered
    this.each = {};
    for (const op of operations) {
      this.each[op] = new Trend(`operation_${metric(op)}`, true);
    }
    this.failed = new Counter('operations_failed');
    this.repeated = {};
    for (const why of [refused, broken, '50300', '50301', '50400', 'other']) {
      this.repeated[why] = new Counter(`repeated_${why}`);
    }
  }

  // send sends a request until it gets a final response, and returns the
  // response. send calls note for each try, since each try may have had an
  // effect, with the client and the times that the journal needs.
  send(op, method, path, options, note) {
    const { targets } = this.own;
    // Each operation starts at another node.
    const first = exec.vu.idInTest + exec.vu.iterationInInstance;
    const begun = Date.now();
    let repeated = false;
    for (let tries = 0; ; tries++) {
      const sent = Date.now();
      const response = http.request(method, targets[(first + tries) % targets.length] + path, options.body || null, {
        headers: options.headers || {},
        tags: { name: op },
        redirects: 0,
        timeout,
      });
      const answer = read(response);
      answer.repeated = repeated;
      if (note) {
        note(answer, `${exec.vu.idInTest} ${sent} ${Date.now()}`);
      }
      const wait = this.wait(answer, tries);
      if (wait === null || Date.now() - begun > patience * 1000) {
        // k6 times single requests to the microsecond, and Date does not.
        const took = tries > 0 ? Date.now() - begun : response.timings.blocked + response.timings.connecting + response.timings.duration;
        this.count(op, begun, took, answer);
        return answer;
      }
      repeated = true;
      (this.repeated[answer.outcome] || this.repeated.other).add(1);
      sleep(wait);
    }
  }

  // wait returns how many seconds to wait before the same request is sent
  // again; null: the request must not be sent again.
  wait(answer, tries) {
    if (answer.outcome === refused) {
      // If no node is up, faster tries do not help.
      return (tries + 1) % this.own.targets.length === 0 ? 0.2 : 0;
    }
    if (answer.outcome === broken) {
      return this.repeat === 'unanswered' ? 0 : null;
    }
    return answer.retryable && this.repeat !== 'refused' ? answer.retryAfter : null;
  }

  count(op, begun, took, answer) {
    if (!answer.final) {
      this.failed.add(1);
      return;
    }
    this.all.add(took);
    this.each[op].add(took);
    if (begun >= exec.scenario.startTime + this.own.recovered * 1000) {
      this.after.add(took);
    }
  }

  // expect checks a response, each condition by its name.
  expect(answer, conditions) {
    const good = check(answer, conditions);
    if (!good) {
      journal('wrong', answer.outcome, String(answer.text).replace(/\s+/g, ' ').slice(0, 300));
    }
    return good;
  }

  // headers returns the headers for an account, by its number.
  headers(account, more) {
    const { apiKeys } = this.own;
    return Object.assign({ Authorization: `Bearer ${apiKeys[account % apiKeys.length]}` }, more);
  }

  // activate activates a device, of a floating license for so many seconds.
  activate(license, device, seconds) {
    return this.bind(license, device, seconds, (answer, when, outcome) => journal('bind', license, device, when, outcome));
  }

  // lease takes or renews a lease that may lapse before the load ends.
  lease(license, device) {
    return this.bind(license, device, undefined, (answer, when, outcome) => {
      journal('lease', license, device, when, outcome, answer.data.lease_remaining_seconds || 0);
    });
  }

  bind(license, device, seconds, note) {
    return this.send('activate', 'POST', '/v1/licenses/activate', {
      headers: { 'Content-Type': 'application/json' },
      body: JSON.stringify({ license_key: license, device_id: device, device_name: 'Load test', lease_seconds: seconds }),
    }, (answer, when) => {
      const known = { 0: 'ok', 40901: 'full' }[answer.outcome];
      if (known || answer.unknown) {
        note(answer, when, known || 'unknown');
      }
    });
  }

  remove(license, device, account) {
    return this.send('remove', 'DELETE', `/v1/licenses/${license}/devices/${device}`, { headers: this.headers(account) },
      (answer, when) => {
        if (answer.outcome === 0 || answer.unknown) {
          journal('remove', license, device, when, answer.unknown ? 'unknown' : 'ok');
        }
      });
  }

  lookup(license, account) {
    return this.send('lookup', 'GET', `/v1/licenses/${license}`, { headers: this.headers(account) });
  }

  // order makes an order. With an Idempotency-Key it may be sent again.
  order(key, body, account) {
    const of = account % this.own.apiKeys.length;
    return this.send('order', 'POST', '/v1/orders', {
      headers: this.headers(account, { 'Content-Type': 'application/json', 'Idempotency-Key': key }),
      body: JSON.stringify(body),
    }, (answer, when) => {
      if (answer.outcome === 0) {
        journal('order', key, when, 'ok', answer.data.order_no, of);
      } else if (answer.unknown) {
        journal('order', key, when, 'unknown', '-', of);
      }
    });
  }

  // pay pays an order of test mode.
  pay(order, account) {
    return this.send('pay', 'PUT', `/v1/orders/${order}/sandbox_payment`, { headers: this.headers(account) }, (answer, when) => {
      if (answer.outcome === 0 || answer.unknown) {
        journal('pay', order, when, answer.unknown ? 'unknown' : 'ok');
      }
    });
  }

  // cancel cancels an order that is not paid.
  cancel(order, account) {
    return this.send('cancel', 'POST', `/v1/orders/${order}/cancel`, {
      headers: this.headers(account, { 'Content-Type': 'application/json' }),
      body: JSON.stringify({ reason: 'Load test' }),
    }, (answer, when) => {
      if (answer.outcome === 0 || answer.unknown) {
        journal('cancel', order, when, answer.unknown ? 'unknown' : 'ok');
      }
    });
  }

  orderOf(order, account) {
    return this.send('order lookup', 'GET', `/v1/orders/${order}`, { headers: this.headers(account) });
  }
}

// read returns the result of a try. outcome is the envelope's code, or refused
// or broken. final: the response says what the service did or did not do.
function read(response) {
  const answer = {
    outcome: broken, final: false, unknown: false, retryable: false, retryAfter: 1, data: {}, error: {}, text: response.body,
  };
  if (response.status === 0) {
    answer.text = response.error;
    answer.outcome = neverConnected(response.error_code) ? refused : broken;
    answer.unknown = answer.outcome === broken;
    return answer;
  }
  answer.retryAfter = Number(response.headers['Retry-After']) || 1;
  const envelope = parse(response.body);
  if (!envelope || typeof envelope.code !== 'number' || Math.floor((envelope.code || response.status * 100) / 100) !== response.status
    || (envelope.code === 0) !== (response.status < 400)) {
    answer.unknown = true; // not a valid envelope: the effect of the request is unknown
    answer.outcome = 'nonsense';
    return answer;
  }
  answer.outcome = envelope.code;
  answer.data = envelope.data || {};
  answer.error = envelope.error || {};
  answer.retryable = answer.error.retryable === true;
  answer.unknown = envelope.code === 50400 || envelope.code === 50000;
  answer.final = response.status < 500 && !answer.retryable;
  return answer;
}

function parse(text) {
  try {
    return JSON.parse(text);
  } catch (_) {
    return null;
  }
}

