package main

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
)

// account is the folder in which Kubernetes puts what a pod needs to call its API server.
const account = "/var/run/secrets/kubernetes.io/serviceaccount"

// secret contains the parts of a Secret that etcdcerts uses.
type secret struct {
	APIVersion string            `json:"apiVersion"`
	Kind       string            `json:"kind"`
	Metadata   metadata          `json:"metadata"`
	Type       string            `json:"type,omitempty"`
	Data       map[string][]byte `json:"data"`
}

type metadata struct {
	Name            string            `json:"name"`
	Labels          map[string]string `json:"labels,omitempty"`
	Annotations     map[string]string `json:"annotations,omitempty"`
	ResourceVersion string            `json:"resourceVersion,omitempty"`
}

var (
	errNotFound = errors.New("there is no such Secret")
	// errConflict means that another writer changed the Secret first.
	errConflict = errors.New("another writer has changed the Secret meanwhile")
)

// store keeps Secrets. A put creates a Secret without a resource version. Otherwise it replaces the Secret of that
// version, or fails with errConflict.
type store interface {
	get(ctx context.Context, name string) (*secret, error)
	put(ctx context.Context, s *secret) error
}

// api is the API server of Kubernetes. Each call takes four lines of HTTP; the client library of Kubernetes would be
// larger than the service.
type api struct {
	base      string
	namespace string
	writer    string // names this run among the writers of a Secret, see put
	tokenFile string
	client    *http.Client
}

// inCluster returns the API server of the cluster that the pod runs in.
func inCluster(namespace, folder string) (*api, error) {
	host, port := os.Getenv("KUBERNETES_SERVICE_HOST"), os.Getenv("KUBERNETES_SERVICE_PORT")
	if host == "" || port == "" {
		return nil, errors.New("KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set: " +
			"run this in a pod of Kubernetes, see docs/guides/kubernetes.md")
	}
	return newAPI("https://"+net.JoinHostPort(host, port), namespace, folder)
}

// newAPI returns an API server that is called with the files of a service account.
func newAPI(base, namespace, folder string) (*api, error) {
	authority, err := os.ReadFile(filepath.Join(folder, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("the service account: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(authority) {
		return nil, fmt.Errorf("%s has no certificate", filepath.Join(folder, "ca.crt"))
	}
	if namespace == "" {
		text, err := os.ReadFile(filepath.Join(folder, "namespace"))
		if err != nil {
			return nil, fmt.Errorf("the service account: %w", err)
		}
		namespace = strings.TrimSpace(string(text))
	}
	transport := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, MinVersion: tls.VersionTLS12}}
	return &api{
		base: base, namespace: namespace, tokenFile: filepath.Join(folder, "token"),
		client: &http.Client{Transport: transport},
		writer: "etcdcerts-" + rand.Text(),
	}, nil
}

func (a *api) path(name string) string {
	return "/api/v1/namespaces/" + a.namespace + "/secrets" + name
}

func (a *api) get(ctx context.Context, name string) (*secret, error) {
	s := new(secret)
	return s, a.call(ctx, http.MethodGet, a.path("/"+name), nil, s)
}

// put creates a Secret by server-side apply, because a Role can allow that by the name of the Secret: a POST has no
// name that a Role could allow. If another run has created the Secret meanwhile, the two name different writers for
// its data, which Kubernetes refuses as a conflict.
func (a *api) put(ctx context.Context, s *secret) error {
	if s.Metadata.ResourceVersion == "" {
		return a.call(ctx, http.MethodPatch, a.path("/"+s.Metadata.Name+"?fieldManager="+a.writer), s, nil)
	}
	return a.call(ctx, http.MethodPut, a.path("/"+s.Metadata.Name), s, nil)
}

// maxAnswer is larger than any Secret.
const maxAnswer = 4 << 20

// call makes one call. Its errors quote nothing that was sent or received, except the message of Kubernetes: the rest
// is secret.
func (a *api) call(ctx context.Context, method, path string, in, out any) error {
	var body io.Reader
	if in != nil {
		text, err := json.Marshal(in)
		if err != nil {
			return err
		}
		body = bytes.NewReader(text)
	}
	request, err := http.NewRequestWithContext(ctx, method, a.base+path, body)
	if err != nil {
		return err
	}
	token, err := os.ReadFile(a.tokenFile)
	if err != nil {
		return fmt.Errorf("the service account: %w", err)
	}
	request.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	request.Header.Set("Content-Type", "application/json")
	if method == http.MethodPatch {
		request.Header.Set("Content-Type", "application/apply-patch+yaml") // JSON is YAML
	}
	request.Header.Set("Accept", "application/json")
	answer, err := a.client.Do(request)
	if err != nil {
		return err
	}
	text, err := io.ReadAll(io.LimitReader(answer.Body, maxAnswer))
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return err
	}
	switch {
	case answer.StatusCode == http.StatusNotFound && method == http.MethodGet:
		return errNotFound
	case answer.StatusCode == http.StatusConflict:
		return errConflict
	case answer.StatusCode/100 != 2:
		var status struct{ Message string }
		_ = json.Unmarshal(text, &status)
		return fmt.Errorf("%s %s: %s: %s", method, path, answer.Status, status.Message)
	case out == nil:
		return nil
	}
	if err := json.Unmarshal(text, out); err != nil {
		return fmt.Errorf("%s %s: the answer can't be read", method, path)
	}
	return nil
}
