package handlers

import (
	"iter"
	"net/url"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/agnivade/levenshtein"
	"github.com/valyala/fasthttp"

	"licet/licensing"
)

// maxShownName bounds the names and paths that error messages repeat, in code points.
const maxShownName = 64

// didYouMean returns "; did you mean X?" for the known name that a misspelled name is closest to, such as product_id
// for produkt_id or for product, and "" if no known name is close: more than a third of the name differs. Names of more
// than maxShownName get no suggestion, which bounds the work.
func didYouMean(name string, known iter.Seq[string]) string {
	if name == "" || len(name) > maxShownName {
		return ""
	}
	lower := strings.ToLower(name)
	best, least := "", max(2, len(name)/3+1)
	for candidate := range known {
		d := levenshtein.ComputeDistance(lower, strings.ToLower(candidate))
		if strings.HasPrefix(candidate, lower+"_") {
			d = 1 // the words behind the first ones were left out
		}
		if d < least {
			best, least = candidate, d
		}
	}
	if best == "" {
		return ""
	}
	return "; did you mean " + best + "?"
}

// cutName cuts a name for a message.
func cutName(name string) string {
	if utf8.RuneCountInString(name) <= maxShownName {
		return name
	}
	return string([]rune(name)[:maxShownName]) + "…"
}

// unknownParameters notes each parameter of a query that a route does not have, with the parameter that is close to the
// name, or else with all parameters of the route. An unknown parameter is refused, since a misspelled filter would
// return everything.
func (c *checks) unknownParameters(query string, of *requestType) {
	if query == "" {
		return
	}
	known := slices.Collect(of.names(InQuery))
	const most = 10 // problems; a query may have thousands of parameters
	for pair := range strings.SplitSeq(query, "&") {
		raw, _, _ := strings.Cut(pair, "=")
		name, err := url.QueryUnescape(raw)
		switch {
		case pair == "" || err == nil && slices.Contains(known, name):
		case len(c.fields) >= most:
			return
		case err != nil || name == "" || len(name) > maxShownName:
			c.add("query", "has a parameter that this route does not have")
		default:
			hint := didYouMean(name, slices.Values(known))
			if hint == "" && len(known) > 0 {
				hint = "; the route has " + strings.Join(known, ", ")
			}
			c.add(name, "is not a query parameter of this route"+hint)
		}
	}
}

// noRoute is the error for a path that belongs to no route. The message names the method and the path, if the path is
// short and plain, and a route with a similar path. The error of a HEAD is that of the GET: the header Content-Length
// must be the same (RFC 9110, section 8.6).
func (t *routeTable) noRoute(method, path string) error {
	message := "no such route"
	method = getForHead(method)
	if len(method+path) <= 2*maxShownName && plainText(method+path) {
		message += ": " + method + " " + path + t.similar(path, func(*resource) bool { return true })
	}
	return &licensing.Error{Reason: reasonNotFound, Message: message}
}

// noMethod is the error for a path of a resource that does not have the method. The message names a route with the
// method and a similar path: a misspelled path may be that of a resource with a variable, as /v1/licenses/activat is.
// The message names the pattern and not the path, which may contain a license key. For HEAD, see noRoute.
func (t *routeTable) noMethod(of *resource, method, path string) error {
	method = getForHead(method)
	message := of.pattern + " does not have this method: its methods are " + of.allow
	if len(method+path) <= 2*maxShownName && plainText(method+path) {
		message = of.pattern + " does not have the method " + method + ": its methods are " + of.allow +
			t.similar(path, func(r *resource) bool { return r != of && r.routes[method] != nil })
	}
	return &licensing.Error{Reason: reasonMethodNotAllowed, Message: message}
}

// getForHead returns GET for HEAD, and any other method as it is.
func getForHead(method string) string {
	if method == fasthttp.MethodHead {
		return fasthttp.MethodGet
	}
	return method
}

// similar returns didYouMean of the pattern, among some resources, that a path is closest to: with one literal segment
// spelled right, without a slash at the end, or with /v1 at the beginning.
func (t *routeTable) similar(path string, among func(*resource) bool) string {
	path = strings.TrimSuffix(path, "/")
	var closest *resource
	least := unlike
	for _, path := range []string{path, "/v1" + path} {
		segments := strings.Split(path, "/")
		for _, res := range t.resources {
			if n := misspelled(res.parts, segments); n < least && among(res) {
				closest, least = res, n
			}
		}
	}
	if closest == nil {
		return ""
	}
	return "; did you mean " + closest.pattern + "?"
}

// unlike is the least result of misspelled for a path that does not resemble the pattern.
const unlike = 2

// misspelled returns how many literal segments of a pattern a path misspells.
func misspelled(pattern, path []string) (n int) {
	if len(pattern) != len(path) {
		return unlike
	}
	for i, segment := range pattern {
		switch {
		case segment == path[i] || strings.HasPrefix(segment, "{"):
		case didYouMean(path[i], slices.Values(pattern[i:i+1])) == "":
			return unlike
		default:
			n++
		}
	}
	return n
}

// plainText reports whether a text is printable ASCII without quotes.
func plainText(text string) bool {
	return !strings.ContainsFunc(text, func(r rune) bool { return r <= ' ' || r > '~' || r == '"' })
}
