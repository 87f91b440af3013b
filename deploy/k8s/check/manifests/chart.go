package manifests

import (
	"fmt"
	"slices"
	"strings"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/releaseutil"
	"k8s.io/apimachinery/pkg/api/meta"
)

// RenderChart renders a Helm chart as helm template does, for a release with the name licet and the version of
// Kubernetes that the tests run, and decodes each object. The chart's schema checks the values. The objects are in the
// order in which Helm applies them.
func RenderChart(folder, namespace string, values map[string]any) (Set, error) {
	loaded, err := loader.LoadDir(folder)
	if err != nil {
		return nil, err
	}
	version, err := chartutil.ParseKubeVersion("v1.34.4")
	if err != nil {
		return nil, err
	}
	release := chartutil.ReleaseOptions{Name: "licet", Namespace: namespace, Revision: 1, IsInstall: true}
	all, err := chartutil.ToRenderValues(loaded, values, release, &chartutil.Capabilities{
		KubeVersion: *version, APIVersions: chartutil.DefaultVersionSet,
		HelmVersion: chartutil.DefaultCapabilities.HelmVersion})
	if err != nil {
		return nil, err
	}
	files, err := engine.Render(loaded, all)
	if err != nil {
		return nil, err
	}
	for name := range files {
		if strings.HasSuffix(name, "NOTES.txt") {
			delete(files, name)
		}
	}
	hooks, sorted, err := releaseutil.SortManifests(files, nil, releaseutil.InstallOrder)
	if err != nil {
		return nil, err
	}
	if len(hooks) > 0 {
		return nil, fmt.Errorf("render %s: the chart has %d hooks, which tests leave out", folder, len(hooks))
	}
	decoder, err := newDecoder()
	if err != nil {
		return nil, err
	}
	var set Set
	for _, m := range sorted {
		object, err := decoder.decode([]byte(m.Content))
		if err != nil {
			return nil, fmt.Errorf("%s: %w", m.Name, err)
		}
		if object.Raw.GetNamespace() == "" { // as helm install does
			object.Raw.SetNamespace(namespace)
			typed, err := meta.Accessor(object.Typed)
			if err != nil {
				return nil, fmt.Errorf("%s: %w", m.Name, err)
			}
			typed.SetNamespace(namespace)
		}
		set = append(set, object)
	}
	return slices.Clip(set), nil
}
