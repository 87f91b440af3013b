package main

import (
	"archive/tar"
	"archive/zip"
	"compress/gzip"
	"io"
	"os"
	"path"
	"path/filepath"
)

// entry is a file of an archive.
type entry struct {
	path string
	mode int64
	from string
}

// archive writes the archive of one platform: a zip for Windows, else a tar.gz. Everything is in one folder.
func (r *release) archive(p platform, programs, scripts, documents string) error {
	top := filepath.Base(r.name("-" + p.String()))
	files := []entry{{path.Join(top, program(p)), 0o755, filepath.Join(programs, program(p))}}
	err := eachFile(documents, func(name string) error {
		files = append(files, entry{path.Join(top, name), 0o644, filepath.Join(documents, name)})
		return nil
	})
	if err != nil {
		return err
	}
	for _, c := range completions() {
		files = append(files, entry{path.Join(top, "completions", c.file), 0o644, filepath.Join(scripts, c.file)})
	}
	ending, write := ".tar.gz", r.writeTar
	if p.os == "windows" {
		ending, write = ".zip", r.writeZip
	}
	out, err := os.Create(r.name("-" + p.String() + ending))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := write(out, files); err != nil {
		return err
	}
	return out.Close()
}

// writeTar writes files of root and of the time of the commit.
func (r *release) writeTar(out io.Writer, files []entry) error {
	packed, err := gzip.NewWriterLevel(out, gzip.BestCompression)
	if err != nil {
		return err
	}
	w := tar.NewWriter(packed)
	for _, f := range files {
		text, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &tar.Header{Typeflag: tar.TypeReg, Name: f.path, Mode: f.mode, Size: int64(len(text)),
			ModTime: r.created}
		if err := w.WriteHeader(header); err != nil {
			return err
		}
		if _, err := w.Write(text); err != nil {
			return err
		}
	}
	if err := w.Close(); err != nil {
		return err
	}
	return packed.Close()
}

// writeZip writes files of the time of the commit.
func (r *release) writeZip(out io.Writer, files []entry) error {
	w := zip.NewWriter(out)
	for _, f := range files {
		text, err := os.ReadFile(f.from)
		if err != nil {
			return err
		}
		header := &zip.FileHeader{Name: f.path, Method: zip.Deflate, Modified: r.created}
		header.SetMode(os.FileMode(f.mode))
		to, err := w.CreateHeader(header)
		if err != nil {
			return err
		}
		if _, err := to.Write(text); err != nil {
			return err
		}
	}
	return w.Close()
}
