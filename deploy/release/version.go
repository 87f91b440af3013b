package main

import (
	"regexp"
	"strings"
)

// debVersion returns the version of a Debian package. Debian sorts a part after a tilde before the version itself, as
// semantic versions do after a dash; git describe writes commits after a tag behind a dash, too. Without a semantic
// version, as on a clone without tags, the result sorts before every version.
func debVersion(version string) string {
	semantic := regexp.MustCompile(`^v?([0-9]+\.[0-9]+\.[0-9]+)(-[0-9A-Za-z.-]+)?(\+[0-9A-Za-z.-]+)?$`)
	dots := func(text string) string { return strings.ReplaceAll(text, "-", ".") }
	m := semantic.FindStringSubmatch(version)
	if m == nil {
		return "0~" + regexp.MustCompile(`[^0-9A-Za-z.]+`).ReplaceAllString(version, ".")
	}
	pre, build := strings.TrimPrefix(m[2], "-"), m[3]
	described := regexp.MustCompile(`^(?:(.*?)-)??([0-9]+-g[0-9a-f]+(?:-dirty)?|dirty)$`)
	if m := described.FindStringSubmatch(pre); m != nil {
		pre, build = m[1], "+"+m[2]+build
	}
	if pre != "" {
		pre = "~" + dots(pre)
	}
	return m[1] + pre + dots(build)
}
