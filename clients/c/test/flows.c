/* flows.c: the calls of the library against the stand-in for the service, without a network. */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct world {
  struct service service;
  char *state;
  size_t state_length;
  int64_t now;
  int waited, saves, fail_saves, fail_random, trail_lists;
  int slow; /* waiting takes time by the clock, too */
};

static int failures;
#define EXPECT(condition) \
  do { \
    if (!(condition)) printf("flows.c:%d: not %s\n", __LINE__, #condition), failures++; \
  } while (0)

static int load(void *user, licet_buffer *state) {
  struct world *w = user;
  return licet_buffer_append(state, w->state == NULL ? "" : w->state, w->state_length);
}

static int save(void *user, const char *state, size_t length) {
  struct world *w = user;
  if (w->fail_saves) return 1;
  free(w->state);
  w->state = malloc(length + 1);
  memcpy(w->state, state, length);
  w->state[length] = 0;
  w->state_length = length;
  w->saves++;
  return 0;
}

static int transport(void *user, const licet_request *request, licet_response *response) {
  struct world *w = user;
  licet_buffer answer = {NULL, 0, 0, 1 << 20, 0};
  int status;
  if (w->service.down) return LICET_ERR_TRY_AGAIN;
  status = service_answer(&w->service, request->method, request->url + strlen("http://127.0.0.1"), request->body,
                          request->body_length, &answer);
  licet_response_status(response, status);
  if (status == 503) licet_response_header(response, "RETRY-AFTER", " 2\r\n");
  (void)licet_response_append(response, answer.data, answer.length);
  if (w->trail_lists && strstr(request->url, "/revocations") != NULL) (void)licet_response_append(response, "\0x", 2);
  licet_i_buffer_free(&answer);
  return LICET_OK;
}

static int64_t now(void *user) { return ((struct world *)user)->now; }
static void wait_for(void *user, int milliseconds) {
  struct world *w = user;
  if (w->slow) w->now += (w->waited + milliseconds) / 1000 - w->waited / 1000;
  w->waited += milliseconds;
}
static int64_t ticks(void *user) { return ((struct world *)user)->waited; }

static int fill(void *user, unsigned char *bytes, size_t length) {
  if (((struct world *)user)->fail_random) return 1;
  memset(bytes, 7, length);
  return 0;
}

static licet *open_world(struct world *w, int64_t grace) {
  char root[64];
  licet_config c;
  licet *h = NULL;
  service_root(root);
  memset(&c, 0, sizeof c);
  c.size = sizeof c, c.url = "http://127.0.0.1/", c.root = root, c.account_id = "acct_1", c.mode = "test";
  c.product_id = "editor", c.device_id = "device \"1\"", c.user = w, c.load = load, c.save = save;
  c.device_id = "device-1", c.transport = transport, c.now = now, c.wait = wait_for, c.ticks = ticks, c.random = fill;
  c.grace_seconds = grace, c.lease_seconds = 600;
  EXPECT(licet_open(&c, &h) == LICET_OK);
  return h;
}

static licet *begin(struct world *w, int64_t grace) {
  memset(w, 0, sizeof *w);
  w->now = 1893553445;
  service_begin(&w->service, w->now);
  return open_world(w, grace);
}

static void end(struct world *w, licet *h) {
  licet_close(h);
  free(w->state);
}

static void pass(struct world *w, int64_t seconds) { w->now += seconds, w->service.now += seconds; }

/* call runs a call, and compares its status, whether the program may run, and why not. */
static void call(int line, licet *h, int (*f)(licet *, licet_result **), int status, int allowed, const char *reason) {
  licet_result *r;
  int got = f(h, &r);
  if (got != status || licet_result_allowed(r) != allowed || strcmp(licet_result_reason(r), reason) != 0) {
    printf("flows.c:%d: status %d, allowed %d, reason \"%s\" %d %s\n", line, got, licet_result_allowed(r),
           licet_result_reason(r), licet_result_code(r), licet_result_message(r));
    failures++;
  }
  licet_result_free(r);
}
#define CALL(...) call(__LINE__, __VA_ARGS__)

static int activate(licet *h, licet_result **r) { return licet_activate(h, "LIC-1", "My \"laptop\"\n", r); }
static int activate_unknown(licet *h, licet_result **r) { return licet_activate(h, "LIC-2", NULL, r); }
static int activate_empty(licet *h, licet_result **r) { return licet_activate(h, "", NULL, r); }
static int activate_garbled(licet *h, licet_result **r) { return licet_activate(h, "LIC-\xff", NULL, r); }
static int activate_garbled_name(licet *h, licet_result **r) { return licet_activate(h, "LIC-1", "\xff", r); }
static int activate_stored(licet *h, licet_result **r) { return licet_activate(h, NULL, NULL, r); }
static int trial(licet *h, licet_result **r) { return licet_trial(h, "a@example.com", r); }

static void test_offline(void) {
  struct world w;
  licet *h = begin(&w, 0);
  licet_result *r;
  int64_t seats = 0;
  CALL(h, licet_check, LICET_OK, 0, "not_activated");
  CALL(h, licet_validate, LICET_ERR_ARGUMENT, 0, "not_activated");
  CALL(h, licet_deactivate, LICET_ERR_ARGUMENT, 0, "not_activated");
  CALL(h, activate_unknown, LICET_ERR_REFUSED, 0, "license_not_found");
  CALL(h, activate, LICET_OK, 1, "");
  w.service.down = 1;
  licet_close(h);
  h = open_world(&w, 0);
  EXPECT(licet_check(h, &r) == LICET_OK && licet_result_allowed(r));
  EXPECT(licet_entitlement_bool(r, "export") && !licet_entitlement_bool(r, "seats") && !licet_entitlement_bool(r, "x"));
  EXPECT(licet_entitlement_int(r, "seats", &seats) && seats == 5 && !licet_entitlement_int(r, "export", &seats));
  EXPECT(strcmp(licet_entitlement_text(r, "edition"), "pro") == 0 && licet_entitlement_text(r, "seats") == NULL);
  EXPECT(strcmp(licet_result_text(r, "sub"), "lic_1") == 0 && *licet_result_text(r, "license_expires_at") == 0);
  EXPECT(licet_result_expires_at(r) == w.now + 7 * 86400 && licet_result_refresh_at(r) == w.now + 43200);
  EXPECT(!licet_result_trial(r) && !licet_result_in_grace(r));
  licet_result_free(r);
  w.now += 86400 - 1;
  CALL(h, licet_check, LICET_OK, 1, "");
  w.now += 1;
  CALL(h, licet_check, LICET_OK, 0, "stale");
  CALL(h, licet_validate, LICET_ERR_UNREACHABLE, 0, "stale");
  EXPECT(w.waited > 20000 && w.waited <= 30000);
  w.now -= 2 * 86400;
  CALL(h, licet_check, LICET_OK, 0, "not_yet_valid");
  end(&w, h);
}

static void test_grace(void) {
  struct world w;
  licet *h = begin(&w, 3600);
  licet_result *r;
  CALL(h, activate, LICET_OK, 1, "");
  w.now += 86400 + 3600 - 1, w.service.down = 1;
  EXPECT(licet_validate(h, &r) == LICET_ERR_UNREACHABLE && licet_result_allowed(r) && licet_result_in_grace(r));
  licet_result_free(r);
  w.now++;
  CALL(h, licet_refresh, LICET_ERR_UNREACHABLE, 0, "stale");
  w.now += 7 * 86400;
  CALL(h, licet_check, LICET_OK, 0, "expired");
  end(&w, h);
}

static void test_lists(void) {
  struct world w;
  licet *h = begin(&w, 0);
  int i;
  CALL(h, activate, LICET_OK, 1, "");
  for (i = 0; i < 3; i++) { /* lists keep a receipt good, for half of its life */
    w.service.epoch = 10 * (i + 1);
    pass(&w, 86400 - 1);
    CALL(h, licet_refresh, LICET_OK, 1, "");
  }
  EXPECT(strstr(w.state, "\"epoch\":30") != NULL);
  w.service.forge_lists = 1;
  pass(&w, 43200 - 10);
  CALL(h, licet_check, LICET_OK, 1, "");
  w.service.forge_lists = 0;
  CALL(h, licet_refresh, LICET_OK, 1, "");
  end(&w, h);

  h = begin(&w, 0);
  CALL(h, activate, LICET_OK, 1, "");
  w.service.epoch = 1, w.service.voided = 1, w.service.valid = 0;
  pass(&w, 43200);
  CALL(h, licet_check, LICET_OK, 1, ""); /* it can't know yet */
  CALL(h, licet_refresh, LICET_OK, 0, "license_revoked");
  CALL(h, licet_check, LICET_OK, 0, "unreachable");
  w.service.valid = 1, w.service.revision = 2; /* reinstated */
  CALL(h, licet_refresh, LICET_OK, 1, "");
  end(&w, h);

  h = begin(&w, 0); /* a forged list neither helps nor harms */
  CALL(h, activate, LICET_OK, 1, "");
  pass(&w, 43200);
  w.service.forge_lists = 1, w.service.epoch = 7;
  CALL(h, licet_refresh, LICET_OK, 1, ""); /* by a newer receipt */
  EXPECT(strstr(w.state, "\"epoch\":0") != NULL);
  w.service.forge_lists = 0, w.service.whole_lists = 1;
  CALL(h, licet_refresh, LICET_OK, 1, "");
  for (i = 0; i < 40; i++) { /* lists without news replace each other */
    w.service.whole_lists = 0, w.service.epoch += i == 20;
    pass(&w, 43200), w.service.max_age = 86400;
    CALL(h, licet_refresh, LICET_OK, 1, "");
  }
  EXPECT(w.state_length < 4096);
  end(&w, h);
}

/* test_age measures for how long a voided receipt counts with a client that refreshes as told. */
static void test_age(void) {
  struct world w;
  licet *h = begin(&w, 0);
  licet_result *r;
  int64_t voided_at, refresh_at;
  CALL(h, activate, LICET_OK, 1, "");
  pass(&w, 100);
  w.service.epoch = 1, w.service.voided = 1, w.service.valid = 0, voided_at = w.now;
  for (;;) {
    EXPECT(licet_check(h, &r) == LICET_OK);
    refresh_at = licet_result_refresh_at(r);
    licet_result_free(r);
    if (w.now >= refresh_at) break;
    pass(&w, 60);
  }
  CALL(h, licet_refresh, LICET_OK, 0, "license_revoked");
  EXPECT(w.now - voided_at <= w.service.max_age / 2);
  end(&w, h);

  h = begin(&w, 0); /* the network is blocked as soon as the receipt is voided */
  CALL(h, activate, LICET_OK, 1, "");
  voided_at = w.now, w.service.down = 1;
  for (;;) {
    EXPECT(licet_check(h, &r) == LICET_OK);
    if (!licet_result_allowed(r)) break;
    licet_result_free(r);
    w.now += 60;
  }
  licet_result_free(r);
  EXPECT(w.now - voided_at == w.service.max_age);
  end(&w, h);
}

static void test_attacks(void) {
  struct world w;
  licet *h = begin(&w, 0);
  char *old;
  size_t old_length;
  w.service.wrong_nonce = "replayed";
  CALL(h, activate, LICET_ERR_DOCUMENT, 0, "nonce");
  w.service.wrong_nonce = NULL, w.service.plain = 1;
  CALL(h, activate, LICET_ERR_DOCUMENT, 0, "no_receipt");
  w.service.plain = 0;
  CALL(h, activate, LICET_OK, 1, "");
  w.service.revision = 5;
  CALL(h, licet_validate, LICET_OK, 1, "");
  w.service.revision = 4; /* the service, or who pretends to be it, goes back */
  CALL(h, licet_validate, LICET_ERR_DOCUMENT, 1, "");
  w.service.wrong_nonce = "replayed", w.service.revision = 5;
  CALL(h, licet_validate, LICET_ERR_DOCUMENT, 1, "");
  w.service.wrong_nonce = NULL;
  w.service.key_number = 2; /* the receipt keys change */
  pass(&w, 3600);
  CALL(h, licet_validate, LICET_OK, 1, "");
  w.now -= 3600; /* a clock set back behind a time seen */
  CALL(h, licet_check, LICET_OK, 0, "not_yet_valid");
  w.now += 3600;
  old = strstr(w.state, "device");
  EXPECT(old == NULL); /* the device is in the receipt only */
  licet_close(h);
  old = malloc(w.state_length + 1), old_length = w.state_length;
  memcpy(old, w.state, old_length + 1);
  memcpy(strstr(w.state, "\"revision\":5"), "\"revision\":6", 12); /* documents restored without what was seen */
  h = open_world(&w, 0);
  CALL(h, licet_check, LICET_OK, 0, "older");
  licet_close(h);
  free(w.state);
  w.state = old, w.state_length = old_length / 2; /* half a file */
  h = open_world(&w, 0);
  CALL(h, licet_check, LICET_OK, 0, "not_activated");
  end(&w, h);
}

static void test_licenses(void) {
  struct world w;
  licet *h = begin(&w, 0);
  char *earlier;
  w.service.revision = 6;
  CALL(h, activate, LICET_OK, 1, "");
  w.service.license = "lic_2", w.service.revision = 1; /* the customer has bought another license */
  CALL(h, activate, LICET_OK, 1, "");
  w.service.license = "lic_1", w.service.revision = 5;
  CALL(h, licet_validate, LICET_ERR_DOCUMENT, 1, "");
  licet_close(h);
  h = open_world(&w, 0);
  CALL(h, licet_validate, LICET_ERR_DOCUMENT, 1, "");
  licet_close(h);
  earlier = strstr(w.state, ",\"earlier\":[{\"license_id\":\"lic_1\",\"revision\":6}]");
  EXPECT(earlier != NULL);
  if (earlier != NULL) strcpy(earlier, "}}"), w.state_length = strlen(w.state); /* a state of an earlier version */
  h = open_world(&w, 0);
  CALL(h, licet_check, LICET_OK, 1, "");
  w.service.license = "lic_2", w.service.revision = 0;
  CALL(h, licet_validate, LICET_ERR_DOCUMENT, 1, "");
  w.service.revision = 1;
  CALL(h, licet_validate, LICET_OK, 1, "");
  end(&w, h);
}

static void test_retries(void) {
  struct world w;
  licet *h = begin(&w, 0);
  w.service.fail_status = 503, w.service.fail_times = 2, w.service.retryable = 1;
  CALL(h, activate, LICET_OK, 1, "");
  EXPECT(w.waited >= 4000 && w.waited < 5000 && w.service.requests == 4); /* and the set of keys */
  w.service.fail_times = 1000;
  CALL(h, licet_validate, LICET_ERR_UNREACHABLE, 1, "");
  w.service.fail_times = 1, w.service.fail_status = 409, w.service.retryable = 0;
  CALL(h, licet_validate, LICET_ERR_REFUSED, 0, "failed");
  w.service.fail_times = 1, w.service.fail_status = 200; /* a page of a network that wants a login */
  CALL(h, licet_validate, LICET_ERR_UNREACHABLE, 1, "");
  EXPECT(w.service.fail_times == 0);
  w.fail_saves = 1;
  pass(&w, 1);
  CALL(h, licet_validate, LICET_ERR_STATE, 1, "");
  w.fail_saves = 0;
  CALL(h, licet_deactivate, LICET_OK, 0, "not_activated");
  EXPECT(!w.service.bound && strstr(w.state, "LIC-1") == NULL && strstr(w.state, "\"revision\":1") != NULL);
  CALL(h, licet_check, LICET_OK, 0, "not_activated");
  CALL(h, trial, LICET_OK, 1, "");
  CALL(h, licet_deactivate, LICET_OK, 0, "not_activated");
  w.service.trial_given_back = 1;
  w.service.plain = 1;
  CALL(h, trial, LICET_ERR_DOCUMENT, 0, "no_receipt");
  EXPECT(w.service.bound && strstr(w.state, "LIC-1") != NULL);
  w.service.plain = 0;
  CALL(h, trial, LICET_OK, 1, "");
  CALL(h, licet_deactivate, LICET_OK, 0, "not_activated");
  w.fail_saves = 1;
  CALL(h, trial, LICET_ERR_STATE, 0, "no_receipt");
  w.fail_saves = 0;
  end(&w, h);
}

static void test_stored_license(void) {
  struct world w;
  licet *h = begin(&w, 0);
  CALL(h, activate_stored, LICET_ERR_ARGUMENT, 0, "not_activated");
  CALL(h, activate, LICET_OK, 1, "");
  EXPECT(w.service.lease_seconds == 600);
  w.service.bound = 0; /* the shop has removed the device */
  CALL(h, licet_validate, LICET_OK, 0, "device_not_bound");
  CALL(h, activate_stored, LICET_OK, 1, "");
  CALL(h, activate_empty, LICET_OK, 1, "");
  w.service.bound = 0;
  CALL(h, licet_validate, LICET_OK, 0, "device_not_bound");
  w.service.bound = 1, w.service.plain = 1; /* bound again, by a service without receipts */
  CALL(h, licet_refresh, LICET_ERR_DOCUMENT, 0, "no_receipt");
  w.service.plain = 0;
  CALL(h, licet_deactivate, LICET_OK, 0, "not_activated");
  CALL(h, activate_stored, LICET_ERR_ARGUMENT, 0, "not_activated");
  end(&w, h);
}

static void test_deleted_license(void) {
  struct world w;
  licet *h = begin(&w, 0);
  CALL(h, activate, LICET_OK, 1, "");
  licet_close(h);
  memcpy(strstr(w.state, "LIC-1"), "LIC-2", 5);
  h = open_world(&w, 0);
  CALL(h, licet_check, LICET_OK, 1, "");
  CALL(h, licet_validate, LICET_ERR_REFUSED, 0, "license_not_found");
  CALL(h, licet_check, LICET_OK, 0, "unreachable");
  end(&w, h);
}

/* test_refresh_at: a program that refreshes as told does not do so in a loop, although what comes is no better. */
static void test_refresh_at(void) {
  struct world w;
  licet *h = begin(&w, 0);
  licet_result *r;
  int i;
  CALL(h, activate, LICET_OK, 1, "");
  pass(&w, 43200);
  w.service.down = 1;
  EXPECT(licet_check(h, &r) == LICET_OK && licet_result_refresh_at(r) == w.now);
  licet_result_free(r);
  for (i = 0; i < 2; i++) {
    EXPECT(licet_refresh(h, &r) == LICET_ERR_UNREACHABLE && licet_result_refresh_at(r) == w.now + 60);
    licet_result_free(r);
    EXPECT(licet_check(h, &r) == LICET_OK && licet_result_refresh_at(r) == w.now + 60);
    licet_result_free(r);
    w.now += 60;
  }
  end(&w, h);
}

/* test_minima: a program that refreshes as told never stops, also with the shortest lease, validity of receipts and
 * revocation_max_age that the service allows, and if each second refresh fails. */
static void test_minima(void) {
  const int64_t validities[] = {30, 60, 60, 7 * 86400}, ages[] = {0, 0, 60, 60};
  struct world w;
  licet_result *r;
  int i, failing, ahead, refreshes;
  for (i = 0; i < 4 * 2 * 2; i++) {
    licet *h = begin(&w, 0);
    failing = i / 4 % 2, ahead = i / 8 * (int)(validities[i % 4] > 60 ? 25 : validities[i % 4] / 2 - 5), refreshes = 0;
    w.service.validity = validities[i % 4], w.service.max_age = ages[i % 4];
    w.now += ahead; /* the clock of the device */
    CALL(h, activate, LICET_OK, 1, "");
    while (w.service.now < 1893553445 + 1800) {
      EXPECT(licet_check(h, &r) == LICET_OK && licet_result_allowed(r) && strcmp(licet_result_reason(r), "") == 0);
      if (licet_result_refresh_at(r) <= w.now) {
        licet_result_free(r);
        w.service.down = failing && refreshes++ % 2 == 0;
        EXPECT((licet_refresh(h, &r) == LICET_OK) == !w.service.down && licet_result_allowed(r));
        EXPECT(licet_result_refresh_at(r) > w.now);
      }
      licet_result_free(r);
      pass(&w, 1);
    }
    end(&w, h);
  }
}

/* test_pause: the pause after a refresh without an answer counts from the end of the call, which takes up to half a
 * minute. */
static void test_pause(void) {
  struct world w;
  licet_result *r;
  licet *h = begin(&w, 0);
  w.service.validity = 240, w.service.max_age = 0;
  CALL(h, activate, LICET_OK, 1, "");
  pass(&w, 130);
  w.service.down = w.slow = 1;
  EXPECT(licet_refresh(h, &r) != LICET_OK && licet_result_allowed(r) && licet_result_refresh_at(r) > w.now);
  licet_result_free(r);
  end(&w, h);
}

/* test_trailing: a list that goes on after a zero byte is refused. */
static void test_trailing(void) {
  struct world w;
  licet *h = begin(&w, 0);
  CALL(h, activate, LICET_OK, 1, "");
  pass(&w, 43200);
  w.service.epoch = 7, w.trail_lists = 1;
  CALL(h, licet_refresh, LICET_OK, 1, ""); /* by a newer receipt */
  EXPECT(strstr(w.state, "\"epoch\":0") != NULL && strstr(w.state, "\"revocations\":[]") != NULL);
  pass(&w, 43200);
  w.trail_lists = 0;
  CALL(h, licet_refresh, LICET_OK, 1, "");
  EXPECT(strstr(w.state, "\"epoch\":7") != NULL);
  end(&w, h);
}

/* test_refusal: the code of a refusal stays, although a list is asked for afterwards. */
static void test_refusal(void) {
  struct world w;
  licet *h = begin(&w, 0);
  licet_result *r;
  CALL(h, activate, LICET_OK, 1, "");
  pass(&w, 86400);
  w.service.fail_times = 1, w.service.fail_status = 409, w.service.retryable = 0, w.service.forge_lists = 1;
  EXPECT(licet_refresh(h, &r) == LICET_ERR_REFUSED && !licet_result_allowed(r) && licet_result_code(r) == 40900);
  EXPECT(strcmp(licet_result_reason(r), "stale") == 0);
  licet_result_free(r);
  end(&w, h);
}

/* test_long_state: a state that is too long counts as none. */
static void test_long_state(void) {
  struct world w;
  licet *h = begin(&w, 0);
  licet_close(h);
  w.state_length = LICET_MAX_STATE + 1;
  w.state = malloc(w.state_length);
  memset(w.state, ' ', w.state_length);
  h = open_world(&w, 0);
  CALL(h, licet_check, LICET_OK, 0, "not_activated");
  CALL(h, activate, LICET_OK, 1, "");
  end(&w, h);
}

static void test_arguments(void) {
  struct world w;
  licet *h = begin(&w, 0);
  licet_config c;
  licet *none = h;
  CALL(NULL, licet_check, LICET_ERR_ARGUMENT, 0, "not_activated");
  EXPECT(licet_check(h, NULL) == LICET_ERR_ARGUMENT);
  CALL(h, activate_empty, LICET_ERR_ARGUMENT, 0, "not_activated");
  CALL(h, activate_garbled, LICET_ERR_ARGUMENT, 0, "invalid_license_key");
  CALL(h, activate_garbled_name, LICET_ERR_ARGUMENT, 0, "invalid_field");
  w.fail_random = 1;
  CALL(h, activate, LICET_ERR_UNREACHABLE, 0, "unreachable");
  memset(&c, 0, sizeof c);
  c.size = sizeof c;
  EXPECT(licet_open(&c, &none) == LICET_ERR_ARGUMENT && none == NULL);
  EXPECT(licet_open(NULL, &none) == LICET_ERR_ARGUMENT && licet_open(&c, NULL) == LICET_ERR_ARGUMENT);
  EXPECT(!licet_result_allowed(NULL) && *licet_result_text(NULL, "sub") == 0 && !licet_entitlement_bool(NULL, "x"));
  licet_result_free(NULL);
  licet_close(NULL);
  end(&w, h);
}

int main(void) {
  test_offline();
  test_grace();
  test_lists();
  test_age();
  test_attacks();
  test_licenses();
  test_retries();
  test_stored_license();
  test_deleted_license();
  test_refresh_at();
  test_minima();
  test_pause();
  test_trailing();
  test_refusal();
  test_long_state();
  test_arguments();
  printf("flows: %d failed\n", failures);
  return failures > 0;
}
