/* service.h: a stand-in for the service, which signs with keys that everybody knows. */
#ifndef SERVICE_H
#define SERVICE_H

#include "internal.h"

struct service {
  int64_t now, max_age, iat_shift;
  int64_t validity;                /* of receipts, in seconds */
  int64_t lease_seconds;           /* of the last request */
  int64_t revision, epoch, voided; /* voided: the highest revision that the list voids */
  int bound, valid, whole_lists, key_number;
  int fail_status, fail_times; /* answer so many requests with this status */
  int retryable, down, requests;
  const char *license; /* the id */
  const char *wrong_nonce;
  int forge_lists, plain; /* plain: answers have no receipts */
  int trial_given_back; /* answers to trials have none */
};

void service_begin(struct service *s, int64_t now);
void service_root(char text[64]);
/* service_answer answers a request, and returns the status. */
int service_answer(struct service *s, const char *method, const char *path, const char *body, size_t length,
                   licet_buffer *answer);
char *read_whole(const char *path, size_t *length);

#endif
