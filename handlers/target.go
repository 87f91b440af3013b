package handlers

import (
	"net/url"
	"strings"
)

// splitTarget returns the path and the query of a request target, both as sent. It reports false for a target without
// a path ("*", an authority), and for a target with a fragment, which no client may send.
//
// splitTarget does not use fasthttp's path, which is decoded and cleaned: an encoded slash in a device id would become
// a separator.
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

// plainPath reports whether a raw path has no empty segment and no dot segment. Any other path names no route: the
// server does not normalize paths.
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

// queryValue returns a parameter of a raw query. For a parameter that is repeated or can't be decoded, given is true
// and ok is false.
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
