/* curl.c: requests by libcurl. */
#include "internal.h"

#ifdef LICET_WITHOUT_CURL
int licet_i_use_curl(licet_config *config) { return config->transport != NULL; }
#else
#include <curl/curl.h>
#include <string.h>

static size_t take_body(char *data, size_t size, size_t count, void *response) {
  return licet_response_append(response, data, size * count) == LICET_OK ? size * count : 0;
}

/* take_header takes a line. It ignores lines that are longer than the lines it looks for. */
static size_t take_header(char *data, size_t size, size_t count, void *response) {
  size_t length = size * count;
  char line[512], *colon;
  if (length >= sizeof line) return length;
  memcpy(line, data, length);
  line[length] = 0;
  if ((colon = strchr(line, ':')) != NULL) {
    *colon = 0;
    licet_response_header(response, line, colon + 1);
  }
  return length;
}

/* make_headers returns the headers of a request; null if there is no memory. */
static struct curl_slist *make_headers(const licet_request *request) {
  const char *first = request->body == NULL ? "Accept: */*" : "Content-Type: application/json";
  struct curl_slist *headers = curl_slist_append(NULL, first), *more;
  char match[160] = "If-None-Match: ";
  if (headers == NULL || request->etag == NULL || strlen(request->etag) >= sizeof match - strlen(match)) return headers;
  strcat(match, request->etag);
  more = curl_slist_append(headers, match);
  if (more == NULL) curl_slist_free_all(headers);
  return more;
}

/* send_request reports a missing host and an untrusted certificate as final: another try does not help. */
static int send_request(void *user, const licet_request *request, licet_response *response) {
  CURL *curl = curl_easy_init();
  struct curl_slist *headers = NULL;
  CURLcode code = CURLE_OUT_OF_MEMORY;
  long status = 0;
  (void)user;
  if (curl == NULL) return LICET_ERR_UNREACHABLE;
  headers = make_headers(request);
  if (headers != NULL && curl_easy_setopt(curl, CURLOPT_URL, request->url) == CURLE_OK &&
      (request->body == NULL ||
       (curl_easy_setopt(curl, CURLOPT_POSTFIELDSIZE_LARGE, (curl_off_t)request->body_length) == CURLE_OK &&
        curl_easy_setopt(curl, CURLOPT_POSTFIELDS, request->body) == CURLE_OK)) &&
      curl_easy_setopt(curl, CURLOPT_HTTPHEADER, headers) == CURLE_OK &&
      curl_easy_setopt(curl, CURLOPT_USERAGENT, "licet-c/" LICET_VERSION) == CURLE_OK &&
      curl_easy_setopt(curl, CURLOPT_TIMEOUT_MS, (long)request->timeout_ms) == CURLE_OK &&
      curl_easy_setopt(curl, CURLOPT_NOSIGNAL, 1L) == CURLE_OK &&
      curl_easy_setopt(curl, CURLOPT_WRITEFUNCTION, take_body) == CURLE_OK &&
      curl_easy_setopt(curl, CURLOPT_WRITEDATA, response) == CURLE_OK &&
      curl_easy_setopt(curl, CURLOPT_HEADERFUNCTION, take_header) == CURLE_OK &&
      curl_easy_setopt(curl, CURLOPT_HEADERDATA, response) == CURLE_OK) {
    code = curl_easy_perform(curl);
  }
  if (code == CURLE_OK) code = curl_easy_getinfo(curl, CURLINFO_RESPONSE_CODE, &status);
  licet_response_status(response, (int)status);
  curl_slist_free_all(headers);
  curl_easy_cleanup(curl);
  switch (code) {
  case CURLE_OK:
    return LICET_OK;
  case CURLE_COULDNT_CONNECT:
  case CURLE_OPERATION_TIMEDOUT:
  case CURLE_SEND_ERROR:
  case CURLE_RECV_ERROR:
  case CURLE_GOT_NOTHING:
  case CURLE_PARTIAL_FILE:
  case CURLE_SSL_CONNECT_ERROR:
  case CURLE_HTTP2:
  case CURLE_HTTP2_STREAM:
    return LICET_ERR_TRY_AGAIN;
  default:
    return LICET_ERR_UNREACHABLE;
  }
}

int licet_i_use_curl(licet_config *config) {
  if (config->transport == NULL) config->transport = send_request;
  return 1;
}
#endif
