package main

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	cdx "github.com/CycloneDX/cyclonedx-go"
)

// rootsModule is where the authorities come from.
const rootsModule = "golang.org/x/crypto/x509roots/fallback"

// components lists the content of the image or of a release, in CycloneDX's form: the programs with their hashes, every
// module that they were linked from with the version that the linker noted, Go's own library, and the certificates of
// the public authorities, which are in each image.
func components(of cdx.ComponentType, programs []program, s stamp) ([]byte, error) {
	list := map[string]cdx.Component{}
	var depends []cdx.Dependency
	image := cdx.Component{
		BOMRef: "licet", Type: of, Name: "licet", Version: s.version,
		Description: s.labels()["org.opencontainers.image.description"],
		Licenses:    &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
	}
	var direct []string
	for _, p := range programs {
		c := applicationOf(p, s)
		list[c.BOMRef] = c
		direct = append(direct, c.BOMRef)
		var below []string
		for _, m := range modulesOf(p.info) {
			list[m.BOMRef] = m
			below = append(below, m.BOMRef)
		}
		depends = append(depends, dependency(c.BOMRef, below))
	}
	authorities, err := authoritiesOf()
	if err != nil {
		return nil, err
	}
	list[authorities.BOMRef] = authorities
	depends = append(depends, dependency(image.BOMRef, append(direct, authorities.BOMRef)))

	all := slices.SortedFunc(maps.Values(list), func(a, b cdx.Component) int { return cmp.Compare(a.BOMRef, b.BOMRef) })
	slices.SortFunc(depends, func(a, b cdx.Dependency) int { return cmp.Compare(a.Ref, b.Ref) })
	bom := cdx.NewBOM()
	bom.Metadata = &cdx.Metadata{Timestamp: s.created.Format(time.RFC3339), Component: &image}
	bom.Components, bom.Dependencies = &all, &depends
	// CycloneDX wants a unique serial number. It is derived from the content of the list.
	bom.SerialNumber, err = serial(bom)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).SetPretty(true).EncodeVersion(bom,
		cdx.SpecVersion1_6); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

// applicationOf describes a program.
func applicationOf(p program, s stamp) cdx.Component {
	sum := sha256.Sum256(p.bytes)
	return cdx.Component{
		BOMRef: "program/" + p.platform() + "/" + p.name, Type: cdx.ComponentTypeApplication, Name: p.name,
		Version:  s.version,
		Licenses: &cdx.Licenses{{License: &cdx.License{ID: "Apache-2.0"}}},
		Hashes:   &[]cdx.Hash{{Algorithm: cdx.HashAlgoSHA256, Value: hex.EncodeToString(sum[:])}},
		Properties: &[]cdx.Property{{Name: "licet:platform", Value: p.platform()},
			{Name: "licet:go", Value: p.info.GoVersion}},
	}
}

// modulesOf lists what a program was linked from.
func modulesOf(info *debug.BuildInfo) []cdx.Component {
	std := strings.TrimPrefix(strings.Fields(info.GoVersion)[0], "go")
	list := []cdx.Component{moduleOf("std", std, "")}
	for _, m := range info.Deps {
		if m.Replace != nil {
			m = m.Replace
		}
		list = append(list, moduleOf(m.Path, m.Version, m.Sum))
	}
	return list
}

// moduleOf describes a module. Its reference is its package URL.
func moduleOf(name, version, sum string) cdx.Component {
	purl := "pkg:golang/" + name + "@" + version
	c := cdx.Component{BOMRef: purl, Type: cdx.ComponentTypeLibrary, Name: name, Version: version, PackageURL: purl}
	if sum != "" {
		// Go's own sum is one of many files, which the form has no name for.
		c.Properties = &[]cdx.Property{{Name: "licet:go.sum", Value: sum}}
	}
	return c
}

// authoritiesOf describes the file of authorities, whose version this program was linked
// with.
func authoritiesOf() (cdx.Component, error) {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return cdx.Component{}, fmt.Errorf("this program does not know what it was built of")
	}
	for _, m := range info.Deps {
		if m.Path == rootsModule {
			c := moduleOf(m.Path, m.Version, m.Sum)
			c.Type = cdx.ComponentTypeData
			return c, nil
		}
	}
	return cdx.Component{}, fmt.Errorf("this program was built without %s", rootsModule)
}

func dependency(of string, on []string) cdx.Dependency {
	slices.Sort(on)
	return cdx.Dependency{Ref: of, Dependencies: &on}
}

// serial makes a UUID out of a list's content.
func serial(bom *cdx.BOM) (string, error) {
	var out bytes.Buffer
	if err := cdx.NewBOMEncoder(&out, cdx.BOMFileFormatJSON).Encode(bom); err != nil {
		return "", err
	}
	id := sha256.Sum256(out.Bytes())
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80 // version 8: an own one
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:16]), nil
}
