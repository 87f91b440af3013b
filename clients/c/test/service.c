#include "service.h"

#include <sodium.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* key makes the key of a number; 0 is the root key, 99 a foreign key. */
static void key(int number, unsigned char public_half[32], unsigned char secret[64]) {
  unsigned char seed[32];
  memset(seed, 17 + number, sizeof seed);
  crypto_sign_seed_keypair(public_half, secret, seed);
}

static void put64(licet_buffer *b, const void *bytes, size_t count) {
  char *text = malloc(count * 4 / 3 + 4);
  licet_i_base64_put(bytes, count, text);
  licet_i_put(b, text);
  free(text);
}

static void key_id(int number, char id[64]) {
  unsigned char public_half[32], secret[64], digest[32];
  char x[64], text[128];
  key(number, public_half, secret);
  licet_i_base64_put(public_half, 32, x);
  snprintf(text, sizeof text, "{\"crv\":\"Ed25519\",\"kty\":\"OKP\",\"x\":\"%s\"}", x);
  crypto_hash_sha256(digest, (unsigned char *)text, strlen(text));
  licet_i_base64_put(digest, 32, id);
}

static void sign(licet_buffer *into, const char *type, int number, int signer, const char *content) {
  unsigned char public_half[32], secret[64], signature[64];
  char id[64], header[256];
  size_t from = into->length;
  key(signer, public_half, secret);
  key_id(number, id);
  snprintf(header, sizeof header, "{\"alg\":\"EdDSA\",\"kid\":\"%s\",\"typ\":\"%s\"}", id, type);
  put64(into, header, strlen(header));
  licet_i_put(into, ".");
  put64(into, content, strlen(content));
  crypto_sign_detached(signature, NULL, (unsigned char *)into->data + from, into->length - from, secret);
  licet_i_put(into, ".");
  put64(into, signature, sizeof signature);
}

void service_begin(struct service *s, int64_t now) {
  memset(s, 0, sizeof *s);
  s->now = now, s->max_age = 86400, s->validity = 7 * 86400, s->revision = 1, s->valid = 1, s->key_number = 1, s->license = "lic_1";
}

void service_root(char text[64]) {
  unsigned char public_half[32], secret[64];
  key(0, public_half, secret);
  strcpy(text, "licet_root_");
  licet_i_base64_put(public_half, 32, text + strlen(text));
}

#define WHOSE "\"iss\":\"http://127.0.0.1\",\"account_id\":\"acct_1\",\"mode\":\"test\","

static void answer_keys(struct service *s, licet_buffer *answer) {
  unsigned char public_half[32], secret[64];
  char id[64], x[64], content[1024];
  key(s->key_number, public_half, secret);
  key_id(s->key_number, id);
  licet_i_base64_put(public_half, 32, x);
  snprintf(content, sizeof content, "{" WHOSE "\"iat\":%lld,\"exp\":%lld,\"keys\":[{\"kty\":\"OKP\",\"crv\":\"Ed25519\","
           "\"x\":\"%s\",\"kid\":\"%s\",\"use\":\"sig\",\"alg\":\"EdDSA\"}]}", (long long)s->now,
           (long long)s->now + 90 * 86400, x, id);
  licet_i_put(answer, "{\"keys\":[],\"signed\":\"");
  sign(answer, "licet-keys+jwt", 0, 0, content);
  licet_i_put(answer, "\"}");
}

static void answer_list(struct service *s, const char *query, licet_buffer *answer) {
  unsigned char digest[32], entry[24];
  char content[1024], entries[64] = "";
  long long after = strncmp(query, "?after=", 7) == 0 && !s->whole_lists ? atoll(query + 7) : 0;
  int i;
  if (s->voided > 0 && after < s->epoch) {
    crypto_hash_sha256(digest, (const unsigned char *)"licet revocation\0lic_1", 22);
    memcpy(entry, digest, 16);
    for (i = 0; i < 8; i++) entry[16 + i] = (unsigned char)((uint64_t)s->voided >> (56 - 8 * i));
    licet_i_base64_put(entry, sizeof entry, entries);
  }
  snprintf(content, sizeof content, "{" WHOSE "\"as_of\":%lld,\"epoch\":%lld,\"after\":%lld,\"entries\":\"%s\"}",
           (long long)s->now, (long long)s->epoch, after, entries);
  sign(answer, "licet-revocations+jwt", s->key_number, s->forge_lists ? 99 : s->key_number, content);
}

static void text_member(const struct licet_doc *doc, const char *name, char *into, size_t size) {
  const struct licet_json *v = licet_i_member(doc, name, LICET_STRING);
  snprintf(into, size, "%s", v == NULL ? "" : v->text);
}

static int refuse(licet_buffer *answer, int code, const char *reason, int retryable) {
  char text[256];
  snprintf(text, sizeof text, "{\"code\":%d,\"message\":\"%s\",\"error\":{\"reason\":\"%s\",\"retryable\":%s,"
           "\"request_id\":\"r\"}}", code, reason, reason, retryable ? "true" : "false");
  licet_i_put(answer, text);
  return code / 100;
}

static void answer_receipt(struct service *s, const struct licet_doc *request, int trial, licet_buffer *answer) {
  char device[300], nonce[128], content[2048];
  text_member(request, "device_id", device, sizeof device);
  text_member(request, "nonce", nonce, sizeof nonce);
  s->lease_seconds = 0;
  (void)licet_i_integer(licet_i_get(request, request->values, "lease_seconds"), &s->lease_seconds);
  snprintf(content, sizeof content, "{" WHOSE "\"sub\":\"%s\",\"aud\":\"editor\",\"iat\":%lld,\"nbf\":%lld,"
           "\"exp\":%lld,\"jti\":\"rcp_1\",\"device_id\":\"%s\",\"status\":\"activated\",\"max_devices\":3,"
           "\"entitlements\":{\"export\":true,\"seats\":5,\"edition\":\"pro\"},\"license_expires_at\":null,"
           "\"lease_expires_at\":null,\"grace_ends_at\":null,\"trial\":%s,\"revision\":%lld,"
           "\"revocation_max_age\":%lld,\"nonce\":\"%s\"}", s->license, (long long)(s->now + s->iat_shift),
           (long long)(s->now + s->iat_shift), (long long)(s->now + s->validity), device, trial ? "true" : "false",
           (long long)s->revision, (long long)s->max_age, s->wrong_nonce != NULL ? s->wrong_nonce : nonce);
  licet_i_put(answer, "{\"code\":0,\"message\":\"success\",\"data\":{\"valid\":true,\"license_key\":\"LIC-1\","
              "\"entitlements\":{\"Later Names\":{}}");
  if (licet_i_member(request, "receipt", LICET_TRUE) != NULL && !s->plain && !(trial && s->trial_given_back)) {
    licet_i_put(answer, ",\"receipt\":\"");
    sign(answer, "licet-receipt+jwt", s->key_number, s->key_number, content);
    licet_i_put(answer, "\"");
  }
  licet_i_put(answer, "}}");
}

int service_answer(struct service *s, const char *method, const char *path, const char *body, size_t length,
                   licet_buffer *answer) {
  static const char account[] = "/v1/accounts/acct_1/test/", license[] = "/v1/licenses/";
  struct licet_doc request;
  const struct licet_json *license_key;
  int status = 200;
  s->requests++;
  if (s->fail_times > 0) {
    s->fail_times--;
    if (s->fail_status == 200) licet_i_put(answer, "<html>");
    else refuse(answer, s->fail_status * 100, "failed", s->retryable);
    return s->fail_status;
  }
  if (strcmp(method, "GET") == 0) {
    if (strncmp(path, account, sizeof account - 1) != 0) return refuse(answer, 40400, "not_found", 0);
    path += sizeof account - 1;
    if (strcmp(path, "jwks.json") == 0) answer_keys(s, answer);
    else if (strncmp(path, "revocations", 11) == 0) answer_list(s, path + 11, answer);
    else return refuse(answer, 40400, "not_found", 0);
    return 200;
  }
  if (licet_i_parse(&request, body, length, LICET_PLAIN) != LICET_OK) return refuse(answer, 40000, "malformed_request", 0);
  license_key = licet_i_member(&request, "license_key", LICET_STRING);
  if (strcmp(path, "/v1/trials") == 0) {
    answer_receipt(s, &request, 1, answer);
  } else if (strncmp(path, license, sizeof license - 1) != 0 || !licet_i_is(license_key, "LIC-1")) {
    status = refuse(answer, 40401, "license_not_found", 0);
  } else if (strcmp(path + sizeof license - 1, "deactivate") == 0) {
    s->bound = 0;
    licet_i_put(answer, "{\"code\":0,\"message\":\"success\",\"data\":{\"removed\":true}}");
  } else if (strcmp(path + sizeof license - 1, "activate") == 0) {
    s->bound = 1;
    answer_receipt(s, &request, 0, answer);
  } else if (s->bound && s->valid) {
    answer_receipt(s, &request, 0, answer);
  } else {
    licet_i_put(answer, "{\"code\":0,\"message\":\"success\",\"data\":{\"valid\":false,\"reason\":\"");
    licet_i_put(answer, s->bound ? "license_revoked" : "device_not_bound");
    licet_i_put(answer, "\"}}");
  }
  licet_i_doc_free(&request);
  return status;
}

char *read_whole(const char *path, size_t *length) {
  licet_buffer b = {NULL, 0, 0, 16 << 20, 0};
  if (licet_i_file_load(path, &b) != 0 || b.data == NULL) {
    fprintf(stderr, "can't read %s\n", path);
    exit(2);
  }
  *length = b.length;
  return b.data;
}
