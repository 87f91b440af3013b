/* seen.c: the newest that the device has seen, as the state has it. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

static int64_t integer_of(const struct licet_doc *doc, const struct licet_json *object, const char *name) {
  int64_t n = 0;
  return licet_i_integer(licet_i_get(doc, object, name), &n) && n > 0 ? n : 0;
}

/* read_license reads a license of the state into the next place. Skips an object without an id. */
static int read_license(const struct licet_doc *doc, const struct licet_json *object, struct licet_seen *seen) {
  const struct licet_json *id = licet_i_get(doc, object, "license_id");
  struct licet_seen_license *license = &seen->licenses[seen->count];
  if (id == NULL || id->type != LICET_STRING || *id->text == 0 || strlen(id->text) != id->length) return LICET_OK;
  if ((license->id = malloc(id->length + 1)) == NULL) return LICET_ERR_MEMORY;
  memcpy(license->id, id->text, id->length + 1);
  license->revision = integer_of(doc, object, "revision");
  seen->count++;
  return LICET_OK;
}

int licet_i_seen_read(const struct licet_doc *doc, const struct licet_json *object, struct licet_seen *seen) {
  /* A state of an earlier version has neither earlier nor as_of. */
  const struct licet_json *earlier = licet_i_get(doc, object, "earlier");
  int status;
  uint32_t i = earlier != NULL && earlier->type == LICET_ARRAY ? earlier->child : 0;
  memset(seen, 0, sizeof *seen);
  seen->time = integer_of(doc, object, "time");
  seen->keys = integer_of(doc, object, "keys");
  seen->epoch = integer_of(doc, object, "epoch");
  seen->as_of = integer_of(doc, object, "as_of");
  status = read_license(doc, object, seen);
  for (; status == LICET_OK && i != 0 && seen->count < LICET_MAX_LICENSES; i = doc->values[i].next) {
    status = read_license(doc, &doc->values[i], seen);
  }
  return status;
}

static void put_license(licet_buffer *b, const struct licet_seen_license *license) {
  licet_i_put_member(b, "license_id", license->id);
  licet_i_put_number(b, "revision", license->revision);
}

void licet_i_seen_put(licet_buffer *b, const struct licet_seen *seen) {
  static const struct licet_seen_license none = {"", 0};
  size_t i;
  licet_i_put(b, "{");
  licet_i_put_number(b, "time", seen->time);
  licet_i_put_number(b, "keys", seen->keys);
  put_license(b, seen->count > 0 ? &seen->licenses[0] : &none);
  licet_i_put_number(b, "epoch", seen->epoch);
  licet_i_put_number(b, "as_of", seen->as_of);
  licet_i_put(b, ",\"earlier\":[");
  for (i = 1; i < seen->count; i++) {
    licet_i_put(b, i > 1 ? ",{" : "{");
    put_license(b, &seen->licenses[i]);
    licet_i_put(b, "}");
  }
  licet_i_put(b, "]}");
}

int64_t licet_i_seen_revision(const struct licet_seen *seen, const struct licet_json *license) {
  int64_t newest = 0;
  size_t i;
  for (i = 0; i < seen->count; i++) {
    const struct licet_seen_license *each = &seen->licenses[i];
    if (each->revision > newest && licet_i_is(license, each->id)) newest = each->revision;
  }
  return newest;
}

/* put_first makes a license the one seen last. If there are too many, the license seen longest ago goes. */
static int put_first(struct licet_seen *seen, const char *id, int64_t revision) {
  struct licet_seen before = *seen;
  size_t length = strlen(id), i;
  char *copy = malloc(length + 1);
  if (copy == NULL) return LICET_ERR_MEMORY;
  memcpy(copy, id, length + 1);
  seen->licenses[0].id = copy, seen->licenses[0].revision = revision, seen->count = 1;
  for (i = 0; i < before.count; i++) {
    int stays = strcmp(before.licenses[i].id, copy) != 0 && seen->count < LICET_MAX_LICENSES;
    if (stays) seen->licenses[seen->count++] = before.licenses[i];
    else free(before.licenses[i].id);
  }
  return LICET_OK;
}

int licet_i_is_shown(const struct licet_verdict *v) {
  return v->reason == LICET_R_NONE || v->reason == LICET_R_VOIDED || v->reason == LICET_R_STALE;
}

int licet_i_seen_advance(struct licet_seen *seen, const struct licet_verdict *verdict) {
  const struct licet_json *license = licet_i_member(&verdict->receipt, "sub", LICET_STRING);
  int64_t latest = verdict->keys_iat > verdict->known ? verdict->keys_iat : verdict->known;
  if (!licet_i_is_shown(verdict)) return LICET_OK;
  if (latest > seen->time) seen->time = latest;
  seen->keys = verdict->keys_iat;
  seen->epoch = verdict->epoch;
  seen->as_of = verdict->as_of;
  if (verdict->reason != LICET_R_NONE) return LICET_OK;
  return license == NULL ? LICET_ERR_MEMORY : put_first(seen, license->text, verdict->revision);
}

void licet_i_seen_free(struct licet_seen *seen) {
  while (seen->count > 0) free(seen->licenses[--seen->count].id);
}
