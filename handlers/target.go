package handlers

import (
	"net/url"
	"strings"
)

// splitTarget gives the path of a request target and its query, both as they
// were sent. Targets that name no path ("*", an authority) answer false, and so
// does one with a fragment, which no client may send.
//
// fasthttp's own path is not used: it is decoded and cleaned before it is
// matched, so that an encoded slash in a device id would become a real one.
func splitTarget(target string) (path, query string, ok bool) {
	if strings.Contains(target, "#") {
		return "", "", false
	}
	target, query, _ = strings.Cut(target, "?")
	if strings.HasPrefix(target, "/") {
		return target, query, true
	}
	scheme, rest, found := strings.Cut(target, "://")
	if !found || !strings.EqualFold(scheme, "http") && !strings.EqualFold(scheme, "https") {
		return "", "", false
	}
	slash := strings.IndexByte(rest, '/')
	if slash < 0 {
		return "/", query, true
	}
	return rest[slash:], query, true
}

// plainPath reports whether every segment of a raw path stands for itself: none
// is empty and none is a dot segment. The path of any other request names no
// route; it is not made into one that does.
func plainPath(path string) bool {
	for segment := range strings.SplitSeq(path[1:], "/") {
		if segment == "" || segment == "." || segment == ".." {
			return false
		}
	}
	return true
}

// pathValue decodes a variable segment of a raw path, once.
func pathValue(segment string) (string, bool) {
	value, err := url.PathUnescape(segment)
	return value, err == nil
}

// queryValue finds a parameter of a raw query. A parameter that is given twice
// or can't be decoded is given but not ok. Parameters that nobody asks for are
// never looked at.
func queryValue(query, name string) (value string, given, ok bool) {
	for pair := range strings.SplitSeq(query, "&") {
		rawKey, rawValue, _ := strings.Cut(pair, "=")
		key, err := url.QueryUnescape(rawKey)
		if err != nil || key != name {
			continue
		}
		if given {
			return "", true, false
		}
		value, err = url.QueryUnescape(rawValue)
		given, ok = true, err == nil
	}
	return value, given, ok
}
