/* sodium.c: Ed25519, SHA-256 and random bytes of libsodium. */
#include "internal.h"

#ifdef LICET_WITHOUT_SODIUM
int licet_i_use_sodium(licet_config *config) {
  return config->verify != NULL && config->sha256 != NULL && config->random != NULL;
}
#else
#include <sodium.h>

static int verify(void *user, const unsigned char signature[64], const unsigned char *message, size_t length,
                  const unsigned char key[32]) {
  (void)user;
  return crypto_sign_verify_detached(signature, message, length, key) == 0;
}

static int sha256(void *user, const unsigned char *data, size_t length, unsigned char digest[32]) {
  (void)user;
  return crypto_hash_sha256(digest, data, length);
}

static int fill(void *user, unsigned char *bytes, size_t length) {
  (void)user;
  randombytes_buf(bytes, length);
  return 0;
}

int licet_i_use_sodium(licet_config *config) {
  if (sodium_init() < 0) return 0;
  if (config->verify == NULL) config->verify = verify;
  if (config->sha256 == NULL) config->sha256 = sha256;
  if (config->random == NULL) config->random = fill;
  return 1;
}
#endif
