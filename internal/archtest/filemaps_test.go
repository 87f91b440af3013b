package archtest

import (
	"go/build/constraint"
	"path"
	"regexp"
	"slices"
	"testing"
)

// mapLine is a line of a map of files: a line of code or of a list that begins with a file.
var mapLine = regexp.MustCompile(`(?m)^(?:\t| +- )([a-z0-9_]+\.go)\b`)

// checkFileMap requires that the package comment in doc.go lists each file of the package, and no file that is not
// there. Tests may be listed. A file with a build constraint belongs to a file that is listed.
func checkFileMap(r *report, f *folder) {
	at := slices.IndexFunc(f.files, func(s *source) bool { return path.Base(s.path) == "doc.go" })
	if at < 0 {
		return
	}
	doc := f.files[at]
	var listed, exist []string
	for _, match := range mapLine.FindAllStringSubmatch(doc.syntax.Doc.Text(), -1) {
		listed = append(listed, match[1])
	}
	for _, s := range f.files {
		name := path.Base(s.path)
		exist = append(exist, name)
		if s != doc && !s.test && !constrained(s) && !slices.Contains(listed, name) {
			r.at(doc.syntax.Package, "the map of the package lacks %s", name)
		}
	}
	for _, name := range listed {
		if !slices.Contains(exist, name) {
			r.at(doc.syntax.Package, "the map of the package has %s, which does not exist", name)
		}
	}
}

// constrained reports whether a file has a build constraint.
func constrained(s *source) bool {
	for _, group := range s.syntax.Comments {
		if group.Pos() > s.syntax.Package {
			break
		}
		for _, comment := range group.List {
			if constraint.IsGoBuild(comment.Text) {
				return true
			}
		}
	}
	return false
}

// TestFileMaps: a map that lacks a file, or that has a file which does not exist, is a violation.
func TestFileMaps(t *testing.T) {
	expectViolations(t, map[string]string{
		"internal/quiet/doc.go": "// Package quiet is quiet.\n//\n// The map:\n//\n//\tgone.go   was here\n" +
			"//\there.go   is here\n//   - its_test.go: a test\npackage quiet\n",
		"internal/quiet/here.go":     "package quiet\n",
		"internal/quiet/lost.go":     "package quiet\n",
		"internal/quiet/other.go":    "//go:build windows\n\npackage quiet\n",
		"internal/quiet/its_test.go": "package quiet\n",
	}, []string{
		"internal/quiet/doc.go:8: the map of the package lacks lost.go",
		"internal/quiet/doc.go:8: the map of the package has gone.go, which does not exist",
	})
}
