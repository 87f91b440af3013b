/* client.c: a license on a device: what it keeps, what it asks the service, and what it answers. */
#include "internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

#define DEFAULT_RETRY_SECONDS 30
#define MIN_BACKOFF 100 /* milliseconds */
#define MAX_BACKOFF 5000
#define REQUEST_TIMEOUT 20000
#define NONCE_SIZE 16
#define LONG_INCREMENT ((size_t)256 << 10) /* above this length, the whole list replaces an increment */
#define YEAR 31622400
#define REFRESH_PAUSE 60 /* most seconds between two refreshes, if the first one has not got what is due */
#define LAST_SECOND ((int64_t)1 << 50) /* so that sums of times stay in range */

struct licet {
  licet_config config; /* with its own texts */
  struct licet_verifier verifier;
  struct licet_documents documents;
  struct licet_seen seen;
  char *license_key;    /* null: none */
  int refreshing; /* licet_refresh is under way */
  int64_t refreshed_at; /* the end of the last call of licet_refresh; 0: none */
};

struct licet_result {
  int allowed, in_grace, code;
  char reason[64], message[256];
  int64_t refresh_at, expires_at;
  struct licet_doc receipt; /* empty if not allowed */
};

static char *copy_text(const char *text, size_t length) {
  char *copy = malloc(length + 1);
  if (copy == NULL) return NULL;
  if (length > 0) memcpy(copy, text, length);
  copy[length] = 0;
  return copy;
}

/* put_text copies a text, or its beginning, into an array. */
static void put_text(char *into, size_t size, const char *text) {
  size_t length = strlen(text);
  if (length >= size) length = size - 1;
  while (length > 0 && text[length] != 0 && ((unsigned char)text[length] & 0xC0) == 0x80) length--;
  memcpy(into, text, length);
  into[length] = 0;
}

/* replace sets a text of the state to a copy; null and an empty text: none. */
static int replace(char **text, const char *with) {
  char *copy = NULL;
  if (with != NULL && *with != 0 && (copy = copy_text(with, strlen(with))) == NULL) return LICET_ERR_MEMORY;
  free(*text);
  *text = copy;
  return LICET_OK;
}

static void free_documents(struct licet_documents *d) {
  free(d->keys);
  free(d->receipt);
  free(d->etag);
  while (d->count > 0) free(d->lists[--d->count]);
  memset(d, 0, sizeof *d);
}

static int copy_documents(const struct licet_documents *d, struct licet_documents *copy) {
  memset(copy, 0, sizeof *copy);
  copy->until = d->until;
  if (replace(&copy->keys, d->keys) != LICET_OK || replace(&copy->receipt, d->receipt) != LICET_OK ||
      replace(&copy->etag, d->etag) != LICET_OK) {
    goto failed;
  }
  for (; copy->count < d->count; copy->count++) {
    copy->lists[copy->count] = copy_text(d->lists[copy->count], strlen(d->lists[copy->count]));
    if (copy->lists[copy->count] == NULL) goto failed;
  }
  return LICET_OK;
failed:
  free_documents(copy);
  return LICET_ERR_MEMORY;
}

static int64_t now_of(const licet *h) {
  int64_t now = h->config.now != NULL ? h->config.now(h->config.user) : (int64_t)time(NULL);
  return now < 0 ? 0 : now > LAST_SECOND ? LAST_SECOND : now;
}

/* text_of returns a text of the state; null if there is none, or it has a zero byte. */
static const char *text_of(const struct licet_json *v) {
  return v != NULL && v->type == LICET_STRING && strlen(v->text) == v->length ? v->text : NULL;
}

/* is_etag returns 1 for a text that may stand in a header: printable ASCII without spaces. */
static int is_etag(const char *text, size_t length) {
  size_t i;
  for (i = 0; i < length; i++) {
    if (text[i] < 0x21 || text[i] > 0x7e) return 0;
  }
  return length < sizeof ((licet_response *)0)->etag;
}

static int load(licet *h) {
  licet_buffer text = {NULL, 0, 0, LICET_MAX_STATE, 0};
  struct licet_doc doc;
  const struct licet_json *documents, *lists, *about, *account;
  const char *etag;
  uint32_t i;
  int status = h->config.load != NULL ? h->config.load(h->config.user, &text)
                                      : licet_i_file_load(h->config.state_file, &text);
  if (status != 0 || text.failed) {
    status = text.failed == LICET_TOO_LONG ? LICET_OK : LICET_ERR_STATE; /* no state of this library is so long */
    licet_i_buffer_free(&text);
    return status;
  }
  status = licet_i_parse(&doc, text.data == NULL ? "" : text.data, text.length, LICET_PLAIN);
  licet_i_buffer_free(&text);
  if (status != LICET_OK) return status == LICET_ERR_DOCUMENT ? LICET_OK : status;
  documents = licet_i_member(&doc, "documents", LICET_OBJECT);
  about = licet_i_member(&doc, "lists", LICET_OBJECT); /* a state of an earlier version has none */
  etag = text_of(licet_i_get(&doc, about, "etag"));
  if (!licet_i_integer(licet_i_get(&doc, about, "until"), &h->documents.until)) h->documents.until = 0;
  if (replace(&h->license_key, text_of(licet_i_member(&doc, "license_key", LICET_STRING))) != LICET_OK ||
      licet_i_seen_read(&doc, licet_i_member(&doc, "seen", LICET_OBJECT), &h->seen) != LICET_OK ||
      replace(&h->documents.keys, text_of(licet_i_get(&doc, documents, "keys"))) != LICET_OK ||
      replace(&h->documents.receipt, text_of(licet_i_get(&doc, documents, "receipt"))) != LICET_OK ||
      replace(&h->documents.etag, etag != NULL && is_etag(etag, strlen(etag)) ? etag : NULL) != LICET_OK) {
    status = LICET_ERR_MEMORY;
  }
  lists = licet_i_get(&doc, documents, "revocations");
  i = lists != NULL && lists->type == LICET_ARRAY ? lists->child : 0;
  account = licet_i_member(&doc, "account_id", LICET_STRING);
  if (account != NULL && (!licet_i_is(account, h->config.account_id) ||
                          !licet_i_is(licet_i_member(&doc, "mode", LICET_STRING), h->config.mode))) {
    /* The program was switched, such as from test to live: positions and times of the two are not comparable. */
    i = 0, h->documents.until = 0;
    licet_i_seen_free(&h->seen);
    memset(&h->seen, 0, sizeof h->seen);
    (void)replace(&h->documents.etag, NULL);
  }
  for (; status == LICET_OK && i != 0 && h->documents.count < LICET_MAX_LISTS; i = doc.values[i].next) {
    const char *list = text_of(&doc.values[i]);
    if (list == NULL) list = "";
    h->documents.lists[h->documents.count] = copy_text(list, strlen(list));
    if (h->documents.lists[h->documents.count] == NULL) status = LICET_ERR_MEMORY;
    else h->documents.count++;
  }
  licet_i_doc_free(&doc);
  return status;
}

static const char *or_empty(const char *text) { return text == NULL ? "" : text; }

static int save(licet *h) {
  licet_buffer b = {NULL, 0, 0, LICET_MAX_STATE, 0};
  size_t i;
  int status;
  licet_i_put(&b, "{");
  licet_i_put_member(&b, "account_id", h->config.account_id);
  licet_i_put_member(&b, "mode", h->config.mode);
  licet_i_put_member(&b, "license_key", or_empty(h->license_key));
  licet_i_put(&b, ",\"documents\":{");
  licet_i_put_member(&b, "keys", or_empty(h->documents.keys));
  licet_i_put_member(&b, "receipt", or_empty(h->documents.receipt));
  licet_i_put(&b, ",\"revocations\":[");
  for (i = 0; i < h->documents.count; i++) {
    if (i > 0) licet_i_put(&b, ",");
    licet_i_put_string(&b, h->documents.lists[i]);
  }
  licet_i_put(&b, "]},\"seen\":");
  licet_i_seen_put(&b, &h->seen);
  licet_i_put(&b, ",\"lists\":{");
  licet_i_put_member(&b, "etag", or_empty(h->documents.etag));
  licet_i_put_number(&b, "until", h->documents.until);
  licet_i_put(&b, "}}\n");
  status = b.failed ? LICET_ERR_MEMORY : LICET_OK;
  if (status == LICET_OK) {
    int failed = h->config.save != NULL ? h->config.save(h->config.user, b.data, b.length)
                                        : licet_i_file_save(h->config.state_file, b.data, b.length);
    status = failed ? LICET_ERR_STATE : LICET_OK;
  }
  licet_i_buffer_free(&b);
  return status;
}

static void verify(licet *h, const struct licet_documents *d, struct licet_verdict *verdict) {
  licet_i_verify(&h->verifier, d, &h->seen, now_of(h), verdict);
  if (d->receipt == NULL && verdict->reason != LICET_R_MEMORY) {
    verdict->reason = h->license_key == NULL ? LICET_R_NOT_ACTIVATED : LICET_R_UNREACHABLE;
  }
}

/* keep makes documents those of the handle, and saves them with what they show. It takes the documents. */
static int keep(licet *h, struct licet_documents *d, const struct licet_verdict *verdict) {
  free_documents(&h->documents);
  h->documents = *d;
  memset(d, 0, sizeof *d);
  if (licet_i_seen_advance(&h->seen, verdict) != LICET_OK) return LICET_ERR_MEMORY;
  return save(h);
}

static int shows_more(const licet *h, const struct licet_verdict *v) {
  const struct licet_json *license = licet_i_member(&v->receipt, "sub", LICET_STRING);
  return v->keys_iat != h->seen.keys || v->epoch != h->seen.epoch || v->as_of != h->seen.as_of ||
         v->known > h->seen.time || h->seen.count == 0 || v->revision != h->seen.licenses[0].revision ||
         !licet_i_is(license, h->seen.licenses[0].id);
}

static void deny(licet_result *r, const char *reason) {
  r->allowed = r->in_grace = 0, r->refresh_at = r->expires_at = 0;
  put_text(r->reason, sizeof r->reason, reason);
}

/* invalid denies what the arguments or the state do not allow, without a request. */
static int invalid(licet_result *r, const char *reason) {
  deny(r, reason);
  return LICET_ERR_ARGUMENT;
}

/* receipt_due returns when a good receipt is to be replaced. */
static int64_t receipt_due(const struct licet_verdict *v) { return v->iat + (v->exp - v->iat) / 2; }

/* list_due returns when a newer list is to be fetched for a good receipt that needs lists. The service sends at most
 * half of revocation_max_age as max-age: more is that of another server, or of another time of the clock. */
static int64_t list_due(const licet *h, const struct licet_verdict *v) {
  int64_t half = v->known + v->max_age / 2, whole = v->known + v->max_age, until = h->documents.until;
  if (until <= half || until > now_of(h) + v->max_age / 2) return half;
  return until < whole ? until : whole;
}

/* keys_are_due returns 1 if the set of keys ends before the receipt. */
static int keys_are_due(const struct licet_verdict *v) { return v->keys_exp < v->exp; }

/* next_refresh returns when a refresh may follow the last one, which has not got what is due: several times before the
 * receipt ends or its list is too old. */
static int64_t next_refresh(const licet *h, const struct licet_verdict *v) {
  int64_t pause = (v->exp - v->iat) / 8;
  if (v->max_age > 0 && v->max_age / 8 < pause) pause = v->max_age / 8;
  return h->refreshed_at + (pause > REFRESH_PAUSE ? REFRESH_PAUSE : pause < 1 ? 1 : pause);
}

/* conclude makes a verdict the result, and frees the verdict. */
static void conclude(licet *h, licet_result *r, struct licet_verdict *verdict) {
  if (h->refreshing) h->refreshed_at = now_of(h);
  deny(r, licet_i_word(verdict->reason));
  licet_i_doc_free(&r->receipt);
  if (verdict->reason == LICET_R_NONE) {
    r->allowed = 1, r->in_grace = verdict->in_grace, r->expires_at = verdict->exp;
    r->refresh_at = receipt_due(verdict);
    if (verdict->max_age > 0 && list_due(h, verdict) < r->refresh_at) r->refresh_at = list_due(h, verdict);
    if (keys_are_due(verdict)) r->refresh_at = 0;
    if (h->refreshed_at > 0 && h->refreshed_at <= now_of(h) && r->refresh_at <= h->refreshed_at) {
      r->refresh_at = next_refresh(h, verdict);
    }
    r->receipt = verdict->receipt;
    memset(&verdict->receipt, 0, sizeof verdict->receipt);
  }
  licet_i_doc_free(&verdict->receipt);
}

static int check(licet *h, licet_result *r) {
  struct licet_verdict verdict;
  struct licet_documents same;
  int status = LICET_OK;
  verify(h, &h->documents, &verdict);
  if (verdict.reason == LICET_R_NONE && shows_more(h, &verdict)) {
    same = h->documents;
    memset(&h->documents, 0, sizeof h->documents);
    status = keep(h, &same, &verdict);
  }
  conclude(h, r, &verdict);
  return r->allowed || strcmp(r->reason, "memory") != 0 ? status : LICET_ERR_MEMORY;
}

/* backoff returns the pause after a number of tries, in milliseconds: what the service demands, and a random time. */
static int64_t backoff(const licet *h, int tries, int64_t retry_after) {
  unsigned char random[4] = {255, 255, 255, 255};
  uint32_t n, bound = tries < 6 ? (uint32_t)MIN_BACKOFF << (tries - 1) : MAX_BACKOFF;
  if (h->config.random(h->config.user, random, sizeof random) != 0) memset(random, 255, sizeof random);
  n = (uint32_t)random[0] << 24 | (uint32_t)random[1] << 16 | (uint32_t)random[2] << 8 | random[3];
  return retry_after * 1000 + n % bound;
}

/* read_response returns LICET_OK, LICET_ERR_REFUSED, LICET_ERR_UNREACHABLE or LICET_ERR_TRY_AGAIN for a response. It
 * parses the body of an API route into envelope, which the caller frees in each case. */
static int read_response(const licet_response *response, struct licet_doc *envelope, licet_result *r) {
  const struct licet_json *error, *v;
  int64_t code = -1;
  int success = response->status / 100 == 2, status;
  status = licet_i_parse(envelope, or_empty(response->body.data), response->body.length, LICET_PLAIN);
  if (status == LICET_ERR_MEMORY) return status;
  if (status != LICET_OK || !licet_i_integer(licet_i_member(envelope, "code", LICET_NUMBER), &code) || code < 0 ||
      code > 99999 || success != (code == 0) || (success && !licet_i_member(envelope, "data", LICET_OBJECT))) {
    put_text(r->message, sizeof r->message, "an answer of a server that is no Licet service");
    return response->status == 429 || (response->status >= 502 && response->status <= 504) ? LICET_ERR_TRY_AGAIN
                                                                                           : LICET_ERR_UNREACHABLE;
  }
  if (success) return LICET_OK;
  r->code = (int)code;
  if ((v = licet_i_member(envelope, "message", LICET_STRING)) != NULL) {
    put_text(r->message, sizeof r->message, v->text);
  }
  error = licet_i_member(envelope, "error", LICET_OBJECT);
  v = licet_i_get(envelope, error, "retryable");
  if (v != NULL && v->type == LICET_TRUE) return LICET_ERR_TRY_AGAIN;
  v = licet_i_get(envelope, error, "reason");
  deny(r, v != NULL && v->type == LICET_STRING ? v->text : "refused");
  return LICET_ERR_REFUSED;
}

/* exchange sends a request until it succeeds, is refused, or its time is over. path begins with a slash. A request with
 * a body is of an API route; without one, the answer is a document, or the status 304 if etag is not null. The caller
 * frees both outputs in each case. */
static int exchange(licet *h, const char *path, const licet_buffer *body, const char *etag, size_t longest,
                    licet_response *response, struct licet_doc *envelope, licet_result *r) {
  const licet_config *c = &h->config;
  licet_buffer url = {NULL, 0, 0, 4096, 0};
  licet_request request;
  int64_t started = c->ticks != NULL ? c->ticks(c->user) : 0, waited = 0, spent, wait, budget;
  int tries, status, is_document;
  memset(response, 0, sizeof *response);
  memset(envelope, 0, sizeof *envelope);
  budget = (int64_t)(c->retry_seconds == 0 ? DEFAULT_RETRY_SECONDS : c->retry_seconds) * 1000;
  (void)licet_buffer_append(&url, c->url, strlen(c->url) - (c->url[strlen(c->url) - 1] == '/'));
  licet_i_put(&url, path);
  memset(&request, 0, sizeof request);
  request.size = sizeof request, request.method = body == NULL ? "GET" : "POST", request.url = url.data;
  request.body = body == NULL ? NULL : body->data, request.body_length = body == NULL ? 0 : body->length;
  request.timeout_ms = REQUEST_TIMEOUT, request.etag = etag;
  status = url.failed || (body != NULL && body->failed) ? LICET_ERR_MEMORY : LICET_OK;
  for (tries = 1; status == LICET_OK; tries++) {
    licet_i_buffer_free(&response->body);
    licet_i_doc_free(envelope);
    response->status = 0, response->retry_after = 0, response->max_age = 0, response->etag[0] = 0;
    response->body.limit = longest;
    r->code = 0, r->message[0] = 0;
    status = c->transport(c->user, &request, response);
    if (status == LICET_OK && response->body.failed) status = LICET_ERR_UNREACHABLE;
    is_document = body == NULL && (response->status == 200 || (response->status == 304 && etag != NULL));
    if (status == LICET_OK && !is_document) status = read_response(response, envelope, r);
    if (status == LICET_OK) break;
    if (status != LICET_ERR_TRY_AGAIN) break;
    wait = backoff(h, tries, response->retry_after);
    spent = c->ticks != NULL ? c->ticks(c->user) - started : 0;
    if ((spent > waited ? spent : waited) + wait > budget) break;
    c->wait(c->user, (int)wait);
    waited += wait;
    status = LICET_OK;
  }
  licet_i_buffer_free(&url);
  if (status == LICET_OK || status == LICET_ERR_REFUSED || status == LICET_ERR_MEMORY) return status;
  deny(r, "unreachable");
  return LICET_ERR_UNREACHABLE;
}

/* put_segment writes a segment of a path, percent-encoded. */
static void put_segment(licet_buffer *b, const char *text) {
  static const char hex[] = "0123456789ABCDEF";
  licet_i_put(b, "/");
  for (; *text != 0; text++) {
    unsigned char c = (unsigned char)*text;
    char escaped[4] = {'%', hex[c >> 4], hex[c & 15], 0}, plain[2] = {*text, 0};
    int safe = (c >= '0' && c <= '9') || (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' || c == '-';
    licet_i_put(b, safe ? plain : escaped);
  }
}

/* fetch gets a document of the account; after is 0, or the position of a list. */
static int fetch(licet *h, const char *name, int64_t after, const char *etag, size_t longest,
                 licet_response *response, struct licet_doc *envelope, licet_result *r) {
  licet_buffer path = {NULL, 0, 0, 2048, 0};
  int status = LICET_ERR_MEMORY;
  memset(response, 0, sizeof *response);
  memset(envelope, 0, sizeof *envelope);
  licet_i_put(&path, "/v1/accounts");
  put_segment(&path, h->config.account_id);
  put_segment(&path, h->config.mode);
  licet_i_put(&path, name);
  if (after > 0) {
    licet_i_put(&path, "?after=");
    licet_i_put_integer(&path, after);
  }
  if (!path.failed) status = exchange(h, path.data, NULL, etag, longest, response, envelope, r);
  licet_i_buffer_free(&path);
  return status;
}

static int fetch_keys(licet *h, struct licet_documents *d, licet_result *r) {
  licet_response response;
  struct licet_doc doc;
  const char *text;
  int status = fetch(h, "/jwks.json", 0, NULL, LICET_MAX_ANSWER, &response, &doc, r);
  if (status == LICET_OK) {
    status = licet_i_parse(&doc, or_empty(response.body.data), response.body.length, LICET_PLAIN);
    text = status == LICET_OK ? text_of(licet_i_member(&doc, "signed", LICET_STRING)) : NULL;
    if (status == LICET_OK) status = text == NULL ? LICET_ERR_DOCUMENT : replace(&d->keys, text);
  }
  licet_i_doc_free(&doc);
  licet_i_buffer_free(&response.body);
  return status;
}

/* fetch_list gets the increment since the whole list, or a whole list. */
static int fetch_list(licet *h, struct licet_documents *d, int whole, licet_result *r) {
  licet_response response;
  struct licet_doc doc;
  char *list;
  int64_t position, epoch, after = 0;
  int status, stays;
  if (!whole && d->count > 0 && (d->count == 1 || strlen(d->lists[1]) <= LONG_INCREMENT) &&
      licet_i_position(d->lists[0], &position, &after) != LICET_R_NONE) {
    after = 0;
  }
  status = fetch(h, "/revocations", after, after > 0 ? d->etag : NULL, LICET_MAX_LIST, &response, &doc, r);
  if (status == LICET_OK) d->until = now_of(h) + response.max_age;
  if (status == LICET_OK && response.status != 304) {
    const char *text = or_empty(response.body.data);
    /* With a zero byte within it, the body is no list, though its beginning may be one. */
    list = copy_text(text, strlen(text) == response.body.length ? response.body.length : 0);
    status = list == NULL ? LICET_ERR_MEMORY : replace(&d->etag, response.etag);
    if (status == LICET_OK) {
      stays = licet_i_position(list, &position, &epoch) == LICET_R_NONE && position > 0 && position <= after;
      while (d->count > (size_t)stays) free(d->lists[--d->count]);
      d->lists[d->count++] = list;
    } else {
      free(list);
    }
  }
  licet_i_doc_free(&doc);
  licet_i_buffer_free(&response.body);
  return status;
}

enum { KEYS = 1, LIST = 2, WHOLE_LIST = 4 };

/* settle verifies documents, and gets others in the place of a set of keys or lists that are refused, each once. want
 * is what to get first. The status is that of the request that failed. */
static int settle(licet *h, struct licet_documents *d, int want, struct licet_verdict *verdict, licet_result *r) {
  int got = 0, keys = LICET_OK, list = LICET_OK;
  memset(verdict, 0, sizeof *verdict);
  for (;;) {
    if (want & KEYS) keys = fetch_keys(h, d, r);
    if (want & (LIST | WHOLE_LIST)) list = fetch_list(h, d, want & WHOLE_LIST, r);
    got |= want;
    licet_i_doc_free(&verdict->receipt);
    verify(h, d, verdict);
    switch (verdict->reason) {
    case LICET_R_NONE:
    case LICET_R_VOIDED:
    case LICET_R_NOT_ACTIVATED:
    case LICET_R_UNREACHABLE:
    case LICET_R_MEMORY:
      want = 0;
      break;
    default:
      want = verdict->stage == LICET_AT_LISTS ? WHOLE_LIST : 0;
      if ((verdict->reason == LICET_R_KEY || verdict->stage == LICET_AT_KEYS) && !(got & KEYS)) want = KEYS;
    }
    want &= ~got;
    if (want == 0 || keys != LICET_OK || list != LICET_OK) return list != LICET_OK ? list : keys;
  }
}

/* adopt makes a receipt that the service sent the receipt of the handle, if the receipt is good and answers the nonce.
 * It leaves the reason in the result. */
static int adopt(licet *h, const char *receipt, const char *license_key, const char *nonce, licet_result *r) {
  struct licet_documents d;
  struct licet_verdict verdict;
  int status = copy_documents(&h->documents, &d), saved;
  if (status == LICET_OK && replace(&d.receipt, receipt) != LICET_OK) status = LICET_ERR_MEMORY;
  if (status != LICET_OK) {
    free_documents(&d);
    deny(r, "memory");
    return status;
  }
  h->verifier.nonce = nonce;
  status = settle(h, &d, 0, &verdict, r);
  h->verifier.nonce = NULL;
  if (verdict.reason == LICET_R_NONE) {
    status = replace(&h->license_key, license_key);
    saved = keep(h, &d, &verdict);
    if (status == LICET_OK) status = saved;
  } else if (status == LICET_OK || status == LICET_ERR_DOCUMENT) {
    status = verdict.reason == LICET_R_MEMORY ? LICET_ERR_MEMORY : LICET_ERR_DOCUMENT;
    if (licet_i_is_shown(&verdict)) { /* the keys and lists stay, without the receipt */
      saved = replace(&d.receipt, h->documents.receipt);
      if (saved == LICET_OK) saved = keep(h, &d, &verdict);
      if (saved != LICET_OK) status = saved;
    }
  }
  conclude(h, r, &verdict);
  if (status == LICET_ERR_UNREACHABLE) deny(r, "unreachable");
  free_documents(&d);
  return status;
}

/* begin_request begins the body of a request, with what all routes take. */
static void begin_request(const licet *h, licet_buffer *body, const char *license_key) {
  memset(body, 0, sizeof *body);
  body->limit = 16384;
  licet_i_put(body, "{");
  if (license_key != NULL) licet_i_put_member(body, "license_key", license_key);
  licet_i_put_member(body, "device_id", h->config.device_id);
  licet_i_put_member(body, "account_id", h->config.account_id);
  licet_i_put_member(body, "mode", h->config.mode);
}

/* may_take reports whether a trial that the device does not have may become the stored license: no other license is
 * stored. */
static int may_take(const licet *h, const char *trial) {
  if (trial == NULL || *trial == 0) return 0;
  return h->license_key != NULL ? strcmp(h->license_key, trial) == 0 : h->documents.receipt == NULL;
}

/* ask sends a request that wants a receipt, with one optional member, and adopts the receipt. It takes the body. */
static int ask(licet *h, const char *path, const char *license_key, const char *name, const char *text,
               licet_result *r) {
  unsigned char random[NONCE_SIZE];
  char nonce[NONCE_SIZE * 4 / 3 + 3];
  licet_buffer body;
  licet_response response;
  struct licet_doc doc;
  const struct licet_json *data, *v;
  const char *receipt, *key = license_key;
  int status;
  if (h->config.random(h->config.user, random, sizeof random) != 0) {
    deny(r, "unreachable");
    return LICET_ERR_UNREACHABLE;
  }
  licet_i_base64_put(random, sizeof random, nonce);
  begin_request(h, &body, license_key);
  licet_i_put_member(&body, "product_id", h->config.product_id);
  if (text != NULL) licet_i_put_member(&body, name, text);
  licet_i_put(&body, ",\"receipt\":true");
  if (h->config.receipt_seconds > 0) licet_i_put_number(&body, "receipt_seconds", h->config.receipt_seconds);
  if (h->config.lease_seconds > 0) licet_i_put_number(&body, "lease_seconds", h->config.lease_seconds);
  licet_i_put_member(&body, "nonce", nonce);
  licet_i_put(&body, "}");
  status = exchange(h, path, &body, NULL, LICET_MAX_ANSWER, &response, &doc, r);
  licet_i_buffer_free(&body);
  if (status == LICET_OK) {
    data = licet_i_member(&doc, "data", LICET_OBJECT);
    v = licet_i_get(&doc, data, "valid");
    receipt = text_of(licet_i_get(&doc, data, "receipt"));
    if (key == NULL) key = text_of(licet_i_get(&doc, data, "license_key"));
    if (v != NULL && v->type == LICET_FALSE) {
      v = licet_i_get(&doc, data, "reason");
      (void)replace(&h->documents.receipt, NULL);
      status = save(h);
      deny(r, text_of(v) != NULL ? v->text : "not_valid");
    } else if (receipt == NULL && license_key == NULL && may_take(h, key)) {
      /* A trial that this device no longer has, or that is not usable: an activation takes it, or says why not. */
      deny(r, "no_receipt");
      if (h->license_key == NULL && (status = replace(&h->license_key, key)) == LICET_OK) status = save(h);
      if (status == LICET_OK) status = ask(h, "/v1/licenses/activate", key, NULL, NULL, r);
    } else if (receipt == NULL || key == NULL) {
      deny(r, "no_receipt");
      status = LICET_ERR_DOCUMENT;
    } else {
      status = adopt(h, receipt, key, nonce, r);
    }
  }
  licet_i_doc_free(&doc);
  licet_i_buffer_free(&response.body);
  return status;
}

/* fall_back makes the result of a call without a usable answer that of licet_check. Without a receipt, the reason why
 * there is no usable answer stays. */
static int fall_back(licet *h, int status, licet_result *r) {
  if (status != LICET_ERR_UNREACHABLE && status != LICET_ERR_DOCUMENT) return status;
  if (status == LICET_ERR_DOCUMENT) put_text(r->message, sizeof r->message, r->reason);
  if (h->documents.receipt == NULL) return status;
  return check(h, r) == LICET_ERR_MEMORY ? LICET_ERR_MEMORY : status;
}

static int validate(licet *h, licet_result *r) {
  int status;
  if (h->license_key == NULL) return invalid(r, "not_activated");
  status = ask(h, "/v1/licenses/validate", h->license_key, NULL, NULL, r);
  if (status == LICET_ERR_REFUSED && (r->code == 40001 || r->code == 40401)) { /* there is no such license */
    (void)replace(&h->documents.receipt, NULL);
    if (save(h) != LICET_OK) status = LICET_ERR_STATE;
  }
  return fall_back(h, status, r);
}

/* renew gets documents, and keeps them if the device may see them. It returns why the receipt is refused with them. */
static enum licet_reason renew(licet *h, int want, licet_result *r, int *status) {
  struct licet_documents d;
  struct licet_verdict verdict;
  enum licet_reason reason;
  int saved;
  *status = copy_documents(&h->documents, &d);
  if (*status != LICET_OK) {
    free_documents(&d);
    return LICET_R_MEMORY;
  }
  *status = settle(h, &d, want, &verdict, r);
  reason = verdict.reason;
  if (licet_i_is_shown(&verdict)) {
    saved = keep(h, &d, &verdict);
    if (*status == LICET_OK || saved != LICET_OK) *status = saved;
    conclude(h, r, &verdict);
  }
  licet_i_doc_free(&verdict.receipt);
  free_documents(&d);
  return reason;
}

/* replace_receipt asks the service for a newer receipt. If there is none, and the service has not said that the license
 * is not valid, the result is that of licet_check. */
static int replace_receipt(licet *h, licet_result *r) {
  int status = validate(h, r);
  if (status == LICET_ERR_REFUSED && h->documents.receipt != NULL && check(h, r) == LICET_ERR_MEMORY) {
    return LICET_ERR_MEMORY;
  }
  return status;
}

/* renew_list gets the list if no receipt has come. Unless the list makes the stored receipt good, the status, the code
 * and the message stay those about the receipt. */
static int renew_list(licet *h, licet_result *r, int status) {
  int code = r->code, renewed;
  char message[sizeof r->message];
  enum licet_reason reason;
  memcpy(message, r->message, sizeof message);
  reason = renew(h, LIST, r, &renewed);
  if (reason == LICET_R_NONE && (renewed == LICET_OK || renewed == LICET_ERR_STATE)) return renewed;
  if (check(h, r) == LICET_ERR_MEMORY) status = LICET_ERR_MEMORY;
  r->code = code;
  memcpy(r->message, message, sizeof message);
  return status;
}

/* refresh keeps to "When a client asks" of docs/reference/receipts.md. */
static int refresh(licet *h, licet_result *r) {
  struct licet_verdict verdict;
  enum licet_reason reason;
  int64_t now = now_of(h);
  int want = 0, status;
  verify(h, &h->documents, &verdict);
  licet_i_doc_free(&verdict.receipt);
  if (verdict.reason != LICET_R_NONE || now >= receipt_due(&verdict)) {
    status = replace_receipt(h, r);
    if (status == LICET_OK || h->documents.receipt == NULL) return status;
    /* A cache may have a newer list although the service has no good receipt, or can't be reached. */
    if (verdict.reason == LICET_R_STALE ? !r->allowed : verdict.in_grace) return renew_list(h, r, status);
    return status;
  }
  if (keys_are_due(&verdict)) want |= KEYS;
  if (verdict.in_grace || (verdict.max_age > 0 && now >= list_due(h, &verdict))) want |= LIST;
  if (want == 0) return check(h, r);
  reason = renew(h, want, r, &status);
  if (reason == LICET_R_MEMORY) return status;
  /* In its grace, the program runs only because no answer has come: one answer of two is enough to end that. */
  if (reason == LICET_R_NONE && (status == LICET_OK || !verdict.in_grace)) return status;
  return replace_receipt(h, r); /* a newer receipt may be good */
}

static int deactivate(licet *h, licet_result *r) {
  licet_buffer body;
  licet_response response;
  struct licet_doc doc;
  int status;
  if (h->license_key == NULL) return invalid(r, "not_activated");
  begin_request(h, &body, h->license_key);
  licet_i_put(&body, "}");
  status = exchange(h, "/v1/licenses/deactivate", &body, NULL, LICET_MAX_ANSWER, &response, &doc, r);
  licet_i_buffer_free(&body);
  licet_i_doc_free(&doc);
  licet_i_buffer_free(&response.body);
  if (status != LICET_OK) return status;
  deny(r, "not_activated");
  (void)replace(&h->documents.receipt, NULL);
  (void)replace(&h->license_key, NULL);
  return save(h);
}

static int is_text(const char *text, size_t longest) {
  size_t length = text == NULL ? 0 : strlen(text);
  return length > 0 && length <= longest && licet_i_utf8(text, length);
}

int licet_open(const licet_config *config, licet **handle) {
  licet *h;
  const char **texts[7];
  size_t i;
  int status = LICET_OK;
  if (handle == NULL) return LICET_ERR_ARGUMENT;
  *handle = NULL;
  if (config == NULL || config->size < sizeof *config) return LICET_ERR_ARGUMENT;
  if (!is_text(config->url, 1024) || !is_text(config->root, LICET_MAX_TEXT) ||
      !is_text(config->account_id, LICET_MAX_TEXT) || !is_text(config->mode, LICET_MAX_TEXT) ||
      !is_text(config->product_id, LICET_MAX_TEXT) || !is_text(config->device_id, LICET_MAX_TEXT) ||
      (strncmp(config->url, "https://", 8) != 0 && strncmp(config->url, "http://", 7) != 0) ||
      config->grace_seconds < 0 || config->grace_seconds > YEAR || config->receipt_seconds < 0 ||
      config->lease_seconds < 0 || config->retry_seconds > 3600 || (config->load == NULL) != (config->save == NULL) ||
      (config->load == NULL && !is_text(config->state_file, 4096))) {
    return LICET_ERR_ARGUMENT;
  }
  h = calloc(1, sizeof *h);
  if (h == NULL) return LICET_ERR_MEMORY;
  h->config = *config;
  texts[0] = &h->config.url, texts[1] = &h->config.root, texts[2] = &h->config.account_id, texts[3] = &h->config.mode;
  texts[4] = &h->config.product_id, texts[5] = &h->config.device_id, texts[6] = &h->config.state_file;
  for (i = 0; i < 7; i++) { /* each becomes a copy or null, so that licet_close can free it */
    const char *text = *texts[i];
    *texts[i] = text == NULL ? NULL : copy_text(text, strlen(text));
    if (text != NULL && *texts[i] == NULL) status = LICET_ERR_MEMORY;
  }
  h->verifier.config = &h->config;
  if (status == LICET_OK) status = licet_i_root(config->root, h->verifier.root);
  if (status == LICET_ERR_DOCUMENT || !licet_i_use_curl(&h->config) || !licet_i_use_sodium(&h->config) ||
      !licet_i_use_posix(&h->config)) {
    status = LICET_ERR_ARGUMENT;
  }
  if (status == LICET_OK) status = load(h);
  if (status == LICET_OK) *handle = h;
  else licet_close(h);
  return status;
}

void licet_close(licet *h) {
  if (h == NULL) return;
  free_documents(&h->documents);
  licet_i_seen_free(&h->seen);
  free(h->license_key);
  free((char *)h->config.url);
  free((char *)h->config.root);
  free((char *)h->config.account_id);
  free((char *)h->config.mode);
  free((char *)h->config.product_id);
  free((char *)h->config.device_id);
  free((char *)h->config.state_file);
  free(h);
}

/* begin makes the result of a call, which allows nothing yet. The reason stays if memory runs out. */
static int begin(const licet *h, licet_result **result) {
  if (result == NULL) return LICET_ERR_ARGUMENT;
  *result = calloc(1, sizeof **result);
  if (*result == NULL) return LICET_ERR_MEMORY;
  deny(*result, h == NULL ? "not_activated" : "memory");
  return h == NULL ? LICET_ERR_ARGUMENT : LICET_OK;
}

int licet_activate(licet *h, const char *license_key, const char *device_name, licet_result **result) {
  int status = begin(h, result);
  if (status != LICET_OK) return status;
  if (license_key == NULL || *license_key == 0) license_key = h->license_key;
  if (license_key == NULL) return invalid(*result, "not_activated");
  if (!is_text(license_key, 1024 * 4)) return invalid(*result, "invalid_license_key");
  if (device_name != NULL && !is_text(device_name, LICET_MAX_TEXT * 4)) return invalid(*result, "invalid_field");
  return ask(h, "/v1/licenses/activate", license_key, "device_name", device_name, *result);
}

int licet_trial(licet *h, const char *buyer_email, licet_result **result) {
  int status = begin(h, result);
  if (status != LICET_OK) return status;
  if (buyer_email != NULL && !is_text(buyer_email, LICET_MAX_TEXT)) return invalid(*result, "invalid_field");
  return ask(h, "/v1/trials", NULL, "buyer_email", buyer_email, *result);
}

int licet_check(licet *h, licet_result **result) {
  int status = begin(h, result);
  return status != LICET_OK ? status : check(h, *result);
}

int licet_validate(licet *h, licet_result **result) {
  int status = begin(h, result);
  return status != LICET_OK ? status : validate(h, *result);
}

int licet_refresh(licet *h, licet_result **result) {
  int status = begin(h, result);
  if (status != LICET_OK) return status;
  h->refreshing = 1;
  status = refresh(h, *result);
  h->refreshing = 0;
  return status;
}

int licet_deactivate(licet *h, licet_result **result) {
  int status = begin(h, result);
  return status != LICET_OK ? status : deactivate(h, *result);
}

void licet_result_free(licet_result *r) {
  if (r == NULL) return;
  licet_i_doc_free(&r->receipt);
  free(r);
}

int licet_result_allowed(const licet_result *r) { return r != NULL && r->allowed; }
const char *licet_result_reason(const licet_result *r) { return r == NULL ? "memory" : r->reason; }
int licet_result_code(const licet_result *r) { return r == NULL ? 0 : r->code; }
const char *licet_result_message(const licet_result *r) { return r == NULL ? "" : r->message; }
int licet_result_in_grace(const licet_result *r) { return r != NULL && r->in_grace; }
int64_t licet_result_refresh_at(const licet_result *r) { return r == NULL ? 0 : r->refresh_at; }
int64_t licet_result_expires_at(const licet_result *r) { return r == NULL ? 0 : r->expires_at; }

static const struct licet_json *member(const licet_result *r, const char *name) {
  return r == NULL || !r->allowed || name == NULL ? NULL : licet_i_get(&r->receipt, r->receipt.values, name);
}

const char *licet_result_text(const licet_result *r, const char *name) { return or_empty(text_of(member(r, name))); }

int licet_result_trial(const licet_result *r) {
  const struct licet_json *v = member(r, "trial");
  return v != NULL && v->type == LICET_TRUE;
}

static const struct licet_json *entitlement(const licet_result *r, const char *code) {
  const struct licet_json *all = member(r, "entitlements");
  return all == NULL || code == NULL ? NULL : licet_i_get(&r->receipt, all, code);
}

int licet_entitlement_bool(const licet_result *r, const char *code) {
  const struct licet_json *v = entitlement(r, code);
  return v != NULL && v->type == LICET_TRUE;
}

int licet_entitlement_int(const licet_result *r, const char *code, int64_t *value) {
  return value != NULL && licet_i_integer(entitlement(r, code), value);
}

const char *licet_entitlement_text(const licet_result *r, const char *code) { return text_of(entitlement(r, code)); }

int licet_response_append(licet_response *response, const void *data, size_t length) {
  return response == NULL ? LICET_ERR_ARGUMENT : licet_buffer_append(&response->body, data, length);
}

void licet_response_status(licet_response *response, int status) {
  if (response != NULL) response->status = status;
}

/* is_named compares names of headers. */
static int is_named(const char *name, const char *want) {
  for (; *name != 0 && (*name | (*name >= 'A' && *name <= 'Z' ? 0x20 : 0)) == *want; name++) want++;
  return *name == 0 && *want == 0;
}

/* digits returns a number of at most nine digits at the beginning of a text, and where the number ends. */
static int64_t digits(const char *text, const char **end) {
  int64_t n = 0;
  for (*end = text; **end >= '0' && **end <= '9' && *end - text < 9; ++*end) n = n * 10 + (**end - '0');
  return n;
}

void licet_response_header(licet_response *response, const char *name, const char *value) {
  const char *at, *end;
  size_t length;
  if (response == NULL || name == NULL || value == NULL) return;
  value += strspn(value, " \t");
  length = strcspn(value, " \t\r\n");
  if (is_named(name, "retry-after")) {
    response->retry_after = digits(value, &end);
    if (end != value + length) response->retry_after = 0;
  } else if (is_named(name, "cache-control")) {
    at = strstr(value, "max-age=");
    response->max_age = at == NULL ? 0 : digits(at + strlen("max-age="), &end);
  } else if (is_named(name, "etag") && is_etag(value, length)) {
    memcpy(response->etag, value, length);
    response->etag[length] = 0;
  }
}
