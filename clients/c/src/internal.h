/* internal.h: what the files of the library share. Names begin with licet_i_, so that a static library is clean too. */
#ifndef LICET_INTERNAL_H
#define LICET_INTERNAL_H

#include "licet.h"

#define LICET_MAX_RECEIPT 65536u
#define LICET_MAX_KEYS 65536u
#define LICET_MAX_LIST 16777216u
#define LICET_MAX_LISTS 32u         /* a whole list and its increments */
#define LICET_MAX_LICENSES 16u      /* that a device remembers */
#define LICET_MAX_STATE 50331648u   /* 48 MiB */
#define LICET_MAX_ANSWER 262144u    /* of a route, and the set of keys */
#define LICET_MAX_VALUES 65536u     /* in a JSON text */
#define LICET_MAX_TEXT 255u         /* ids and names */

/* Bytes that grow up to a limit. After the first failure, failed is set and the rest is ignored. */
struct licet_buffer {
  char *data; /* ends with a zero byte beyond length, unless null */
  size_t length, capacity, limit;
  int failed; /* LICET_NO_MEMORY or LICET_TOO_LONG */
};
enum { LICET_NO_MEMORY = 1, LICET_TOO_LONG };
void licet_i_buffer_free(licet_buffer *b);
void licet_i_put(licet_buffer *b, const char *text);
void licet_i_put_string(licet_buffer *b, const char *text); /* in quotes, escaped */
void licet_i_put_member(licet_buffer *b, const char *name, const char *text);
void licet_i_put_integer(licet_buffer *b, int64_t value);
void licet_i_put_number(licet_buffer *b, const char *name, int64_t value);

struct licet_response {
  int status;
  int64_t retry_after, max_age; /* in seconds */
  char etag[128];
  licet_buffer body;
};

/* json.c: a strict parser. Texts are decoded and end with a zero byte, but may contain some. */
enum { LICET_NULL = 1, LICET_FALSE, LICET_TRUE, LICET_NUMBER, LICET_STRING, LICET_ARRAY, LICET_OBJECT };

struct licet_json {
  const char *name, *text; /* text: of a string; of a number as it stands, without a zero byte */
  size_t name_length, length;
  uint32_t child, next; /* 0: none */
  int type;
};
struct licet_doc {
  char *buffer;
  struct licet_json *values; /* the first is the object */
  uint32_t count, capacity;
};
enum { LICET_PLAIN, LICET_SIGNED }; /* LICET_SIGNED: names and depth as docs/reference/receipts.md says */

/* licet_i_parse returns LICET_OK, LICET_ERR_MEMORY, or LICET_ERR_DOCUMENT for all but one JSON object. */
int licet_i_parse(struct licet_doc *doc, const char *text, size_t length, int kind);
void licet_i_doc_free(struct licet_doc *doc);
const struct licet_json *licet_i_get(const struct licet_doc *doc, const struct licet_json *object, const char *name);
const struct licet_json *licet_i_member(const struct licet_doc *doc, const char *name, int type); /* of the first object */
int licet_i_is(const struct licet_json *value, const char *text);
int licet_i_integer(const struct licet_json *value, int64_t *number);
int licet_i_utf8(const char *text, size_t length);

/* documents.c */
enum licet_reason {
  LICET_R_NONE, LICET_R_MALFORMED, LICET_R_ALGORITHM, LICET_R_TYPE, LICET_R_KEY, LICET_R_SIGNATURE, LICET_R_AUDIENCE,
  LICET_R_DEVICE, LICET_R_NONCE, LICET_R_NOT_YET_VALID, LICET_R_EXPIRED, LICET_R_CLOCK_SET_BACK, LICET_R_OLDER,
  LICET_R_STALE, LICET_R_VOIDED, LICET_R_NOT_ACTIVATED, LICET_R_UNREACHABLE, LICET_R_MEMORY
};
const char *licet_i_word(enum licet_reason reason);

struct licet_documents {
  char *keys, *receipt, *etag; /* null: none. etag: of the last list */
  int64_t until;               /* when the max-age of the last list ends */
  char *lists[LICET_MAX_LISTS];
  size_t count;
};
struct licet_seen_license {
  char *id;
  int64_t revision; /* the newest */
};
struct licet_seen {
  int64_t time, keys, epoch, as_of; /* epoch and as_of: of the newest list */
  struct licet_seen_license licenses[LICET_MAX_LICENSES]; /* the license seen last is the first */
  size_t count;                                           /* of licenses */
};
struct licet_verifier {
  const licet_config *config;
  const char *nonce; /* of the request that the receipt must answer; null: any receipt will do */
  unsigned char root[32];
};
enum licet_stage { LICET_AT_KEYS, LICET_AT_RECEIPT, LICET_AT_LISTS };

struct licet_verdict {
  enum licet_reason reason;
  enum licet_stage stage; /* which documents the reason is about */
  int in_grace;
  int64_t keys_iat, keys_exp, iat, exp, revision, max_age;
  int64_t known; /* nothing was revoked until then */
  int64_t epoch, as_of; /* of the last list */
  struct licet_doc receipt; /* parsed, once the reason is later than the receipt's form */
};

int licet_i_root(const char *text, unsigned char root[32]);
/* licet_i_verify checks the documents in the order of docs/reference/receipts.md. Free the verdict afterwards. */
void licet_i_verify(const struct licet_verifier *v, const struct licet_documents *d, const struct licet_seen *seen,
                    int64_t now, struct licet_verdict *verdict);
/* licet_i_position reads the position of a list without verifying it. */
enum licet_reason licet_i_position(const char *list, int64_t *after, int64_t *epoch);
int licet_i_base64(const char *text, size_t length, unsigned char **bytes, size_t *count);
void licet_i_base64_put(const unsigned char *bytes, size_t count, char *text); /* and a zero byte */

/* seen.c */
int licet_i_seen_read(const struct licet_doc *doc, const struct licet_json *object, struct licet_seen *seen);
void licet_i_seen_put(licet_buffer *b, const struct licet_seen *seen);
/* licet_i_seen_revision returns the newest revision seen of a license; 0: none. */
int64_t licet_i_seen_revision(const struct licet_seen *seen, const struct licet_json *license);
/* licet_i_is_shown returns 1 for documents that are good, or only voided or stale: the device has seen them. */
int licet_i_is_shown(const struct licet_verdict *verdict);
/* licet_i_seen_advance takes what such documents show. Others advance nothing. */
int licet_i_seen_advance(struct licet_seen *seen, const struct licet_verdict *verdict);
void licet_i_seen_free(struct licet_seen *seen);

/* curl.c, sodium.c, posix.c: the callbacks that an application does not set. Each returns 0 if it was left out. */
int licet_i_use_curl(licet_config *config);
int licet_i_use_sodium(licet_config *config);
int licet_i_use_posix(licet_config *config);
int licet_i_file_load(const char *path, licet_buffer *state);
int licet_i_file_save(const char *path, const char *state, size_t length);

#endif
