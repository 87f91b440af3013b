/* documents.c: the checks of docs/reference/receipts.md, in their order. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>

#define LEEWAY 300 /* how many seconds a device's clock may be behind the service's */
#define MAX_KEYS 16
#define NAME_SIZE 16
#define ENTRY_SIZE 24
#define MAX_INTEGER (((int64_t)1 << 53) - 1)
#define ID_SIZE 43 /* a thumbprint in base64url */

struct key {
  char id[ID_SIZE + 1];
  unsigned char public_half[32];
  int usable;
};
struct key_set {
  struct key keys[MAX_KEYS];
  size_t count;
};
struct list {
  int64_t as_of, epoch, after;
  unsigned char *entries;
  size_t count;
};

const char *licet_i_word(enum licet_reason reason) {
  static const char *const words[] = {"", "malformed", "algorithm", "type", "key", "signature", "audience", "device",
    "nonce", "not_yet_valid", "expired", "clock_set_back", "older", "stale", "voided", "not_activated", "unreachable",
    "memory"};
  return words[reason];
}

static const char alphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

void licet_i_base64_put(const unsigned char *bytes, size_t count, char *text) {
  uint32_t bits = 0;
  int have = 0;
  for (; count > 0; count--) {
    bits = (bits << 8 | *bytes++) & 0xFFFF;
    for (have += 8; have >= 6; have -= 6) *text++ = alphabet[bits >> (have - 6) & 63];
  }
  if (have > 0) *text++ = alphabet[bits << (6 - have) & 63];
  *text = 0;
}

/* licet_i_base64 decodes base64url without padding. It refuses unused bits that are not zero: a text has one encoding. */
int licet_i_base64(const char *text, size_t length, unsigned char **bytes, size_t *count) {
  unsigned char *out = malloc(length / 4 * 3 + 3);
  uint32_t bits = 0;
  size_t n = 0, i;
  int have = 0;
  *bytes = NULL;
  if (out == NULL) return LICET_ERR_MEMORY;
  for (i = 0; i < length; i++) {
    char c = text[i];
    int value = c >= 'A' && c <= 'Z' ? c - 'A' : c >= 'a' && c <= 'z' ? c - 'a' + 26 :
                c >= '0' && c <= '9' ? c - '0' + 52 : c == '-' ? 62 : c == '_' ? 63 : -1;
    if (value < 0) break;
    bits = (bits << 6 | (uint32_t)value) & 0x3FFF;
    have += 6;
    if (have < 8) continue;
    have -= 8;
    out[n++] = (unsigned char)(bits >> have);
  }
  if (i < length || length % 4 == 1 || (bits & ((1u << have) - 1)) != 0) {
    free(out);
    return LICET_ERR_DOCUMENT;
  }
  *bytes = out;
  *count = n;
  return LICET_OK;
}

static enum licet_reason reason_of(int status) {
  return status == LICET_OK ? LICET_R_NONE : status == LICET_ERR_MEMORY ? LICET_R_MEMORY : LICET_R_MALFORMED;
}

/* thumbprint writes the id of a key, RFC 7638. */
static int thumbprint(const licet_config *c, const unsigned char public_half[32], char id[ID_SIZE + 1]) {
  char text[] = "{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"0123456789012345678901234567890123456789012\"}";
  unsigned char digest[32];
  char *x = text + sizeof text - 1 - 2 - ID_SIZE;
  licet_i_base64_put(public_half, 32, x);
  x[ID_SIZE] = '"';
  if (c->sha256(c->user, (const unsigned char *)text, sizeof text - 1, digest) != 0) return LICET_ERR_MEMORY;
  licet_i_base64_put(digest, 32, id);
  return LICET_OK;
}

/* read_key decodes 32 bytes. */
static int read_key(const char *text, size_t length, unsigned char key[32]) {
  unsigned char *bytes;
  size_t count;
  int status;
  if (length != ID_SIZE) return LICET_ERR_DOCUMENT;
  status = licet_i_base64(text, length, &bytes, &count);
  if (status != LICET_OK) return status;
  memcpy(key, bytes, 32);
  free(bytes);
  return LICET_OK;
}

int licet_i_root(const char *text, unsigned char root[32]) {
  static const char prefix[] = "licet_root_";
  size_t length = strlen(text);
  if (length < sizeof prefix - 1 || memcmp(text, prefix, sizeof prefix - 1) != 0) return LICET_ERR_DOCUMENT;
  return read_key(text + sizeof prefix - 1, length - (sizeof prefix - 1), root);
}

/* check_header returns the first reason against a header, and the key that it names. */
static enum licet_reason check_header(const struct licet_doc *header, const char *type, const struct key_set *keys,
                                      const struct key **key) {
  const struct licet_json *alg = licet_i_member(header, "alg", LICET_STRING);
  const struct licet_json *kid = licet_i_member(header, "kid", LICET_STRING);
  const struct licet_json *typ = licet_i_member(header, "typ", LICET_STRING);
  size_t i;
  if (alg == NULL || kid == NULL || typ == NULL) return LICET_R_MALFORMED;
  if (licet_i_get(header, header->values, "crit") != NULL) return LICET_R_MALFORMED;
  if (!licet_i_is(alg, "EdDSA") && !licet_i_is(alg, "Ed25519")) return LICET_R_ALGORITHM;
  if (!licet_i_is(typ, type)) return LICET_R_TYPE;
  for (i = 0; i < keys->count; i++) {
    if (!licet_i_is(kid, keys->keys[i].id)) continue;
    *key = &keys->keys[i];
    return (*key)->usable ? LICET_R_NONE : LICET_R_KEY;
  }
  return LICET_R_KEY;
}

/* split finds the parts of a document, and decodes them. The caller frees the parts in each case. */
static int split(const char *document, size_t longest, unsigned char *parts[3], size_t counts[3], size_t *signed_length) {
  size_t length = strlen(document), from = 0, to;
  int i, status = LICET_OK;
  if (length > longest) return LICET_ERR_DOCUMENT;
  for (i = 0; i < 3; i++) {
    const char *dot = memchr(document + from, '.', length - from);
    if ((dot == NULL) != (i == 2)) return LICET_ERR_DOCUMENT;
    to = dot == NULL ? length : (size_t)(dot - document);
    if (i == 1) *signed_length = to;
    status = licet_i_base64(document + from, to - from, &parts[i], &counts[i]);
    if (status != LICET_OK) return status;
    from = to + 1;
  }
  return LICET_OK;
}

/* open_document verifies a document and parses its content, which the caller frees in each case. */
static enum licet_reason open_document(const licet_config *c, const char *document, const char *type, size_t longest,
                                       const struct key_set *keys, struct licet_doc *content) {
  unsigned char *parts[3] = {NULL, NULL, NULL};
  size_t counts[3], length = 0;
  struct licet_doc header;
  const struct key *key = NULL;
  enum licet_reason reason;
  memset(&header, 0, sizeof header);
  memset(content, 0, sizeof *content);
  reason = reason_of(document == NULL ? LICET_ERR_DOCUMENT : split(document, longest, parts, counts, &length));
  if (reason == LICET_R_NONE) reason = reason_of(licet_i_parse(&header, (char *)parts[0], counts[0], LICET_SIGNED));
  if (reason == LICET_R_NONE) reason = check_header(&header, type, keys, &key);
  if (reason == LICET_R_NONE && (counts[2] != 64 || c->verify(c->user, parts[2], (const unsigned char *)document, length,
                                                              key->public_half) != 1)) {
    reason = LICET_R_SIGNATURE;
  }
  if (reason == LICET_R_NONE) reason = reason_of(licet_i_parse(content, (char *)parts[1], counts[1], LICET_SIGNED));
  licet_i_doc_free(&header);
  free(parts[0]);
  free(parts[1]);
  free(parts[2]);
  return reason;
}

static int has_text(const struct licet_doc *doc, const char *name, size_t shortest) {
  const struct licet_json *v = licet_i_member(doc, name, LICET_STRING);
  return v != NULL && v->length >= shortest;
}

static int has_text_or_null(const struct licet_doc *doc, const char *name) {
  return has_text(doc, name, 0) || licet_i_member(doc, name, LICET_NULL) != NULL;
}

static int optional_text(const struct licet_doc *doc, const char *name) {
  return has_text(doc, name, 0) || licet_i_get(doc, doc->values, name) == NULL;
}

/* read_exact reads an integer that all languages read exactly. */
static int read_exact(const struct licet_json *v, int64_t *value) {
  return licet_i_integer(v, value) && *value <= MAX_INTEGER && *value >= -MAX_INTEGER;
}

static int has_integer(const struct licet_doc *doc, const char *name, int64_t lowest, int64_t *value) {
  return read_exact(licet_i_get(doc, doc->values, name), value) && *value >= lowest;
}

static int has_entitlements(const struct licet_doc *doc) {
  const struct licet_json *all = licet_i_member(doc, "entitlements", LICET_OBJECT);
  int64_t number;
  uint32_t i;
  if (all == NULL) return 0;
  for (i = all->child; i != 0; i = doc->values[i].next) {
    const struct licet_json *v = &doc->values[i];
    if (v->type != LICET_TRUE && v->type != LICET_STRING && !read_exact(v, &number)) return 0;
  }
  return 1;
}

static int is_for(const licet_config *c, const struct licet_doc *doc) {
  return licet_i_is(licet_i_get(doc, doc->values, "account_id"), c->account_id) &&
         licet_i_is(licet_i_get(doc, doc->values, "mode"), c->mode);
}

/* read_jwk reads a key of a set. A key that is not one of Ed25519 under its own id is there, but not usable. Its kid is
 * not one of the keys before. */
static enum licet_reason read_jwk(const licet_config *c, const struct licet_doc *doc, uint32_t first,
                                  const struct licet_json *jwk, struct key *key) {
  static const char *const names[] = {"kty", "crv", "x", "kid"};
  const struct licet_json *v[4];
  char id[ID_SIZE + 1];
  int i, status;
  uint32_t before;
  memset(key, 0, sizeof *key);
  if (jwk->type != LICET_OBJECT) return LICET_R_MALFORMED;
  for (i = 0; i < 4; i++) {
    v[i] = licet_i_get(doc, jwk, names[i]);
    if (v[i] == NULL || v[i]->type != LICET_STRING) return LICET_R_MALFORMED;
  }
  for (before = first; &doc->values[before] != jwk; before = doc->values[before].next) {
    const struct licet_json *kid = licet_i_get(doc, &doc->values[before], "kid");
    if (kid->length == v[3]->length && memcmp(kid->text, v[3]->text, kid->length) == 0) return LICET_R_MALFORMED;
  }
  if (v[3]->length != ID_SIZE) return LICET_R_NONE;
  memcpy(key->id, v[3]->text, ID_SIZE);
  if (!licet_i_is(v[0], "OKP") || !licet_i_is(v[1], "Ed25519")) return LICET_R_NONE;
  status = read_key(v[2]->text, v[2]->length, key->public_half);
  if (status == LICET_ERR_DOCUMENT) return LICET_R_NONE;
  if (status == LICET_OK) status = thumbprint(c, key->public_half, id);
  if (status != LICET_OK) return LICET_R_MEMORY;
  key->usable = memcmp(id, key->id, ID_SIZE) == 0;
  return LICET_R_NONE;
}

static enum licet_reason read_keys(const licet_config *c, const struct licet_doc *doc, struct key_set *set,
                                   struct licet_verdict *verdict) {
  const struct licet_json *array = licet_i_member(doc, "keys", LICET_ARRAY);
  enum licet_reason reason;
  uint32_t i;
  set->count = 0;
  if (!has_text(doc, "iss", 0) || !has_text(doc, "account_id", 1) || !has_text(doc, "mode", 1) ||
      !has_integer(doc, "iat", 1, &verdict->keys_iat) || !has_integer(doc, "exp", 1, &verdict->keys_exp) ||
      verdict->keys_exp <= verdict->keys_iat || array == NULL || array->child == 0) {
    return LICET_R_MALFORMED;
  }
  for (i = array->child; i != 0; i = doc->values[i].next) {
    if (set->count == MAX_KEYS) return LICET_R_MALFORMED;
    reason = read_jwk(c, doc, array->child, &doc->values[i], &set->keys[set->count++]);
    if (reason != LICET_R_NONE) return reason;
  }
  return LICET_R_NONE;
}

static enum licet_reason check_keys(const struct licet_verifier *v, const char *document, const struct licet_seen *seen,
                                    int64_t now, struct key_set *keys, struct licet_verdict *verdict) {
  struct key_set root;
  struct licet_doc doc;
  enum licet_reason reason;
  memset(&root, 0, sizeof root);
  memcpy(root.keys[0].public_half, v->root, 32);
  root.count = 1, root.keys[0].usable = 1;
  if (thumbprint(v->config, v->root, root.keys[0].id) != LICET_OK) return LICET_R_MEMORY;
  reason = open_document(v->config, document, "licet-keys+jwt", LICET_MAX_KEYS, &root, &doc);
  if (reason == LICET_R_NONE) reason = read_keys(v->config, &doc, keys, verdict);
  if (reason == LICET_R_NONE) {
    if (!is_for(v->config, &doc)) reason = LICET_R_AUDIENCE;
    else if (verdict->keys_iat < seen->keys) reason = LICET_R_OLDER;
    else if (verdict->keys_iat > now + LEEWAY) reason = LICET_R_NOT_YET_VALID;
    else if (verdict->keys_exp <= now) reason = LICET_R_EXPIRED;
  }
  licet_i_doc_free(&doc);
  return reason;
}

static enum licet_reason check_receipt(const struct licet_verifier *v, const char *document,
                                       const struct licet_seen *seen, int64_t now, const struct key_set *keys,
                                       struct licet_verdict *verdict) {
  struct licet_doc *doc = &verdict->receipt;
  enum licet_reason reason =
      open_document(v->config, document, "licet-receipt+jwt", LICET_MAX_RECEIPT, keys, doc);
  int64_t not_before, max_devices;
  if (reason != LICET_R_NONE) return reason;
  if (!has_text(doc, "iss", 0) || !has_text(doc, "sub", 1) || !has_text(doc, "aud", 1) || !has_text(doc, "jti", 0) ||
      !has_text(doc, "account_id", 1) || !has_text(doc, "mode", 1) || !has_text(doc, "device_id", 1) ||
      !has_text(doc, "status", 0) || !has_text_or_null(doc, "license_expires_at") ||
      !has_text_or_null(doc, "lease_expires_at") || !has_text_or_null(doc, "grace_ends_at") ||
      !optional_text(doc, "nonce") || !optional_text(doc, "device_key") ||
      (!licet_i_member(doc, "trial", LICET_TRUE) && !licet_i_member(doc, "trial", LICET_FALSE)) ||
      !has_entitlements(doc) ||
      !has_integer(doc, "iat", 1, &verdict->iat) || !has_integer(doc, "nbf", 1, &not_before) ||
      !has_integer(doc, "exp", not_before, &verdict->exp) || !has_integer(doc, "revision", 1, &verdict->revision) ||
      !has_integer(doc, "max_devices", 0, &max_devices) ||
      !has_integer(doc, "revocation_max_age", 0, &verdict->max_age)) {
    return LICET_R_MALFORMED;
  }
  if (!is_for(v->config, doc) || !licet_i_is(licet_i_get(doc, doc->values, "aud"), v->config->product_id)) {
    return LICET_R_AUDIENCE;
  }
  if (!licet_i_is(licet_i_get(doc, doc->values, "device_id"), v->config->device_id)) return LICET_R_DEVICE;
  if (v->nonce != NULL && !licet_i_is(licet_i_get(doc, doc->values, "nonce"), v->nonce)) {
    return LICET_R_NONCE;
  }
  if (not_before > now + LEEWAY || verdict->iat > now + LEEWAY) return LICET_R_NOT_YET_VALID;
  if (verdict->exp <= now) return LICET_R_EXPIRED;
  if (verdict->revision < licet_i_seen_revision(seen, licet_i_get(doc, doc->values, "sub"))) {
    return LICET_R_OLDER;
  }
  return seen->time > now + LEEWAY ? LICET_R_CLOCK_SET_BACK : LICET_R_NONE;
}

/* read_list reads the content of a list. The caller frees the entries in each case. */
static enum licet_reason read_list(const struct licet_doc *doc, struct list *list) {
  const struct licet_json *entries = licet_i_member(doc, "entries", LICET_STRING);
  size_t count, i;
  int status;
  if (!has_text(doc, "iss", 0) || !has_text(doc, "account_id", 1) || !has_text(doc, "mode", 1) ||
      !has_integer(doc, "as_of", 1, &list->as_of) || !has_integer(doc, "epoch", 0, &list->epoch) ||
      !has_integer(doc, "after", 0, &list->after) || list->after > list->epoch || entries == NULL) {
    return LICET_R_MALFORMED;
  }
  status = licet_i_base64(entries->text, entries->length, &list->entries, &count);
  if (status != LICET_OK) return reason_of(status);
  if (count % ENTRY_SIZE != 0) return LICET_R_MALFORMED;
  list->count = count / ENTRY_SIZE;
  for (i = 1; i < list->count; i++) {
    const unsigned char *entry = list->entries + i * ENTRY_SIZE;
    if (memcmp(entry - ENTRY_SIZE, entry, NAME_SIZE) >= 0) return LICET_R_MALFORMED;
  }
  return LICET_R_NONE;
}

/* voids reports whether a list voids a revision for a name. */
static int voids(const struct list *list, const unsigned char name[NAME_SIZE], int64_t revision) {
  size_t low = 0, high = list->count;
  uint64_t highest = 0;
  while (low < high) {
    size_t middle = low + (high - low) / 2;
    const unsigned char *entry = list->entries + middle * ENTRY_SIZE;
    int order = memcmp(entry, name, NAME_SIZE), i;
    if (order == 0) {
      for (i = NAME_SIZE; i < ENTRY_SIZE; i++) highest = highest << 8 | entry[i];
      return (uint64_t)revision <= highest;
    }
    if (order < 0) low = middle + 1;
    else high = middle;
  }
  return 0;
}

/* entry_name writes the name of a license in a list; of a device of the license, if device is not null. */
static int entry_name(const licet_config *c, const struct licet_json *license, const char *device,
                      unsigned char name[NAME_SIZE]) {
  static const char begin[] = "licet revocation"; /* its zero byte belongs to the name */
  licet_buffer text = {NULL, 0, 0, LICET_MAX_RECEIPT * 2, 0};
  unsigned char digest[32];
  int status = LICET_ERR_MEMORY;
  (void)licet_buffer_append(&text, begin, sizeof begin);
  (void)licet_buffer_append(&text, license->text, license->length);
  if (device != NULL) {
    (void)licet_buffer_append(&text, "", 1);
    licet_i_put(&text, device);
  }
  if (!text.failed && c->sha256(c->user, (unsigned char *)text.data, text.length, digest) == 0) {
    memcpy(name, digest, NAME_SIZE);
    status = LICET_OK;
  }
  licet_i_buffer_free(&text);
  return status;
}

static enum licet_reason check_lists(const struct licet_verifier *v, const struct licet_documents *d,
                                     const struct licet_seen *seen, int64_t now, const struct key_set *keys,
                                     struct licet_verdict *verdict) {
  const struct licet_json *license = licet_i_get(&verdict->receipt, verdict->receipt.values, "sub");
  const struct licet_json *license_status = licet_i_get(&verdict->receipt, verdict->receipt.values, "status");
  unsigned char of_license[NAME_SIZE], of_device[NAME_SIZE];
  enum licet_reason reason = LICET_R_NONE;
  int64_t as_of = 0, epoch = 0;
  int voided = licet_i_is(license_status, "revoked") || licet_i_is(license_status, "suspended");
  size_t i;
  if (entry_name(v->config, license, NULL, of_license) != LICET_OK ||
      entry_name(v->config, license, v->config->device_id, of_device) != LICET_OK) {
    return LICET_R_MEMORY;
  }
  for (i = 0; i < d->count && reason == LICET_R_NONE; i++) {
    struct list list = {0, 0, 0, NULL, 0};
    struct licet_doc doc;
    reason = open_document(v->config, d->lists[i], "licet-revocations+jwt", LICET_MAX_LIST, keys, &doc);
    if (reason == LICET_R_NONE) reason = read_list(&doc, &list);
    if (reason == LICET_R_NONE) {
      if (!is_for(v->config, &doc)) reason = LICET_R_AUDIENCE;
      else if (list.as_of > now + LEEWAY) reason = LICET_R_NOT_YET_VALID;
      else if (list.after > epoch || list.epoch < epoch || list.as_of < as_of) reason = LICET_R_OLDER;
    }
    voided = voided || voids(&list, of_license, verdict->revision) || voids(&list, of_device, verdict->revision);
    as_of = list.as_of, epoch = list.epoch;
    free(list.entries);
    licet_i_doc_free(&doc);
  }
  if (reason != LICET_R_NONE) return reason;
  if (epoch < seen->epoch || as_of < seen->as_of) return LICET_R_OLDER;
  verdict->known = as_of > verdict->iat ? as_of : verdict->iat;
  verdict->epoch = epoch, verdict->as_of = as_of;
  return voided ? LICET_R_VOIDED : LICET_R_NONE;
}

void licet_i_verify(const struct licet_verifier *v, const struct licet_documents *d, const struct licet_seen *seen,
                    int64_t now, struct licet_verdict *verdict) {
  struct key_set keys;
  int64_t age;
  memset(verdict, 0, sizeof *verdict);
  verdict->stage = LICET_AT_KEYS;
  verdict->reason = check_keys(v, d->keys, seen, now, &keys, verdict);
  if (verdict->reason != LICET_R_NONE) return;
  verdict->stage = LICET_AT_RECEIPT;
  verdict->reason = check_receipt(v, d->receipt, seen, now, &keys, verdict);
  if (verdict->reason != LICET_R_NONE) return;
  verdict->stage = LICET_AT_LISTS;
  verdict->reason = check_lists(v, d, seen, now, &keys, verdict);
  if (verdict->reason != LICET_R_NONE || verdict->max_age == 0) return;
  age = now - verdict->known;
  verdict->in_grace = age >= verdict->max_age;
  if (verdict->in_grace && age - verdict->max_age >= v->config->grace_seconds) verdict->reason = LICET_R_STALE;
}

enum licet_reason licet_i_position(const char *document, int64_t *after, int64_t *epoch) {
  unsigned char *parts[3] = {NULL, NULL, NULL};
  size_t counts[3], length;
  struct licet_doc doc;
  int status = split(document, LICET_MAX_LIST, parts, counts, &length);
  memset(&doc, 0, sizeof doc);
  if (status == LICET_OK) status = licet_i_parse(&doc, (char *)parts[1], counts[1], LICET_SIGNED);
  if (status == LICET_OK && (!has_integer(&doc, "after", 0, after) || !has_integer(&doc, "epoch", 0, epoch))) {
    status = LICET_ERR_DOCUMENT;
  }
  licet_i_doc_free(&doc);
  free(parts[0]);
  free(parts[1]);
  free(parts[2]);
  return reason_of(status);
}
