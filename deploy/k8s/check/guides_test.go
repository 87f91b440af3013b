package check

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/strvals"
	corev1 "k8s.io/api/core/v1"

	"licet/deploy/k8s/check/manifests"
)

// readPage returns a page of the repository.
func readPage(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("../../..", path))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestReadmeProduction follows the three commands under "Production" in README.md as far as a machine without a cluster
// can: it runs licet, and renders the chart with the flags of helm. The nodes mount the file that kubectl is given.
func TestReadmeProduction(t *testing.T) {
	_, section, _ := strings.Cut(readPage(t, "README.md"), "## Production\n")
	_, section, _ = strings.Cut(section, "\n```\n")
	block, _, _ := strings.Cut(section, "\n```\n")
	commands := strings.Split(strings.ReplaceAll(block, "\\\n", ""), "\n")
	if len(commands) != 3 {
		t.Fatalf("README.md has %d commands for production: %q", len(commands), commands)
	}
	folder := t.TempDir()
	shell := exec.CommandContext(t.Context(), "sh", "-c", commands[0])
	shell.Dir = folder
	shell.Env = append(os.Environ(), "PATH="+filepath.Dir(program(t, "licet"))+":"+os.Getenv("PATH"))
	if out, err := shell.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", commands[0], err, out)
	}

	secret := regexp.MustCompile(`^kubectl --namespace licet create secret generic (\S+) --from-file=(\S+)$`).
		FindStringSubmatch(commands[2])
	if secret == nil {
		t.Fatalf("the third command is %q", commands[2])
	}
	if keys, err := os.ReadFile(filepath.Join(folder, secret[2])); err != nil || len(keys) == 0 {
		t.Errorf("%s has %d bytes: %v", secret[2], len(keys), err)
	}

	words := strings.Fields(commands[1])
	if len(words) < 7 || !slices.Equal(append(words[:5:5], words[6]),
		[]string{"helm", "install", "licet", "deploy/helm", "--namespace", "--create-namespace"}) {
		t.Fatalf("the second command is %q", commands[1])
	}
	values := map[string]any{}
	for i := 7; i < len(words); i += 2 {
		if words[i] != "--set" || i+1 == len(words) {
			t.Fatalf("helm install has the flag %s", words[i])
		}
		if err := strvals.ParseInto(words[i+1], values); err != nil {
			t.Fatalf("%s: %v", words[i+1], err)
		}
	}
	set, err := manifests.RenderChart(chartFolder, words[5], values)
	if err != nil {
		t.Fatal(err)
	}
	wantMounted(t, set, secret[1], secret[2])
}

// wantMounted checks that the nodes mount a Secret and read the master keys from a file in it.
func wantMounted(t *testing.T, set manifests.Set, secret, file string) {
	t.Helper()
	node := find(t, set, "Deployment/licet")
	if !slices.ContainsFunc(node.template.Spec.Volumes, func(v corev1.Volume) bool {
		return v.Secret != nil && v.Secret.SecretName == secret
	}) {
		t.Errorf("nodes do not mount the Secret %s", secret)
	}
	env := environment(t, set, node.template.Spec.Containers[0])
	if filepath.Base(env["LICET_MASTER_KEY_FILE"]) != file {
		t.Errorf("nodes read %s, and the Secret has %s", env["LICET_MASTER_KEY_FILE"], file)
	}
}

// TestReadmeOfManifests renders the overlay that deploy/k8s/README.md names. Its nodes mount the Secret that the page
// creates, in the namespace that the page creates.
func TestReadmeOfManifests(t *testing.T) {
	page := readPage(t, "deploy/k8s/README.md")
	words := func(command string) []string {
		found := regexp.MustCompile(`(?m)^ +` + command + `$`).FindStringSubmatch(page)
		if found == nil {
			t.Fatalf("the page lacks the command %s", command)
		}
		return found
	}
	set, err := manifests.Render(filepath.Join("../../..", words(`kubectl kustomize (\S+)`)[1]))
	if err != nil {
		t.Fatal(err)
	}
	secret := words(`kubectl create secret generic (\S+) --namespace (\S+) --from-file (\S+)`)
	wantMounted(t, set, secret[1], secret[3])
	made := words(`kubectl create namespace (\S+)`)[1]
	if made != secret[2] || !slices.ContainsFunc(set, func(o manifests.Object) bool {
		return o.String() == "Deployment/licet" && o.Raw.GetNamespace() == made
	}) {
		t.Errorf("the page creates the namespace %s, and the Secret in %s", made, secret[2])
	}
}

// TestComposeGuide compares the commands and addresses of docs/guides/compose.md with the compose file, and tries the
// commands of licet without a container.
func TestComposeGuide(t *testing.T) {
	project, err := composed(t, composeFile)
	if err != nil {
		t.Fatal(err)
	}
	page := readPage(t, "docs/guides/compose.md")
	for name, s := range project.Services {
		for _, p := range s.Ports {
			if address := "`http://127.0.0.1:" + p.Published + "`"; !strings.Contains(page, address) {
				t.Errorf("the page lacks %s, an address of %s", address, name)
			}
		}
	}
	tried := 0
	for line := range strings.Lines(page) {
		command, indented := strings.CutPrefix(strings.TrimSpace(line), "docker run --rm licet:dev ")
		if indented {
			tried++
			arguments, file, _ := strings.Cut(command, " > ")
			keys, err := exec.CommandContext(t.Context(), program(t, "licet"), strings.Fields(arguments)...).Output()
			if err != nil || len(keys) == 0 {
				t.Errorf("licet %s writes %q: %v", arguments, keys, err)
			}
			if mounted := project.Secrets["master_keys"].File; filepath.Base(mounted) != file {
				t.Errorf("the command writes %s, and the nodes mount %s", file, mounted)
			}
		}
		command, indented = strings.CutPrefix(strings.TrimSpace(line), "docker compose exec ")
		if indented {
			tried++
			service, command, _ := strings.Cut(command, " licet ")
			if _, known := project.Services[service]; !known {
				t.Errorf("the compose file has no service %s", service)
			}
			help(t, program(t, "licet"), strings.Fields(command)...) // an unknown flag is an error
		}
	}
	if tried != 2 {
		t.Errorf("%d commands of licet were tried", tried)
	}
	if image := project.Services["node-1"].Image; !strings.Contains(page, "docker build --tag "+image+" .\n") ||
		!strings.Contains(page, "make image IMAGE="+image+"\n") {
		t.Errorf("the page does not build the image %s", image)
	}
}
