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

/* advances returns 1 if what the device has seen becomes what it should with a verdict. */
static int advances(const struct licet_doc *doc, const struct licet_json *after, struct licet_seen *seen,
                    const struct licet_verdict *verdict) {
  struct licet_seen want;
  size_t i;
  int same;
  if (licet_i_seen_read(doc, after, &want) != LICET_OK || licet_i_seen_advance(seen, verdict) != LICET_OK) exit(2);
  same = seen->time == want.time && seen->keys == want.keys && seen->epoch == want.epoch &&
         seen->as_of == want.as_of && seen->count == want.count;
  for (i = 0; same && i < want.count; i++) {
    same = seen->licenses[i].revision == want.licenses[i].revision &&
           strcmp(seen->licenses[i].id, want.licenses[i].id) == 0;
  }
  licet_i_seen_free(&want);
  return same;
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
  if (!bad && after->type == LICET_OBJECT && !advances(doc, after, &seen, &verdict)) {
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
