package main

import (
	"embed"
	"os"
	"path/filepath"

	"github.com/goreleaser/nfpm/v2"
	"github.com/goreleaser/nfpm/v2/deb"
	"github.com/goreleaser/nfpm/v2/files"
)

//go:embed debian
var debian embed.FS

// deb writes the Debian package of one processor.
func (r *release) deb(p platform, programs, scripts, documents string) error {
	// nfpm reads files by their paths.
	packaging, err := os.MkdirTemp("", "licet-deb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(packaging)
	if err := os.CopyFS(packaging, debian); err != nil {
		return err
	}
	var contents files.Contents
	add := func(from, to string, mode os.FileMode) {
		contents = append(contents, &files.Content{Source: from, Destination: to,
			FileInfo: &files.ContentFileInfo{Owner: "root", Group: "root", Mode: mode, MTime: r.created}})
	}
	at := func(name string) string { return filepath.Join(packaging, "debian", name) }
	add(filepath.Join(programs, "licet"), "/usr/bin/licet", 0o755)
	add(at("licet.service"), "/usr/lib/systemd/system/licet.service", 0o644)
	add(at("README.Debian"), "/usr/share/doc/licet/README.Debian", 0o644)
	add(at("copyright"), "/usr/share/doc/licet/copyright", 0o644)
	err = eachFile(documents, func(name string) error {
		add(filepath.Join(documents, name), "/usr/share/doc/licet/"+name, 0o644)
		return nil
	})
	if err != nil {
		return err
	}
	add(filepath.Join(scripts, "licet.bash"), "/usr/share/bash-completion/completions/licet", 0o644)
	add(filepath.Join(scripts, "_licet"), "/usr/share/zsh/vendor-completions/_licet", 0o644)
	add(filepath.Join(scripts, "licet.fish"), "/usr/share/fish/vendor_completions.d/licet.fish", 0o644)
	add(at("licet.env"), "/etc/licet/licet.env", 0o640)
	contents[len(contents)-1].Type = files.TypeConfig

	info := nfpm.WithDefaults(&nfpm.Info{
		Name: "licet", Arch: p.arch, Platform: "linux", Version: debVersion(r.version), VersionSchema: "none",
		Section: "net", Priority: "optional", Maintainer: "The Licet authors <licet@localhost>", License: "Apache-2.0",
		Description: "licensing and order service\n" +
			"Sells software licenses and activates them on devices, over HTTP, with etcd as its database.",
		DisableGlobbing: true, MTime: r.created,
		Overridables: nfpm.Overridables{
			Depends: []string{"adduser"}, Recommends: []string{"ca-certificates"}, Contents: contents,
			Scripts: nfpm.Scripts{PostInstall: at("postinst"), PreRemove: at("prerm"), PostRemove: at("postrm")},
			Deb:     nfpm.Deb{Compression: "gzip"}, // as the archives; xz saves a quarter, in ten times the time
		},
	})
	if err := nfpm.PrepareForPackager(info, "deb"); err != nil {
		return err
	}
	out, err := os.Create(filepath.Join(r.out, "licet_"+info.Version+"_"+p.arch+".deb"))
	if err != nil {
		return err
	}
	defer out.Close()
	if err := deb.Default.Package(info, out); err != nil {
		return err
	}
	return out.Close()
}
