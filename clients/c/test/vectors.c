/* vectors.c FILE: verifies each vector of testdata/receipts/vectors.json. */
#include "service.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *text(const struct licet_doc *doc, const struct licet_json *object, const char *name) {
  return licet_i_get(doc, object, name)->text;
}

static int64_t integer(const struct licet_doc *doc, const struct licet_json *object, const char *name) {
  int64_t n = 0;
  if (!licet_i_integer(licet_i_get(doc, object, name), &n)) exit(2);
  return n;
}

/* is_seen returns 1 if what a device has seen is what an object says. */
static int is_seen(const struct licet_doc *doc, const struct licet_json *object, const struct licet_seen *seen) {
  struct licet_seen want;
  size_t i;
  int same;
  if (licet_i_seen_read(doc, object, &want) != LICET_OK) exit(2);
  same = seen->time == want.time && seen->keys == want.keys && seen->epoch == want.epoch &&
         seen->as_of == want.as_of && seen->count == want.count;
  for (i = 0; same && i < want.count; i++) {
    same = seen->licenses[i].revision == want.licenses[i].revision &&
           strcmp(seen->licenses[i].id, want.licenses[i].id) == 0;
  }
  licet_i_seen_free(&want);
  return same;
}

/* A device with a state. */
struct device {
  licet_buffer state;
  struct licet_doc saved; /* empty: the state was not saved */
  int64_t now;
};

static int load(void *user, licet_buffer *state) {
  const struct device *device = user;
  return licet_buffer_append(state, device->state.data, device->state.length);
}

static int save(void *user, const char *state, size_t length) {
  struct device *device = user;
  if (device->saved.values != NULL) exit(2);
  return licet_i_parse(&device->saved, state, length, LICET_PLAIN);
}

static int64_t now_of(void *user) { return ((const struct device *)user)->now; }

/* checks returns 1 if licet_check has the result that it should with documents that the device has stored, and saves
 * what good documents show, and nothing else. */
static int checks(const struct licet_doc *doc, const struct licet_json *each, const struct licet_documents *d,
                  const struct licet_seen *seen, const licet_config *config) {
  const struct licet_json *after = licet_i_get(doc, each, "after");
  const char *want = text(doc, each, "want");
  struct device device;
  struct licet_seen saved;
  licet_config c = *config;
  licet *license;
  licet_result *result;
  size_t i;
  int right;
  memset(&device, 0, sizeof device);
  device.state.limit = LICET_MAX_STATE, device.now = integer(doc, each, "now");
  licet_i_put(&device.state, "{");
  licet_i_put_member(&device.state, "license_key", "LIC-1");
  licet_i_put(&device.state, ",\"documents\":{");
  licet_i_put_member(&device.state, "keys", d->keys);
  licet_i_put_member(&device.state, "receipt", d->receipt);
  licet_i_put(&device.state, ",\"revocations\":[");
  for (i = 0; i < d->count; i++) {
    if (i > 0) licet_i_put(&device.state, ",");
    licet_i_put_string(&device.state, d->lists[i]);
  }
  licet_i_put(&device.state, "]},\"seen\":");
  licet_i_seen_put(&device.state, seen);
  licet_i_put(&device.state, ",\"lists\":{\"etag\":\"\",\"until\":0}}");
  c.size = sizeof c, c.url = "https://licenses.example.com", c.root = text(doc, doc->values, "root");
  c.load = load, c.save = save, c.now = now_of, c.user = &device;
  if (device.state.failed || licet_open(&c, &license) != LICET_OK || licet_check(license, &result) != LICET_OK) exit(2);
  right = licet_result_allowed(result) == (*want == 0) && strcmp(licet_result_reason(result), want) == 0;
  if (device.saved.values == NULL) {
    right = right && (*want != 0 || is_seen(doc, after, seen));
  } else {
    const struct licet_json *kept = licet_i_member(&device.saved, "seen", LICET_OBJECT);
    if (licet_i_seen_read(&device.saved, kept, &saved) != LICET_OK) exit(2);
    right = right && *want == 0 && is_seen(doc, after, &saved);
    licet_i_seen_free(&saved);
  }
  licet_result_free(result);
  licet_close(license);
  licet_i_doc_free(&device.saved);
  licet_i_buffer_free(&device.state);
  return right;
}

/* run returns 1 if a vector does not have the result that it should. */
static int run(const struct licet_doc *doc, const struct licet_json *each, struct licet_verifier *v,
               licet_config *config) {
  const struct licet_json *seen_json = licet_i_get(doc, each, "seen"), *after = licet_i_get(doc, each, "after");
  struct licet_documents d;
  struct licet_seen seen;
  struct licet_verdict verdict;
  size_t padding = (size_t)integer(doc, each, "padding"), length = strlen(text(doc, each, "receipt"));
  const char *want = text(doc, each, "want");
  uint32_t i;
  int bad = 0;
  memset(&d, 0, sizeof d);
  d.keys = (char *)text(doc, each, "keys");
  d.receipt = malloc(length + padding + 1);
  memcpy(d.receipt, text(doc, each, "receipt"), length);
  memset(d.receipt + length, 'A', padding);
  d.receipt[length + padding] = 0;
  for (i = licet_i_get(doc, each, "revocations")->child; i != 0; i = doc->values[i].next) {
    d.lists[d.count++] = (char *)doc->values[i].text;
  }
  if (licet_i_seen_read(doc, seen_json, &seen) != LICET_OK) exit(2);
  config->grace_seconds = integer(doc, each, "grace");
  v->nonce = *text(doc, each, "nonce") != 0 ? text(doc, each, "nonce") : NULL;
  licet_i_verify(v, &d, &seen, integer(doc, each, "now"), &verdict);
  if (strcmp(licet_i_word(verdict.reason), want) != 0) {
    printf("%s: the reason is \"%s\", want \"%s\"\n", text(doc, each, "name"), licet_i_word(verdict.reason), want);
    bad = 1;
  }
  /* The state has no nonce, and no receipt that is empty. */
  if (v->nonce == NULL && *d.receipt != 0 && !checks(doc, each, &d, &seen, config)) {
    printf("%s: licet_check has another result, or saves other things\n", text(doc, each, "name"));
    bad = 1;
  }
  if (licet_i_seen_advance(&seen, &verdict) != LICET_OK) exit(2);
  if (!is_seen(doc, after->type == LICET_OBJECT ? after : seen_json, &seen)) {
    printf("%s: what the device has seen differs\n", text(doc, each, "name"));
    bad = 1;
  }
  licet_i_seen_free(&seen);
  licet_i_doc_free(&verdict.receipt);
  free(d.receipt);
  return bad;
}

int main(int argc, char **argv) {
  struct licet_doc doc;
  struct licet_verifier v;
  licet_config config;
  size_t length;
  char *json;
  uint32_t i;
  int bad = 0, count = 0, refused = 0;
  if (argc != 2) return 2;
  json = read_whole(argv[1], &length);
  memset(&config, 0, sizeof config);
  if (!licet_i_use_sodium(&config) || licet_i_parse(&doc, json, length, LICET_PLAIN) != LICET_OK) return 2;
  config.account_id = text(&doc, doc.values, "account_id"), config.mode = text(&doc, doc.values, "mode");
  config.product_id = text(&doc, doc.values, "product_id"), config.device_id = text(&doc, doc.values, "device_id");
  v.config = &config;
  if (licet_i_root(text(&doc, doc.values, "root"), v.root) != LICET_OK) return 2;
  for (i = licet_i_get(&doc, doc.values, "vectors")->child; i != 0; i = doc.values[i].next) {
    bad += run(&doc, &doc.values[i], &v, &config);
    refused += *text(&doc, &doc.values[i], "want") != 0;
    count++;
  }
  licet_i_doc_free(&doc);
  free(json);
  printf("%d vectors, %d of them bad documents; %d failed\n", count, refused, bad);
  return bad > 0 || refused < 60;
}
