package cluster

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Refusal is why the API server does not accept something: an error, or a warning, which
// counts as an error here.
type Refusal struct {
	Status  int // 0 for a warning
	Message string
}

func (r *Refusal) Error() string {
	if r.Status == 0 {
		return "warning: " + r.Message
	}
	return fmt.Sprintf("%d: %s", r.Status, r.Message)
}

// Apply applies an object as kubectl apply --server-side --validate=strict does, and
// returns the result. A dry run changes nothing.
func (c *Cluster) Apply(
	ctx context.Context, object *unstructured.Unstructured, dry bool,
) (*unstructured.Unstructured, error) {
	path, err := c.path(ctx, object)
	if err != nil {
		return nil, err
	}
	body, err := json.Marshal(object.Object)
	if err != nil {
		return nil, err
	}
	query := url.Values{"fieldManager": {"check"}, "fieldValidation": {"Strict"}}
	if dry {
		query.Set("dryRun", "All")
	}
	answer, err := c.call(ctx, http.MethodPatch, path+"?"+query.Encode(), "application/apply-patch+yaml", body)
	if err != nil {
		return nil, err
	}
	result := new(unstructured.Unstructured)
	return result, result.UnmarshalJSON(answer)
}

// Get reads an object; path is as in /api/v1/namespaces/licet/secrets/etcd-server-tls.
func (c *Cluster) Get(ctx context.Context, path string) (*unstructured.Unstructured, error) {
	answer, err := c.call(ctx, http.MethodGet, path, "", nil)
	if err != nil {
		return nil, err
	}
	result := new(unstructured.Unstructured)
	return result, result.UnmarshalJSON(answer)
}

// Token makes a token of a service account, as pods get it.
func (c *Cluster) Token(ctx context.Context, namespace, account string) (string, error) {
	body := []byte(`{"apiVersion":"authentication.k8s.io/v1","kind":"TokenRequest","spec":{"expirationSeconds":600}}`)
	answer, err := c.call(ctx, http.MethodPost, "/api/v1/namespaces/"+namespace+"/serviceaccounts/"+account+"/token",
		"application/json", body)
	if err != nil {
		return "", err
	}
	var token struct{ Status struct{ Token string } }
	return token.Status.Token, json.Unmarshal(answer, &token)
}

// Served waits until the server knows the kinds of a custom resource.
func (c *Cluster) Served(ctx context.Context, definition *unstructured.Unstructured) error {
	path := "/apis/apiextensions.k8s.io/v1/customresourcedefinitions/" + definition.GetName()
	for {
		have, err := c.Get(ctx, path)
		if err != nil {
			return err
		}
		// At first the conditions are there and null.
		if conditions, _, err := unstructured.NestedSlice(have.Object, "status", "conditions"); err == nil &&
			established(conditions) {
			return nil
		}
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-time.After(50 * time.Millisecond):
		}
	}
}

func established(conditions []any) bool {
	return slices.ContainsFunc(conditions, func(condition any) bool {
		m, ok := condition.(map[string]any)
		return ok && m["type"] == "Established" && m["status"] == "True"
	})
}

// Status returns the HTTP status of a call without a body, with a token.
func (c *Cluster) Status(ctx context.Context, token, method, path string) (int, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, nil)
	if err != nil {
		return 0, err
	}
	request.Header.Set("Authorization", "Bearer "+token)
	answer, err := c.http.Do(request)
	if err != nil {
		return 0, err
	}
	return answer.StatusCode, answer.Body.Close()
}

// call makes one call as the administrator. A warning is a refusal.
func (c *Cluster) call(ctx context.Context, method, path, media string, body []byte) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, method, c.URL+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	request.Header.Set("Authorization", "Bearer "+adminToken)
	request.Header.Set("Accept", "application/json")
	if media != "" {
		request.Header.Set("Content-Type", media)
	}
	answer, err := c.http.Do(request)
	if err != nil {
		return nil, err
	}
	text, err := io.ReadAll(answer.Body)
	if err := errors.Join(err, answer.Body.Close()); err != nil {
		return nil, err
	}
	if answer.StatusCode/100 != 2 {
		var status struct{ Message string }
		if json.Unmarshal(text, &status) != nil || status.Message == "" {
			status.Message = string(text)
		}
		return nil, &Refusal{Status: answer.StatusCode, Message: status.Message}
	}
	if warnings := answer.Header.Values("Warning"); len(warnings) > 0 {
		return nil, &Refusal{Message: strings.Join(warnings, "; ")}
	}
	return text, nil
}

// resources are the kinds of an API group, as the server lists them.
type resources struct {
	Resources []struct {
		Name, Kind string
		Namespaced bool
	}
}

// path returns the path of an object.
func (c *Cluster) path(ctx context.Context, object *unstructured.Unstructured) (string, error) {
	group := "/apis/" + object.GetAPIVersion()
	if !strings.Contains(object.GetAPIVersion(), "/") {
		group = "/api/" + object.GetAPIVersion()
	}
	known := c.kinds[group]
	if known == nil {
		answer, err := c.call(ctx, http.MethodGet, group, "", nil)
		if err != nil {
			return "", fmt.Errorf("kinds of %s: %w", object.GetAPIVersion(), err)
		}
		known = new(resources)
		if err := json.Unmarshal(answer, known); err != nil {
			return "", err
		}
		c.kinds[group] = known
	}
	for _, r := range known.Resources {
		if r.Kind != object.GetKind() || strings.Contains(r.Name, "/") {
			continue
		}
		if !r.Namespaced {
			return group + "/" + r.Name + "/" + object.GetName(), nil
		}
		return group + "/namespaces/" + object.GetNamespace() + "/" + r.Name + "/" + object.GetName(), nil
	}
	return "", fmt.Errorf("the API server knows no %s of %s", object.GetKind(), object.GetAPIVersion())
}
