/* fuzz.c FILE [SECONDS]: mutated vectors. With -DLIBFUZZER -fsanitize=fuzzer, the inputs are libFuzzer's. */
#include "service.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static int any_signature(void *user, const unsigned char signature[64], const unsigned char *message, size_t length,
                         const unsigned char key[32]) {
  (void)user, (void)signature, (void)message, (void)length, (void)key;
  return 1; /* so that mutated content is parsed */
}

static int nothing(void *user, const licet_request *request, licet_response *response) {
  (void)user, (void)request, (void)response;
  return LICET_ERR_UNREACHABLE;
}

struct input {
  const char *data;
  size_t length;
};

static int load(void *user, licet_buffer *state) {
  struct input *input = user;
  return licet_buffer_append(state, input->data, input->length);
}

static int save(void *user, const char *state, size_t length) {
  (void)user, (void)state, (void)length;
  return 0;
}

static int64_t now(void *user) {
  (void)user;
  return 1893553445;
}

/* check_state runs licet_check with a state, and a transport's parser with the same bytes. */
static int check_state(const char *root, const char *data, size_t length) {
  struct input input = {data, length};
  licet_config c;
  licet *h = NULL;
  licet_result *r = NULL;
  struct licet_doc doc;
  int allowed = 0;
  memset(&c, 0, sizeof c);
  c.size = sizeof c, c.url = "http://127.0.0.1", c.root = root, c.account_id = "acct_01", c.mode = "live";
  c.product_id = "editor", c.device_id = "device-1", c.user = &input, c.load = load, c.save = save;
  c.transport = nothing, c.verify = any_signature, c.now = now;
  if (licet_open(&c, &h) == LICET_OK) {
    int64_t n;
    (void)licet_check(h, &r);
    allowed = licet_result_allowed(r);
    (void)licet_entitlement_int(r, "seats", &n);
    (void)licet_entitlement_text(r, "edition");
    licet_result_free(r);
    (void)licet_refresh(h, &r);
    licet_result_free(r);
  }
  licet_close(h);
  if (licet_i_parse(&doc, data, length, LICET_SIGNED) == LICET_OK) licet_i_doc_free(&doc);
  return allowed;
}

#ifdef LIBFUZZER
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t length) {
  (void)check_state("licet_root_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA", (const char *)data, length);
  return 0;
}
#else
static uint64_t random_state = 88172645463325252u;

static size_t below(size_t n) {
  random_state ^= random_state << 13, random_state ^= random_state >> 7, random_state ^= random_state << 17;
  return n == 0 ? 0 : (size_t)(random_state % n);
}

/* mutate changes bytes, cuts, or repeats a part. It may make the text up to twice as long. */
static size_t mutate(char *text, size_t length) {
  static const char signs[] = "{}[]\",:\\u0019.eE-+ntf \x80\xC3\xFF";
  size_t times = 1 + below(4), at, n;
  while (times-- > 0 && length > 0) {
    at = below(length);
    switch (below(6)) {
    case 0: text[at] = (char)below(256); break;
    case 1: text[at] = signs[below(sizeof signs - 1)]; break;
    case 2: text[at] ^= (char)(1 << below(8)); break;
    case 3: length = below(8) == 0 ? at : length; break;
    case 4:
      n = below(length - at < 20 ? length - at : 20);
      memmove(text + at, text + at + n, length - at - n);
      length -= n;
      break;
    default:
      n = below(length - at < 40 ? length - at : 40);
      memmove(text + at + n, text + at, length - at);
      length += n;
    }
  }
  return length;
}

/* put_document writes a document, mostly with a mutated part. */
static void put_document(licet_buffer *b, const char *document) {
  unsigned char *bytes;
  char part[70000], encoded[100000];
  const char *from = document, *dot;
  size_t n, chosen = below(6);
  int i;
  if (strlen(document) > 20000) return;
  for (i = 0; i < 3; i++, from = dot + 1) {
    dot = i == 2 ? from + strlen(from) : strchr(from, '.');
    if (dot == NULL) break;
    if (i > 0) licet_i_put(b, ".");
    if (chosen == (size_t)i && licet_i_base64(from, (size_t)(dot - from), &bytes, &n) == LICET_OK) {
      memcpy(part, bytes, n);
      free(bytes);
      n = mutate(part, n);
      licet_i_base64_put((unsigned char *)part, n, encoded);
      licet_i_put(b, encoded);
    } else {
      (void)licet_buffer_append(b, from, (size_t)(dot - from));
    }
  }
}

int main(int argc, char **argv) {
  struct licet_doc doc;
  size_t length, rounds = 0, allowed = 0;
  char *json, *copy;
  const char *root;
  uint32_t i, list;
  time_t until;
  if (argc < 2) return 2;
  json = read_whole(argv[1], &length);
  until = time(NULL) + (argc > 2 ? atoi(argv[2]) : 5);
  if (licet_i_parse(&doc, json, length, LICET_PLAIN) != LICET_OK) return 2;
  root = licet_i_member(&doc, "root", LICET_STRING)->text;
  while (time(NULL) < until) {
    for (i = licet_i_member(&doc, "vectors", LICET_ARRAY)->child; i != 0; i = doc.values[i].next, rounds++) {
      const struct licet_json *each = &doc.values[i];
      licet_buffer b = {NULL, 0, 0, 1 << 20, 0};
      licet_i_put(&b, "{\"license_key\":\"LIC-1\",\"documents\":{\"keys\":\"");
      put_document(&b, licet_i_get(&doc, each, "keys")->text);
      licet_i_put(&b, "\",\"receipt\":\"");
      put_document(&b, licet_i_get(&doc, each, "receipt")->text);
      licet_i_put(&b, "\",\"revocations\":[");
      for (list = licet_i_get(&doc, each, "revocations")->child; list != 0; list = doc.values[list].next) {
        licet_i_put(&b, b.data[b.length - 1] == '[' ? "\"" : ",\"");
        put_document(&b, doc.values[list].text);
        licet_i_put(&b, "\"");
      }
      licet_i_put(&b, "]},\"seen\":{\"time\":0,\"keys\":0,\"license_id\":\"\",\"revision\":0,\"epoch\":0,"
                       "\"earlier\":[{\"license_id\":\"lic_9\",\"revision\":9}]}}");
      copy = malloc(b.length * 2 + 400); /* so that a sanitizer sees a byte read beyond the end */
      memcpy(copy, b.data, b.length);
      length = below(8) == 0 ? mutate(copy, b.length) : b.length;
      licet_i_buffer_free(&b);
      b.limit = 1 << 20;
      (void)licet_buffer_append(&b, copy, length);
      free(copy);
      allowed += (size_t)check_state(root, b.data, b.length);
      licet_i_buffer_free(&b);
    }
  }
  licet_i_doc_free(&doc);
  free(json);
  printf("fuzz: %lu states, %lu of them allowed\n", (unsigned long)rounds, (unsigned long)allowed);
  return rounds == 0;
}
#endif
