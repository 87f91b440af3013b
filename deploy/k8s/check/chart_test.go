package check

import (
	"io"
	"log"
	"maps"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/lint"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	"sigs.k8s.io/yaml"

	"licet/deploy/k8s/check/manifests"
)

const chartFolder = "../../helm"

// chartValues parses values as helm does, and names the Secret of the master keys.
func chartValues(t *testing.T, text string) map[string]any {
	t.Helper()
	values := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &values); err != nil {
		t.Fatal(err)
	}
	if values["masterKey"] == nil {
		values["masterKey"] = map[string]any{"existingSecret": "licet-master-keys"}
	}
	return values
}

// chart renders the chart with values.
func chart(t *testing.T, values string) manifests.Set {
	t.Helper()
	log.SetOutput(io.Discard) // helm names each symbolic link of the chart
	defer log.SetOutput(os.Stderr)
	set, err := manifests.RenderChart(chartFolder, "licet", chartValues(t, values))
	if err != nil {
		t.Fatal(err)
	}
	return set
}

// hashed is the ending that Kustomize adds to a generated ConfigMap's name.
var hashed = regexp.MustCompile(`^(licet-config|licet-store|etcd-config)-[a-z0-9]{10}$`)

// normal returns a copy of an object without the differences that the chart and an overlay must have: the ending of
// ConfigMaps' names, which the chart replaces by an annotation with a checksum, the order of named lists, what keeps
// backups, and labels of the chart.
func normal(node any) any {
	switch n := node.(type) {
	case string:
		return hashed.ReplaceAllString(n, "$1")
	case []any:
		list := make([]any, len(n))
		for i, below := range n {
			list[i] = normal(below)
		}
		name := func(x any) string { m, _ := x.(map[string]any); s, _ := m["name"].(string); return s }
		if len(list) > 0 && name(list[0]) != "" {
			slices.SortStableFunc(list, func(a, b any) int { return strings.Compare(name(a), name(b)) })
		}
		return list
	case map[string]any:
		result := map[string]any{}
		for key, below := range n {
			switch key {
			case "app.kubernetes.io/managed-by", "checksum/settings", "helm.sh/resource-policy", "creationTimestamp":
				continue
			}
			if below = normal(below); key == "annotations" && len(below.(map[string]any)) == 0 {
				continue
			}
			result[key] = below
		}
		return result
	}
	return node
}

// compareLabels checks that an object of the chart has the labels of the overlay's object, and besides them only labels
// that Kubernetes recommends.
func compareLabels(t *testing.T, name string, want, have map[string]any) {
	t.Helper()
	wanted, _ := want["labels"].(map[string]any)
	labels, _ := have["labels"].(map[string]any)
	for key, value := range wanted {
		if labels[key] != value {
			t.Errorf("%s: the label %s is %v, want %v", name, key, labels[key], value)
		}
	}
	for key := range labels {
		if _, known := wanted[key]; !known && !strings.HasPrefix(key, "app.kubernetes.io/") {
			t.Errorf("%s has the label %s", name, key)
		}
	}
	delete(want, "labels")
	delete(have, "labels")
}

// sameObjects compares the objects of the chart with the objects of an overlay, apart from the namespace: the user
// creates it before the installation, with the Secret of the master keys in it.
func sameObjects(t *testing.T, overlay, helm manifests.Set) {
	t.Helper()
	byName := func(set manifests.Set) map[string]map[string]any {
		all := map[string]map[string]any{}
		for _, o := range set {
			object := normal(o.Raw.Object).(map[string]any)
			metadata := object["metadata"].(map[string]any)
			// The overlay of development has another namespace.
			if o.Raw.GetKind() != "Namespace" {
				delete(metadata, "namespace")
				if subjects, ok := object["subjects"].([]any); ok {
					delete(subjects[0].(map[string]any), "namespace")
				}
				all[o.Raw.GetKind()+"/"+metadata["name"].(string)] = object
			}
		}
		return all
	}
	want, have := byName(overlay), byName(helm)
	if len(want) < 25 {
		t.Fatalf("the overlay has only %d objects", len(want))
	}
	for name := range have {
		if want[name] == nil {
			t.Errorf("only the chart has %s", name)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if have[name] == nil {
			t.Errorf("the chart lacks %s", name)
			continue
		}
		compareLabels(t, name, want[name]["metadata"].(map[string]any), have[name]["metadata"].(map[string]any))
		difference(t, name, want[name], have[name])
	}
}

// difference reports each place where two objects differ.
func difference(t *testing.T, path string, want, have any) {
	t.Helper()
	w, isMap := want.(map[string]any)
	h, also := have.(map[string]any)
	if isMap && also {
		for key := range w {
			difference(t, path+"."+key, w[key], h[key])
		}
		for key := range h {
			if _, known := w[key]; !known {
				t.Errorf("%s.%s: only the chart has %v", path, key, h[key])
			}
		}
		return
	}
	if !reflect.DeepEqual(want, have) {
		t.Errorf("%s:\nthe overlay has %v\nthe chart has   %v", path, want, have)
	}
}

// TestChartIsProduction compares the chart's default values with overlays/prod, object by object.
func TestChartIsProduction(t *testing.T) {
	sameObjects(t, render(t, "prod"), chart(t, ""))
}

// TestChartIsDevelopment compares the chart with overlays/dev: the values can say what the overlay says.
func TestChartIsDevelopment(t *testing.T) {
	text, err := os.ReadFile("testdata/dev.yaml")
	if err != nil {
		t.Fatal(err)
	}
	set := chart(t, string(text))
	// The overlay replaces the claim's template, and the labels of the base with it.
	claims := set.Find("StatefulSet/etcd").Raw.Object["spec"].(map[string]any)["volumeClaimTemplates"].([]any)
	delete(claims[0].(map[string]any)["metadata"].(map[string]any), "labels")
	sameObjects(t, render(t, "dev"), set)
}

// TestChartComparison shows that the comparison finds differences.
func TestChartComparison(t *testing.T) {
	normalized := func(set manifests.Set, name string) any { return normal(set.Find(name).Raw.Object) }
	defaults := chart(t, "")
	for values, name := range map[string]string{
		"image: {tag: 0.1.1}":                        "CronJob/licet-backup",
		"settings: {LICET_LOG_LEVEL: debug}":         "ConfigMap/licet-config",
		"etcd: {quotaBytes: '1'}":                    "ConfigMap/etcd-config",
		"nodes: {resources: {requests: {cpu: '2'}}}": "Deployment/licet",
		"monitoring: {namespace: prometheus}":        "NetworkPolicy/etcd",
		"backups: {storage: {size: 1Gi}}":            "PersistentVolumeClaim/licet-backups",
		"etcd: {storage: {className: fast}}":         "StatefulSet/etcd",
		"image: {pullSecrets: [registry]}":           "Job/etcd-certificates",
		"nodes: {autoscaling: {maxReplicas: 20}}":    "HorizontalPodAutoscaler/licet",
		"masterKey: {existingSecret: other}":         "Deployment/licet",
	} {
		if reflect.DeepEqual(normalized(defaults, name), normalized(chart(t, values), name)) {
			t.Errorf("%s does not change %s", values, name)
		}
	}
}

// lintChart runs helm's own lint, apart from the wish for an icon.
func lintChart(t *testing.T, folder, values string) []string {
	t.Helper()
	log.SetOutput(io.Discard)
	defer log.SetOutput(os.Stderr)
	var found []string
	for _, m := range lint.All(folder, chartValues(t, values), "licet", true).Messages {
		if !strings.Contains(m.Err.Error(), "icon is recommended") {
			found = append(found, m.Error())
		}
	}
	return found
}

// TestChartLint runs helm's own lint, with and without a Secret for the master keys, and over damaged charts.
func TestChartLint(t *testing.T) {
	for _, values := range []string{"{}", "masterKey: {existingSecret: ''}", externalEtcd} {
		if found := lintChart(t, chartFolder, values); len(found) > 0 {
			t.Errorf("%s: %q", values, found)
		}
	}
	f := func(file, text, want string) {
		t.Helper()
		folder := t.TempDir()
		// -L: links lead out of the chart.
		if out, err := exec.Command("cp", "-RL", chartFolder+"/.", folder).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		if err := os.WriteFile(filepath.Join(folder, file), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if found := strings.Join(lintChart(t, folder, ""), "\n"); !strings.Contains(found, want) {
			t.Errorf("%s: lint finds %q, want %q", file, found, want)
		}
	}
	f("templates/config.yaml", "kind: ConfigMap\nmetadata: {name: Licet_Config}\n", "naming requirements")
	f("templates/config.yaml", "{{ .Values.image.repository | quot }}", `function "quot" not defined`)
	f("templates/config.yaml", "a: b: c\n", "unable to parse YAML")
	f("values.yaml", "etcd: {members: 2}\n", "must be one of 1, 3")
	f("Chart.yaml", "apiVersion: v2\nname: licet\n", "version is required")
}

// externalEtcd are the values for an etcd of the user's own.
const externalEtcd = `
etcd: {enabled: false}
externalEtcd:
  endpoints: ["a.example.com:2379", "b.example.com:2379"]
  clientSecret: our-etcd
  maintenanceSecret: our-etcd-root
  networks: [10.1.0.0/16]
`

// TestChartRefuses: helm refuses wrong and missing values with a message that names the value and says what to do.
func TestChartRefuses(t *testing.T) {
	f := func(values, want string) {
		t.Helper()
		log.SetOutput(io.Discard)
		defer log.SetOutput(os.Stderr)
		if _, err := manifests.RenderChart(chartFolder, "licet", chartValues(t, values)); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want %q", values, err, want)
		}
	}
	for _, namespace := range []string{"default", "kube-system"} { // the policies would cut off other pods
		if _, err := manifests.RenderChart(chartFolder, namespace, chartValues(t, "")); err == nil ||
			!strings.Contains(err.Error(), "add --namespace licet --create-namespace") {
			t.Errorf("namespace %s: %v", namespace, err)
		}
	}
	f("masterKey: {}", "masterKey.existingSecret is required: name a Secret with the file master.keys")
	f("masterKey: {existingsecret: x}", "additional properties 'existingsecret' not allowed")
	f("replicas: 3", "additional properties 'replicas' not allowed")
	f("settings: {LICET_EVENT_RETENTION_BYTES: 67108864}", "got number, want string")
	f("settings: {TRUSTED_PROXIES: 10.0.0.0/8}", "TRUSTED_PROXIES")
	f("etcd: {members: 2}", "must be one of 1, 3")
	f("image: {digest: latest}", "does not match pattern")
	f("publicURL: licenses.example.com", "does not match pattern")
	f("backups: {storage: {size: big}}", "does not match pattern")
	f("etcd: {enabled: false}", "externalEtcd.endpoints must have host:port")
	f(strings.Replace(externalEtcd, "clientSecret", "#", 1), "externalEtcd.clientSecret must name a Secret")
	f(strings.Replace(externalEtcd, "maintenanceSecret", "#", 1), "need externalEtcd.maintenanceSecret")
	f(strings.Replace(externalEtcd, "networks", "#", 1), "externalEtcd.networks must have the networks")
}

// TestChartGuide renders the chart with the commands and the values of docs/guides/helm.md, and compares the table of
// values with the schema. The Secret of the page is the Secret that nodes mount.
func TestChartGuide(t *testing.T) {
	text, err := os.ReadFile("../../../docs/guides/helm.md")
	if err != nil {
		t.Fatal(err)
	}
	page := string(text)
	block := func(language string) string {
		_, rest, found := strings.Cut(page, "\n```"+language+"\n")
		code, _, closed := strings.Cut(rest, "\n```\n")
		if !found || !closed {
			t.Fatalf("the page has no block of %s", language)
		}
		return code
	}
	set := chart(t, block("yaml"))
	const secret = "kubectl --namespace licet create secret generic "
	_, name, _ := strings.Cut(block("sh"), secret)
	name, _, _ = strings.Cut(name, " --from-file=master.keys\n")
	node := find(t, set, "Deployment/licet")
	if !slices.ContainsFunc(node.template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == name
	}) {
		t.Errorf("nodes do not mount the Secret %q", name)
	}
	env := environment(t, set, node.template.Spec.Containers[0])
	if env["LICET_MASTER_KEY_FILE"] != "/etc/licet/master/master.keys" ||
		env["LICET_TRUSTED_PROXIES"] != "10.20.0.0/16" {
		t.Errorf("the settings of nodes are %v", env)
	}
	if len(manifests.All[networkingv1.Ingress](set)) != 1 {
		t.Error("there is no ingress")
	}
	for _, line := range []string{"helm install licet deploy/helm --namespace licet --values values.yaml\n",
		"helm upgrade licet deploy/helm --namespace licet --values values.yaml\n"} {
		if !strings.Contains(page, line) {
			t.Errorf("the page lacks %s", line)
		}
	}

	schema := map[string]any{}
	if text, err = os.ReadFile(chartFolder + "/values.schema.json"); err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(text, &schema); err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(page, "## Values")
	table, _, _ = strings.Cut(table, "## Upgrade")
	named := map[string]bool{}
	for _, row := range strings.Split(table, "\n") {
		cells := strings.Split(row, "|")
		if len(cells) < 4 || !strings.HasPrefix(cells[1], " `") {
			continue
		}
		group := ""
		for _, name := range strings.Split(cells[1], ",") {
			name = strings.Trim(name, " `")
			if strings.HasPrefix(name, ".") {
				name = group + name
			}
			if group = name; strings.Contains(name, ".") {
				group = name[:strings.LastIndex(name, ".")]
			}
			named[name] = true
		}
	}
	// A value is named itself, or all values below it are.
	var listed func(path string, property map[string]any) bool
	listed = func(path string, property map[string]any) bool {
		if named[path] {
			delete(named, path)
			return true
		}
		if reference, _ := property["$ref"].(string); reference != "" {
			definition := strings.TrimPrefix(reference, "#/definitions/")
			property = schema["definitions"].(map[string]any)[definition].(map[string]any)
		}
		below, _ := property["properties"].(map[string]any)
		for name, p := range below {
			if !listed(strings.TrimPrefix(path+"."+name, "."), p.(map[string]any)) {
				t.Errorf("the table lacks the value %s.%s", path, name)
			}
		}
		return len(below) > 0 || path == "global"
	}
	listed("", schema)
	for name := range named {
		t.Errorf("the chart has no value %s", name)
	}
}

// TestChartApplies: a real API server takes every object of the chart without a warning, with several values.
func TestChartApplies(t *testing.T) {
	// A namespace of its own, like that of production: what other tests have applied there can't be changed.
	namespace := render(t, "prod")[0]
	namespace.Raw.SetName("licet-chart")
	if _, err := api(t).Apply(t.Context(), namespace.Raw, false); err != nil {
		t.Fatal(err)
	}
	for what, values := range map[string]string{
		"the defaults":  "",
		"external etcd": externalEtcd,
		"an ingress": "ingress: {enabled: true, className: nginx, tlsSecret: licenses, " +
			"annotations: {nginx.ingress.kubernetes.io/proxy-body-size: 64k}}",
		"digests":    "image: {digest: 'sha256:" + strings.Repeat("0a", 32) + "', pullSecrets: [registry]}",
		"no scaling": "nodes: {replicas: 5, autoscaling: {enabled: false}}",
		"nothing else": "{backups: {enabled: false}, networkPolicies: {enabled: false}, " +
			"monitoring: {serviceMonitors: false, alerts: false, dashboards: false}}",
		"storage classes": "{etcd: {storage: {className: fast}}, backups: {storage: {className: slow, size: 1Ti}}}",
	} {
		for _, o := range chart(t, values) {
			o.Raw.SetNamespace("licet-chart")
			if _, err := api(t).Apply(t.Context(), o.Raw, true); err != nil {
				t.Errorf("%s: %s: %v", what, o, err)
			}
		}
	}
}

// TestChartValues: values reach the objects that they are about.
func TestChartValues(t *testing.T) {
	ingress := manifests.All[networkingv1.Ingress](chart(t, "{ingress: {enabled: true, tlsSecret: tls}, "+
		"publicURL: 'https://shop.example.com'}"))
	if len(ingress) != 1 || ingress[0].Spec.Rules[0].Host != "shop.example.com" ||
		ingress[0].Spec.TLS[0].SecretName != "tls" || ingress[0].Spec.TLS[0].Hosts[0] != "shop.example.com" {
		t.Errorf("the ingress is %+v", ingress)
	}

	digest := "sha256:" + strings.Repeat("0a", 32)
	set := chart(t, "{image: {digest: '"+digest+"', pullSecrets: [registry]}, etcd: {image: {digest: '"+digest+"'}}}")
	for _, w := range workloads(set) {
		if image := w.template.Spec.Containers[0].Image; !strings.HasSuffix(image, "@"+digest) {
			t.Errorf("%s has the image %s", w.name, image)
		}
		if secrets := w.template.Spec.ImagePullSecrets; len(secrets) != 1 || secrets[0].Name != "registry" {
			t.Errorf("%s pulls its image with %v", w.name, secrets)
		}
	}

	// A change of settings restarts the nodes.
	checksum := func(values string) string {
		return find(t, chart(t, values), "Deployment/licet").template.Annotations["checksum/settings"]
	}
	if checksum("") == checksum("settings: {LICET_LOG_LEVEL: debug}") || checksum("") == checksum(externalEtcd) {
		t.Error("a change of the settings does not change the pods of nodes")
	}

	set = chart(t, externalEtcd)
	for _, name := range []string{"StatefulSet/etcd", "CronJob/etcd-users", "CronJob/etcd-defragment",
		"Job/etcd-certificates", "ServiceMonitor/etcd", "NetworkPolicy/etcd", "ConfigMap/etcd-config"} {
		if set.Find(name) != nil {
			t.Errorf("with an etcd of your own there is still %s", name)
		}
	}
	for name, secret := range map[string]string{"Deployment/licet": "our-etcd",
		"CronJob/licet-backup": "our-etcd-root"} {
		w := find(t, set, name)
		env := environment(t, set, w.template.Spec.Containers[0])
		if env["LICET_ETCD_ENDPOINTS"] != "a.example.com:2379,b.example.com:2379" {
			t.Errorf("%s asks %s", name, env["LICET_ETCD_ENDPOINTS"])
		}
		if !slices.ContainsFunc(w.template.Spec.Volumes, func(v corev1.Volume) bool {
			return v.Secret != nil && v.Secret.SecretName == secret
		}) {
			t.Errorf("%s does not mount %s", name, secret)
		}
		from := peer{namespace: "licet", labels: w.template.Labels}
		policies := manifests.All[networkingv1.NetworkPolicy](set)
		for address, want := range map[string]bool{"10.1.2.3": true, "10.2.2.3": false} {
			to := peer{address: netip.MustParseAddr(address)}
			if allowed(policies, from, to, 2379, corev1.ProtocolTCP) != want {
				t.Errorf("%s to %s: allowed is not %v", name, address, want)
			}
		}
	}

	// helm uninstall keeps the backups.
	claim := chart(t, "").Find("PersistentVolumeClaim/licet-backups")
	if claim.Raw.GetAnnotations()["helm.sh/resource-policy"] != "keep" {
		t.Error("helm uninstall removes the backups")
	}
}
