/*
 * licet.h: the client of Licet for installed software.
 *
 * A program activates its license online once. The service answers with a receipt, a signed document; licet_check
 * verifies the receipt without a network, under the root key that is built into the program.
 *
 * Threads: the library has no global state. One thread at a time may use a handle; different handles are independent.
 * Results belong to the caller, and any thread may read them. Before a program starts threads it should call
 * curl_global_init, as libcurl asks.
 *
 * Texts are UTF-8 and end with a zero byte. Times are Unix seconds. Each function accepts null for an object: it returns
 * LICET_ERR_ARGUMENT, 0 or an empty text. A function keeps nothing that it gets, but the config's callbacks and `user`.
 *
 * ABI: objects are opaque. licet_config begins with its size, and later versions add members at its end only. Codes and
 * functions keep their meaning as long as the library is liblicet.so.1.
 */
#ifndef LICET_H
#define LICET_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define LICET_API __attribute__((visibility("default")))
#else
#define LICET_API
#endif

#define LICET_VERSION "1.0.0"

/* What functions return. */
enum {
  LICET_OK = 0,
  LICET_ERR_ARGUMENT = 1,    /* an argument or a member of the config is missing or out of range */
  LICET_ERR_MEMORY = 2,      /* an allocation failed */
  LICET_ERR_STATE = 3,       /* load or save failed */
  LICET_ERR_UNREACHABLE = 4, /* no answer of the service, or an answer that asks to try again later */
  LICET_ERR_REFUSED = 5,     /* the service refused: see licet_result_code */
  LICET_ERR_DOCUMENT = 6,    /* the answer has no receipt, or a document that the client refuses: see the reason */
  LICET_ERR_TRY_AGAIN = 7    /* a transport returns it: no answer, and another try may help */
};

typedef struct licet licet;                   /* a license of a program on a device */
typedef struct licet_result licet_result;     /* what a call found out */
typedef struct licet_buffer licet_buffer;     /* where load puts the state */
typedef struct licet_response licet_response; /* where a transport puts a response */

/* A request of HTTP. A transport follows no redirects, and sends a body as application/json. */
typedef struct licet_request {
  size_t size; /* of this struct */
  const char *method;
  const char *url;
  const char *body; /* null: none */
  size_t body_length;
  int timeout_ms;
  const char *etag; /* for the header If-None-Match; null: none */
} licet_request;

/*
 * licet_config is what licet_open needs. Set all members to 0 first, then size and those without "optional". Texts of
 * ids have 1 to 255 bytes.
 */
typedef struct licet_config {
  size_t size;            /* sizeof(licet_config) */
  const char *url;        /* of the service, such as https://licenses.example.com */
  const char *root;       /* the public half of the root key: licet_root_ and 43 characters */
  const char *account_id; /* whose product this is */
  const char *mode;       /* test or live */
  const char *product_id;
  const char *device_id;
  const char *state_file;  /* where the state is kept, unless load and save are set; not with POSIX=0 */
  int64_t receipt_seconds; /* optional: how long a receipt may last, if less than the product's setting */
  int64_t lease_seconds;   /* optional: the length of the lease to ask for, if the product's devices have leases */
  int64_t grace_seconds;   /* optional, to 1 year: how much longer than revocation_max_age a receipt counts while the
                              service can't be reached. The receipt's own end stays */
  int retry_seconds;       /* optional: how long a call tries again, 1 to 3,600; 0: 30; below 0: it tries once */

  void *user; /* optional: the first argument of each callback */

  /* load puts the saved state into the buffer with licet_buffer_append, or nothing; save stores it. Both return 0 if
   * they succeed. The state is one JSON text, which contains the license key. */
  int (*load)(void *user, licet_buffer *state);
  int (*save)(void *user, const char *state, size_t length);

  /* transport sends a request, and returns 0 if a response came, LICET_ERR_TRY_AGAIN or LICET_ERR_UNREACHABLE.
   * Optional unless built with CURL=0. */
  int (*transport)(void *user, const licet_request *request, licet_response *response);

  /* verify returns 1 if the Ed25519 signature (RFC 8032) is right, else 0. sha256 and random return 0 if they succeed.
   * Optional unless built with SODIUM=0. */
  int (*verify)(void *user, const unsigned char signature[64], const unsigned char *message, size_t length,
                const unsigned char key[32]);
  int (*sha256)(void *user, const unsigned char *data, size_t length, unsigned char digest[32]);
  int (*random)(void *user, unsigned char *bytes, size_t length);

  /* now returns the time, in Unix seconds. Optional: time() of C. */
  int64_t (*now)(void *user);
  /* wait pauses before a retry; ticks is a monotonic clock in milliseconds. Optional unless built with POSIX=0. */
  void (*wait)(void *user, int milliseconds);
  int64_t (*ticks)(void *user);
} licet_config;

/* licet_open makes a handle and loads the state. A state that is not readable as JSON, or has more than 48 MiB, counts
 * as none. */
LICET_API int licet_open(const licet_config *config, licet **handle);

/* licet_close frees a handle. The seat of the device stays taken. */
LICET_API void licet_close(licet *handle);

/*
 * The calls below set *result if there is memory for it, whatever they return; free it with licet_result_free. Only
 * licet_result_allowed says whether the program may run: for instance, licet_validate returns LICET_ERR_UNREACHABLE
 * without a network, and its result may allow the program by the receipt.
 */

/* licet_activate binds the device to a license, and keeps the receipt. license_key null or
 * empty: the license of the state. device_name may be null. */
LICET_API int licet_activate(licet *handle, const char *license_key, const char *device_name, licet_result **result);

/* licet_trial starts the trial of the product on this device, or goes on with a trial that this device has started, and
 * keeps the receipt. It activates the trial again if this device has given it back. After the trial's end, the service
 * refuses with license_expired. buyer_email may be null. */
LICET_API int licet_trial(licet *handle, const char *buyer_email, licet_result **result);

/* licet_check verifies what the handle has. It uses no network and is quick. */
LICET_API int licet_check(licet *handle, licet_result **result);

/* licet_validate asks the service for a new receipt. If the service says that the license is not valid, or does not
 * exist, the handle forgets its receipt. Without an answer, the result is that of licet_check. */
LICET_API int licet_validate(licet *handle, licet_result **result);

/* licet_refresh gets what is due: a new receipt, the set of receipt keys, the list of revocations. Call it when
 * licet_result_refresh_at has come. Then a void receipt counts for less than revocation_max_age, and for as much longer
 * as the device's clock is behind, up to five minutes. If the service sends nothing better, the result is that of
 * licet_check. */
LICET_API int licet_refresh(licet *handle, licet_result **result);

/* licet_deactivate frees the seat of the device, and forgets receipt and license key. The result allows nothing. */
LICET_API int licet_deactivate(licet *handle, licet_result **result);

LICET_API void licet_result_free(licet_result *result);

/* licet_result_allowed returns 1 if the program may run, else 0. */
LICET_API int licet_result_allowed(const licet_result *result);

/*
 * licet_result_reason says why not, in one word; empty if allowed. It is one of the service's reasons, or of those in
 * docs/reference/receipts.md: malformed, algorithm, type, key, signature, audience, device, nonce, not_yet_valid,
 * expired, clock_set_back, older, stale, voided. Further: not_activated (there is no license on this device),
 * no_receipt (the service issues none), unreachable (there is no receipt, and no answer of the service: licet_check
 * says so until licet_refresh gets a receipt), memory.
 */
LICET_API const char *licet_result_reason(const licet_result *result);

/* licet_result_code returns the service's code of a refusal, such as 40901; 0: none. */
LICET_API int licet_result_code(const licet_result *result);

/* licet_result_message returns the service's message of a refusal, for people. */
LICET_API const char *licet_result_message(const licet_result *result);

/* licet_result_in_grace returns 1 if the program may run only by grace_seconds. */
LICET_API int licet_result_in_grace(const licet_result *result);

/* licet_result_refresh_at returns when to call licet_refresh; 0: now, or there is nothing to refresh. If a call of
 * licet_refresh has not got what is due, the time is a minute later, or sooner for receipts that count for less than
 * eight minutes. */
LICET_API int64_t licet_result_refresh_at(const licet_result *result);

/* licet_result_expires_at returns when the receipt ends, unless it is renewed; 0 if not allowed. */
LICET_API int64_t licet_result_expires_at(const licet_result *result);

/* licet_result_text returns a text of the receipt, such as sub (the license's id), status or license_expires_at;
 * empty if not allowed, and for null and other types. */
LICET_API const char *licet_result_text(const licet_result *result, const char *member);

/* licet_result_trial returns 1 if the license is a trial. */
LICET_API int licet_result_trial(const licet_result *result);

/* Entitlements of the license; none if not allowed. bool returns 1 if the code's value is true. int returns 1 and sets
 * *value if the value is an integer, else 0. text returns the text, or null; it lives as long as the result. */
LICET_API int licet_entitlement_bool(const licet_result *result, const char *code);
LICET_API int licet_entitlement_int(const licet_result *result, const char *code, int64_t *value);
LICET_API const char *licet_entitlement_text(const licet_result *result, const char *code);

/* For callbacks. append returns 0, or LICET_ERR_MEMORY if there is no memory or the text is longer than allowed. */
LICET_API int licet_buffer_append(licet_buffer *buffer, const void *data, size_t length);
LICET_API int licet_response_append(licet_response *response, const void *data, size_t length);
LICET_API void licet_response_status(licet_response *response, int status);
/* licet_response_header takes a header. A transport passes each, or at least Retry-After, ETag and Cache-Control. */
LICET_API void licet_response_header(licet_response *response, const char *name, const char *value);

#ifdef __cplusplus
}
#endif

#endif
