/* The driver of the client in C for TestConformance in client/offline: reads calls and writes outcomes, one JSON text a
 * line. It reads JSON with the functions of the library. */
#define _POSIX_C_SOURCE 200809L
#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *text(const struct licet_doc *call, const char *name) {
  const struct licet_json *v = licet_i_member(call, name, LICET_STRING);
  return v == NULL ? "" : v->text;
}

static int64_t number(const struct licet_doc *call, const char *name) {
  int64_t n = 0;
  return licet_i_integer(licet_i_get(call, call->values, name), &n) ? n : 0;
}

/* now_of returns the time of a device whose clock is ahead. */
static int64_t now_of(void *ahead) { return (int64_t)time(NULL) + *(int64_t *)ahead; }

static void answer(const struct licet_doc *call) {
  const char *what = text(call, "call"), *key = text(call, "license_key");
  licet_config config;
  licet *license = NULL;
  licet_result *result = NULL;
  int64_t ahead = number(call, "ahead");
  int status, ok;
  memset(&config, 0, sizeof config);
  config.now = now_of, config.user = &ahead;
  config.size = sizeof config, config.mode = "test";
  config.url = text(call, "url"), config.root = text(call, "root"), config.account_id = text(call, "account_id");
  config.product_id = text(call, "product_id"), config.device_id = text(call, "device_id");
  config.state_file = text(call, "state"), config.retry_seconds = (int)number(call, "retry_for");
  if (config.retry_seconds == 0) config.retry_seconds = -1; /* the request is sent once */
  config.lease_seconds = number(call, "lease_seconds"), config.grace_seconds = number(call, "grace");
  status = licet_open(&config, &license);
  if (status == LICET_OK) {
    if (strcmp(what, "activate") == 0) status = licet_activate(license, key, NULL, &result);
    else if (strcmp(what, "trial") == 0) status = licet_trial(license, NULL, &result);
    else if (strcmp(what, "validate") == 0) status = licet_validate(license, &result);
    else if (strcmp(what, "deactivate") == 0) status = licet_deactivate(license, &result);
    else if (strcmp(what, "refresh") == 0) status = licet_refresh(license, &result);
    else status = licet_check(license, &result);
  }
  ok = status == LICET_OK && (strcmp(what, "deactivate") == 0 || licet_result_allowed(result));
  if (strcmp(what, "refresh") == 0) ok = licet_result_allowed(result); /* whether or not it got the documents */
  printf("{\"ok\":%s,\"code\":%d,\"reason\":\"%s\"}\n", ok ? "true" : "false", ok ? 0 : licet_result_code(result),
         ok ? "" : licet_result_reason(result));
  fflush(stdout);
  licet_result_free(result);
  licet_close(license);
}

int main(void) {
  char *line = NULL;
  size_t size = 0;
  ssize_t length;
  while ((length = getline(&line, &size, stdin)) > 0) {
    struct licet_doc call;
    if (licet_i_parse(&call, line, (size_t)length, LICET_PLAIN) != LICET_OK) return 2;
    answer(&call);
    licet_i_doc_free(&call);
  }
  free(line);
  return 0;
}
