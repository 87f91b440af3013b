package main

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"licet/handlers/signature"
)

// signingDoc returns the code blocks of docs/guides/signing.md in a language.
func signingDoc(t *testing.T, language string) []string {
	t.Helper()
	text := readText(t, filepath.Join("..", "..", "docs", "guides", "signing.md"))
	var blocks []string
	for _, part := range strings.Split(text, "\n```"+language+"\n")[1:] {
		block, _, _ := strings.Cut(part, "\n```\n")
		blocks = append(blocks, block+"\n")
	}
	return blocks
}

// needTools skips a test if this machine lacks one of the tools.
func needTools(t *testing.T, tools ...string) {
	t.Helper()
	for _, tool := range tools {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("the documented commands need %s, which this machine does not have", tool)
		}
	}
}

// shop creates an API key that requires signatures. It returns a directory whose ./licet-data/dev.env has this key.
func (p *process) shop(t *testing.T) (dir string) {
	t.Helper()
	key := createKey(t, []string{"--etcd-endpoints", p.socket(), "--master-key-file", filepath.Join(p.dir, masterFile)},
		"--require-signature")
	unsigned := api{url: p.url, key: key.APIKey, client: p.client}
	if r := unsigned.want(t, 401, "POST", "/v1/orders", "{}"); r.Code != 40102 {
		t.Errorf("without a signature: %s", r.body)
	}
	dir = t.TempDir()
	data := filepath.Join(dir, "licet-data")
	if err := os.Mkdir(data, 0o700); err != nil {
		t.Fatal(err)
	}
	writeText(t, filepath.Join(data, envFile),
		string(devEnv(p.url, &devKey{KeyID: key.ID, APIKey: key.APIKey}, key.APISecret)))
	return dir
}

// TestSigningInAShell runs the documented commands.
func TestSigningInAShell(t *testing.T) {
	t.Parallel()
	needTools(t, "openssl", "curl")
	p := shared(t)
	commands := signingDoc(t, "sh")[0]
	for _, shell := range []string{"bash", "sh"} {
		t.Run(shell, func(t *testing.T) {
			needTools(t, shell)
			dir := p.shop(t)
			wantOrder(t, pasteIn(t, dir, shell, commands))
			// The same commands with another secret, to see that it counts.
			spoiled := strings.Replace(commands, "-hmac \"$", "-hmac \"x$", 1)
			if out := pasteIn(t, dir, shell, spoiled); spoiled == commands || !strings.Contains(out, `"code":40101`) {
				t.Errorf("with a wrong secret: %s", out)
			}
		})
	}
}

// TestSigningInGo builds and runs the documented program.
func TestSigningInGo(t *testing.T) {
	t.Parallel()
	needTools(t, "go", "sh")
	p := shared(t)
	dir := p.shop(t)
	// Readers save the program in the root of the repository, so no file of the project may have its name.
	const file = "signed.go"
	if _, err := os.Stat(filepath.Join("..", "..", file)); err == nil {
		t.Errorf("the project has a file %s", file)
	}
	writeText(t, filepath.Join(dir, file), signingDoc(t, "go")[0])
	wantOrder(t, pasteIn(t, dir, "sh", signingDoc(t, "sh")[1]))
}

func wantOrder(t *testing.T, out string) {
	t.Helper()
	if !strings.HasPrefix(out, `{"code":0,`) || !strings.Contains(out, `"status":"unpaid"`) {
		t.Errorf("it came to %s", out)
	}
	t.Log(out)
}

// TestDocumentedSignature verifies the documented request with the code of the service, and compares its signature base
// with the documented one.
func TestDocumentedSignature(t *testing.T) {
	request := strings.ReplaceAll(signingDoc(t, "http")[0], "\n", "\r\n")
	head, body, _ := strings.Cut(request, "\r\n\r\n")
	_, fields, _ := strings.Cut(head, "\r\n")
	m := &signature.Message{
		Method:    "POST",
		TargetURI: "https://licenses.example.com/v1/orders",
		Fields:    []byte(fields + "\r\n"),
		Body:      []byte(strings.TrimSuffix(body, "\r\n")),
	}
	const secret = "lks_test_0123456789ABCDEFGHJKMNPQRSTVWXYZ0123456789ABCDEFGHJK"
	key := signature.Key{ID: "key_vq01jd4q8x2m7r3n5t9v1w4y6z8a", Secrets: []string{secret}}
	if err := signature.Verify(m, key, time.Unix(1893553445, 0)); err != nil {
		t.Error(err)
	}
	text := readText(t, filepath.Join("..", "..", "docs", "guides", "signing.md"))
	_, base, _ := strings.Cut(text, "\nIts signature base:\n\n```\n")
	base, _, _ = strings.Cut(base, "\n```\n")
	mac := hmac.New(sha256.New, []byte(secret))
	mac.Write([]byte(base))
	if want := "\r\nSignature: sig1=:" + base64.StdEncoding.EncodeToString(mac.Sum(nil)) +
		":\r\n"; !strings.Contains(text, secret) || !strings.Contains(head+"\r\n", want) {
		t.Errorf("the signature of the documented base is %s", want)
	}
}
