package cluster

import (
	"context"
	"errors"
	"fmt"
	"strings"

	authenticationv1 "k8s.io/api/authentication/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
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

// warnings is the context key of the list that gets the warnings of a request.
type warnings struct{}

// warningHandler adds warnings to the list in their context.
type warningHandler struct{}

func (warningHandler) HandleWarningHeaderWithContext(ctx context.Context, _ int, _, text string) {
	if list, ok := ctx.Value(warnings{}).(*[]string); ok {
		*list = append(*list, text)
	}
}

// Apply applies an object as kubectl apply --server-side --validate=strict does, and
// returns the result. A dry run changes nothing.
func (c *Cluster) Apply(
	ctx context.Context, object *unstructured.Unstructured, dry bool,
) (*unstructured.Unstructured, error) {
	options := &client.PatchOptions{FieldManager: "check",
		Raw: &metav1.PatchOptions{FieldValidation: metav1.FieldValidationStrict}}
	if dry {
		options.DryRun = []string{metav1.DryRunAll}
	}
	var warned []string
	result := object.DeepCopy()
	err := c.admin.Patch(context.WithValue(ctx, warnings{}, &warned), result, client.Apply, options)
	if refused := new(apierrors.StatusError); errors.As(err, &refused) {
		return nil, &Refusal{Status: int(refused.ErrStatus.Code), Message: refused.ErrStatus.Message}
	}
	if err == nil && len(warned) > 0 {
		err = &Refusal{Message: strings.Join(warned, "; ")}
	}
	return result, err
}

// Secret reads a Secret.
func (c *Cluster) Secret(ctx context.Context, namespace, name string) (*corev1.Secret, error) {
	secret := new(corev1.Secret)
	return secret, c.admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, secret)
}

// Token makes a token of a service account, as pods get it.
func (c *Cluster) Token(ctx context.Context, namespace, account string) (string, error) {
	of := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: account}}
	request := &authenticationv1.TokenRequest{}
	err := c.admin.SubResource("token").Create(ctx, of, request)
	return request.Status.Token, err
}

// Status returns the HTTP status of a call without a body, with a token.
func (c *Cluster) Status(ctx context.Context, token, method, path string) (status int, err error) {
	config := rest.AnonymousClientConfig(c.config)
	config.BearerToken = token
	config.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	by, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return 0, err
	}
	result := by.Verb(method).AbsPath(path).Do(ctx).StatusCode(&status)
	if status == 0 {
		return 0, result.Error()
	}
	return status, nil
}
