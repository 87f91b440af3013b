package main

import (
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"strings"
)

// documents writes the documentation into a new folder: README.md, the files beside it that it names, and docs. A link
// from a page to a file that is not among them becomes text, which names the file.
func (r *release) documents(folder string) error {
	packed := map[string]bool{"README.md": true, "CHANGELOG.md": true, "CONTRIBUTING.md": true, "SECURITY.md": true,
		"LICENSE": true}
	err := eachFile(filepath.Join(r.source, "docs"), func(name string) error {
		if path.Ext(name) != ".go" {
			packed["docs/"+name] = true
		}
		return nil
	})
	if err != nil {
		return err
	}
	for name := range packed {
		text, err := os.ReadFile(filepath.Join(r.source, name))
		if err != nil {
			return err
		}
		if path.Ext(name) == ".md" {
			text = []byte(r.unlink(string(text), path.Dir(name), packed))
		}
		to := filepath.Join(folder, name)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			return err
		}
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// unlink replaces the links of a page to files of the repository that are not packed.
func (r *release) unlink(page, folder string, packed map[string]bool) string {
	links := regexp.MustCompile(`\[([^\[\]]*)\]\(([^)\s#]+)[^)\s]*\)`)
	return links.ReplaceAllStringFunc(page, func(link string) string {
		parts := links.FindStringSubmatch(link)
		text, target := parts[1], path.Join(folder, parts[2])
		_, err := os.Stat(filepath.Join(r.source, target))
		if err != nil || packed[target] || packed[target+"/README.md"] {
			return link
		}
		if strings.Contains(text, target) {
			return text
		}
		return text + " (`" + target + "` in the source)"
	})
}

// eachFile calls f for the path of every file in a folder, in the order of the paths.
func eachFile(folder string, f func(name string) error) error {
	return fs.WalkDir(os.DirFS(folder), ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.Type().IsRegular() {
			return err
		}
		return f(name)
	})
}
